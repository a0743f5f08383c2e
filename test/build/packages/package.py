"""What the checks of the packages share: the checkout and its version, programs that must succeed, and a consumer of what was packaged."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONSUMER = ROOT / "test" / "build" / "consumer"
_header = (ROOT / "include/parsearch/core/version.hpp").read_text(encoding="utf-8")
VERSION = ".".join(re.search(f"#define PARSEARCH_VERSION_{part} ([0-9]+)", _header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder to build in, emptied first")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--generator", default="Ninja", help="of CMake, for every build")
    parser.add_argument("--components", default="", metavar="NAME,NAME...", help="those whose packages are here")
    parser.add_argument("--compiled", action="store_true", help="with the component compiled, which takes longer")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.components = [name for name in args.components.split(",") if name] + ["compiled"] * args.compiled
    os.environ.update(CXX=args.compiler, CMAKE_GENERATOR=args.generator) # for every cmake from here on
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    return args


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need(program):
    return shutil.which(program) or skip(f"{program} is not found")


def must(holds, rule):
    if not holds:
        sys.exit(f"does not hold: {rule}")


def run(*command, **options):
    """The output of a command, which must succeed."""
    command = [str(word) for word in command]
    print("$", *command, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}\nended with {done.returncode}: {' '.join(command)}")
    return done.stdout


def configure_library(args):
    """The folder of a build of the library alone."""
    build = args.work / "library"
    run("cmake", "-S", ROOT, "--preset", "library", "-B", build, "-D", f"PARSEARCH_COMPILED={'ON' if args.compiled else 'OFF'}")
    return build


def must_be_consumer(output):
    must(output == f"parsearch {VERSION}, 8 devices\n", f"the consumer says version and devices; it said {output!r}")


def use(args, prefix):
    """Finds the package under the prefix with its components, builds the consumer and runs it."""
    build = args.work / "consumer"
    run("cmake", "-S", CONSUMER, "-B", build, "-D", "CMAKE_BUILD_TYPE=Debug", "-D", f"CMAKE_PREFIX_PATH={prefix}", "-D", f"PARSEARCH_WANTED={VERSION}",
        "-D", "CONSUMER_COMPONENTS=" + "|".join(f"parsearch::{name}" for name in args.components))
    found = re.search("^parsearch_DIR:.*=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)[1]
    must(pathlib.Path(found).is_relative_to(prefix), f"the consumer finds the package under {prefix}, not in {found}")
    run("cmake", "--build", build, "--target", "consumer_small", *["consumer_compiled"] * args.compiled)
    must_be_consumer(run(build / "consumer_small"))
    if args.compiled:
        run(build / "consumer_compiled")
