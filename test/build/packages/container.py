#!/usr/bin/env python3
"""Checks packaging/Containerfile against the build: what its image copies is what the build writes, and the packages that its image installs are those
whose libraries the program plan loads. Builds no image. Exit code 77 where the system is not the one of the image.

    container.py <plan>
"""

import pathlib
import re
import sys

from package import ROOT, must, need, run, skip

plan = pathlib.Path(sys.argv[1])
BASE = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"} # of what plan loads: in every image, since apt needs it
text = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
images = re.findall(r"^FROM debian:(\w+)-slim", text, re.M)
must(len(images) == 2 and images[0] == images[1], f"image and build have the same base; they have {images}")
must("COPY --from=build /parsearch/build/release/examples/plan /usr/local/bin/plan\n" in text and plan.as_posix().endswith("/examples/plan"),
     f"the image copies what the preset release builds, as here {plan}")

release = pathlib.Path("/etc/os-release")
if not release.exists() or f"VERSION_CODENAME={images[0]}\n" not in release.read_text(encoding="utf-8"):
    skip(f"the packages of the image are those of Debian {images[0]}, which this is not")
need("dpkg")


def owner(library):
    """The package of a shared library, which the loader may name by the link from /lib to /usr/lib."""
    real = pathlib.Path(library).resolve()
    name = f"{real.parent.name}/{real.name}" # of one architecture
    owners = {line.split(":")[0] for line in run("dpkg", "--search", f"*/{name}").splitlines()}
    must(len(owners) == 1, f"{library} is of one package, not of {owners}")
    return owners.pop()


loaded = {owner(library) for library in re.findall(r"=> (/\S+)", run("ldd", plan))}
installed = set(re.search(r"--no-install-recommends (.*?) &&", text)[1].split())
must(installed == loaded - BASE, f"the image installs the packages of the libraries that plan loads, {sorted(loaded - BASE)}; it installs {sorted(installed)}")
