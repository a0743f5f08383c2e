#!/usr/bin/env python3
"""Makes the Conan package of the checkout with `conan create`, which builds and runs a consumer with it. ConanCenter is not asked: recipes of the same
names stand for the libraries of the system. Conan 2 is the one in PATH, or is installed into an environment beside the build.
Exit code 77 where it is not to be had.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from package import ROOT, VERSION, arguments, must, run, skip

HERE = pathlib.Path(__file__).resolve().parent
SYSTEM = {"boost": "1.74.0", "range-v3": "0.12.0", "nlohmann_json": "3.11.2"} # as in Debian 12


def installed(environment):
    """The program conan of an environment of its own, made where it is not there yet."""
    program = environment / "bin" / "conan"
    if not program.exists():
        for command in ([sys.executable, "-m", "venv", environment],
                        [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "15", "conan>=2.4,<3"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180, check=False)
            if done.returncode:
                shutil.rmtree(environment, ignore_errors=True)
                skip(f"conan cannot be installed here: {done.stdout.strip().splitlines()[-1]}")
    return program


args = arguments(__doc__)
conan = shutil.which("conan") or installed(args.work.with_name("conan_environment"))
os.environ["CONAN_HOME"] = str(args.work / "home")
run(conan, "profile", "detect")
run(conan, "remote", "disable", "*")
for name, version in SYSTEM.items():
    run(conan, "export", HERE / "system", "--name", name, "--version", version)
options = [f"&:{name}=True" for name in args.components if name in ("io", "compiled")]
output = run(conan, "create", ROOT / "packaging" / "conan", "--build=missing", "-s", "compiler.cppstd=20", *[word for o in options for word in ("-o", o)],
             "-c", f"tools.cmake.cmake_layout:test_folder={args.work}/test", "-c", f"tools.cmake.cmaketoolchain:generator={args.generator}")
must(f"\nparsearch {VERSION}, 8 devices\n" in output, f"the consumer says version and devices in:\n{output}")
