#!/usr/bin/env python3
"""Makes the Debian package, looks at it, unpacks it into an empty root and builds a consumer with what is there. Exit code 77 where there is no dpkg."""

import shutil

from package import VERSION, arguments, configure_library, must, need, run, use

args = arguments(__doc__)
need("dpkg-deb")
build = configure_library(args)
if args.compiled:
    run("cmake", "--build", build)
run("cpack", "-G", "DEB", "-B", args.work, cwd=build)
architecture = run("dpkg", "--print-architecture").strip() if args.compiled else "all"
package = args.work / f"libparsearch-dev_{VERSION}_{architecture}.deb"
must(package.exists(), f"cpack makes {package.name}; it made {[deb.name for deb in args.work.glob('*.deb')]}")


def field(name):
    return run("dpkg-deb", "--field", package, name).strip()


must((field("Package"), field("Version"), field("Architecture"), field("Section")) == ("libparsearch-dev", VERSION, architecture, "libdevel"),
     "name, version, architecture and section of the package")
must(("nlohmann-json3-dev" in field("Recommends")) == ("io" in args.components), "what the component io needs is recommended where it is in the package")
if shutil.which("apt-get"): # what it depends on exists
    must(f"Inst libparsearch-dev ({VERSION}" in run("apt-get", "--simulate", "--no-install-recommends", "--reinstall", "install", package),
         "apt-get would install the package")
root = args.work / "root"
run("dpkg-deb", "--extract", package, root)
must((root / "usr/share/doc/libparsearch-dev/copyright").exists(), "the package says its copyright where Debian wants it")
must(sorted(path.name for path in root.iterdir()) == ["usr"] and not (root / "usr/local").exists(), "all of it is under /usr and nothing under /usr/local")
use(args, root / "usr")
