"""The recipe for Conan 2: `conan create packaging/conan --build=missing` packages the checkout that it lies in."""

import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

required_conan_version = ">=2.4"

# The options of these names: (package, part of it that is linked, versions) of what the component needs. The option compiled needs nothing.
COMPONENTS = {
    "io": [("nlohmann_json", "nlohmann_json", "[>=3.11 <4]")],
    "onnx": [("onnx", "libonnx", "[>=1.12 <2]"), ("protobuf", "libprotobuf", "[>=3.21]")],
    "verifier": [("z3", "libz3", "[>=4.8 <5]")],
    "flatbuffers": [("flatbuffers", "libflatbuffers", "[>=2]")],
}


class Parsearch(ConanFile):
    name = "parsearch"
    description = "C++20 library that searches parallelization strategies of neural networks"
    license = "Apache-2.0"
    topics = ("machine-learning", "parallelization", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    package_type = "header-library"
    options = {option: [True, False] for option in ("compiled", *COMPONENTS)}
    default_options = {"boost/*:header_only": True, **dict.fromkeys(options, False)}

    @property
    def components(self):
        return [component for component in COMPONENTS if self.options.get_safe(component)]

    def set_version(self):
        text = pathlib.Path(self.recipe_folder, "../../include/parsearch/core/version.hpp").read_text(encoding="utf-8")
        self.version = ".".join(re.search(f"#define PARSEARCH_VERSION_{part} ([0-9]+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        root = pathlib.Path(self.recipe_folder, "../..")
        for pattern in ("CMakeLists.txt", "LICENSE", "README.md", "cmake/*", "docs/*", "include/*", "packaging/debian/*", "src/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def configure(self):
        if self.options.compiled:
            self.package_type = "static-library"

    def layout(self):
        self.folders.root = "../.."
        cmake_layout(self)

    def requirements(self):
        self.requires("boost/[>=1.74]", transitive_headers=True)
        self.requires("range-v3/[>=0.12]", transitive_headers=True)
        for component in self.components:
            for package, _, version in COMPONENTS[component]:
                self.requires(f"{package}/{version}", transitive_headers=True, transitive_libs=True)

    def build_requirements(self):
        if self.options.flatbuffers:
            self.tool_requires("flatbuffers/<host_version>")

    def package_id(self):
        if not self.info.options.compiled:
            self.info.settings.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for program in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "CUDA_PROFILER", "CPU_PROFILER", "MPI"):
            toolchain.cache_variables[f"PARSEARCH_{program}"] = "OFF"
        for component in COMPONENTS:
            toolchain.cache_variables[f"PARSEARCH_{component.upper()}"] = "ON" if component in self.components else "OFF"
        toolchain.cache_variables["PARSEARCH_COMPILED"] = "ON" if self.options.compiled else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder, "licenses"))
        for folder in ("doc", "licenses", "pkgconfig"):
            rmdir(self, pathlib.Path(self.package_folder, "share", folder))

    def package_info(self):
        # For CMake the files of the library itself, so that packages, components and targets have the same names as everywhere.
        self.cpp_info.set_property("cmake_find_mode", "none")
        # For other build systems.
        headers = self.cpp_info.components["parsearch"]
        headers.requires = ["boost::headers", "range-v3::range-v3"]
        headers.builddirs = ["share/cmake/parsearch"]
        headers.bindirs = headers.libdirs = []
        headers.system_libs = ["pthread"] if self.settings.get_safe("os") in ("Linux", "FreeBSD") else []
        for component in self.components:
            part = self.cpp_info.components[component]
            part.requires = ["parsearch", *(f"{package}::{linked}" for package, linked, _ in COMPONENTS[component])]
            part.bindirs = part.libdirs = []
        if self.options.compiled:
            compiled = self.cpp_info.components["compiled"]
            compiled.requires = ["parsearch"]
            compiled.defines = ["PARSEARCH_COMPILED"]
            compiled.libs = ["parsearch_compiled"]
            compiled.bindirs = []
