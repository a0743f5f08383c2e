"""Builds and runs the consumer of the project's own tests with the package, as `conan create` asks for."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout

COMPONENTS = ("compiled", "io", "onnx", "verifier", "flatbuffers")


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    @property
    def programs(self):
        return ["consumer_small", *["consumer_compiled"] * bool(self.dependencies["parsearch"].options.compiled)]

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        options = self.dependencies["parsearch"].options
        components = [component for component in COMPONENTS if options.get_safe(component)]
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["CONSUMER_COMPONENTS"] = "|".join(f"parsearch::{component}" for component in components)
        toolchain.cache_variables["PARSEARCH_WANTED"] = str(self.dependencies["parsearch"].ref.version)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="../../../test/build/consumer")
        for program in self.programs:
            cmake.build(target=program)

    def test(self):
        if can_run(self):
            for program in self.programs:
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
