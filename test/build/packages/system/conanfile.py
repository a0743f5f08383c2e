"""Stands in for a package of ConanCenter: names, parts and versions as there, headers from the system. Name and version come from the command line."""

from conan import ConanFile

# By name: the CMake package, and the part of the package with its target.
PACKAGES = {
    "boost": ("Boost", "headers", "Boost::headers"),
    "range-v3": ("range-v3", "range-v3", "range-v3::range-v3"),
    "nlohmann_json": ("nlohmann_json", "nlohmann_json", "nlohmann_json::nlohmann_json"),
}


class System(ConanFile):
    options = {"header_only": [True, False]}
    default_options = {"header_only": True}

    def package_info(self):
        package, part, target = PACKAGES[self.name]
        self.cpp_info.set_property("cmake_file_name", package)
        self.cpp_info.components[part].set_property("cmake_target_name", target)
        self.cpp_info.components[part].includedirs = []
        self.cpp_info.components[part].libdirs = self.cpp_info.components[part].bindirs = []
