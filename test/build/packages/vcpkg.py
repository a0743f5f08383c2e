#!/usr/bin/env python3
"""Checks the port of vcpkg without vcpkg: its manifest against the rules for manifests and against the library, and its portfile by running it with
functions that stand for those of vcpkg (vcpkg.cmake); they configure and install for real. Then a consumer is built with what it installed.
"""

import json
import re
import shutil

from package import ROOT, VERSION, arguments, must, run, use

PORT = ROOT / "packaging" / "vcpkg" / "parsearch"
NAME = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
FIELDS = {"name", "version-semver", "description", "license", "supports", "dependencies", "features"} # of those allowed, the ones in use
REFERENCE_FIELDS = {"name", "host", "features", "default-features", "platform", "version>="}


def check_dependencies(owner, of):
    for entry in of:
        reference = {"name": entry} if isinstance(entry, str) else entry
        must(NAME.fullmatch(reference.get("name", "")), f"vcpkg.json: {owner} depends on a port by its name, not on {entry}")
        must(reference.keys() <= REFERENCE_FIELDS, f"vcpkg.json: fields of the dependency {entry} are known")


def check_manifest(manifest, components):
    must(manifest.keys() <= FIELDS, f"vcpkg.json: its fields are among {sorted(FIELDS)}")
    must(manifest["name"] == PORT.name and NAME.fullmatch(PORT.name), "vcpkg.json: the port has the name of its folder")
    must(manifest["version-semver"] == VERSION, f"vcpkg.json: the version is that of include/parsearch/core/version.hpp, {VERSION}")
    must(manifest["features"].keys() == components, f"vcpkg.json: the features are the components of the library, {sorted(components)}")
    check_dependencies(PORT.name, manifest["dependencies"])
    for name, feature in manifest["features"].items():
        must(NAME.fullmatch(name) and feature.get("description") and feature.keys() <= {"description", "dependencies"}, f"vcpkg.json: feature {name}")
        check_dependencies(name, feature.get("dependencies", []))


def check_installed(packages):
    """What vcpkg itself looks for after a build."""
    for name in ("copyright", "usage", "parsearch-config.cmake"):
        must((packages / "share" / "parsearch" / name).is_file(), f"the port installs share/parsearch/{name}")
    for name in ("debug/include", "debug/share", "share/cmake", "lib/cmake"):
        must(not (packages / name).exists(), f"the port leaves no {name}")
    for path in packages.rglob("*"):
        must(path.is_file() or any(path.iterdir()), f"the port leaves no empty folder; {path} is")
        must(path.suffix not in (".cmake", ".pc") or str(packages) not in path.read_text(encoding="utf-8"), f"{path} names no folder of the build")


args = arguments(__doc__)
listed = re.search(r"foreach\(component ([A-Z ]+)\)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1].lower().split()
check_manifest(json.loads((PORT / "vcpkg.json").read_text(encoding="utf-8")), {"compiled", *listed})
host_tools = args.work / "host" / "tools" / "flatbuffers"
host_tools.mkdir(parents=True)
if "flatbuffers" in args.components:
    (host_tools / "flatc").symlink_to(shutil.which("flatc"))
packages = args.work / "packages"
run("cmake", "-D", f"FEATURES=core;{';'.join(args.components)}", "-D", f"CURRENT_PORT_DIR={PORT}", "-D", f"CURRENT_PACKAGES_DIR={packages}",
    "-D", f"CURRENT_BUILDTREES_DIR={args.work}/trees", "-D", f"CURRENT_HOST_INSTALLED_DIR={args.work}/host",
    "-P", ROOT / "test/build/packages/vcpkg.cmake")
check_installed(packages)
installed = packages.rename(args.work / "installed") # as vcpkg does
use(args, installed)
