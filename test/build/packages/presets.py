#!/usr/bin/env python3
"""Checks the presets that an editor offers: each says what it is and can be built, and the one called default asks for no compiler and no generator."""

import json

from package import ROOT, must, run

presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
by_name = {preset["name"]: preset for preset in presets["configurePresets"]}
offered = [preset for preset in by_name.values() if not preset.get("hidden")]
listed = run("cmake", "--list-presets", cwd=ROOT)
for preset in offered:
    must(f'"{preset["name"]}"' in listed and preset.get("displayName", "") in listed, f"cmake offers the preset {preset['name']}")
    must(preset.get("displayName"), f"the preset {preset['name']} says in its displayName what it is")
    must([build["name"] for build in presets["buildPresets"] if build["configurePreset"] == preset["name"]] == [preset["name"]],
         f"the preset {preset['name']} has a build preset of its name")
must(offered[0]["name"] == "default", "the preset default comes first")
default = by_name["default"]
must("inherits" not in default and "generator" not in default and "CMAKE_CXX_COMPILER" not in default["cacheVariables"],
     "the preset default takes the generator and the compiler that are there")
