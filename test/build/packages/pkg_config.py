#!/usr/bin/env python3
"""Compiles a consumer with what pkg-config says of an installed library, also after it was moved. Exit code 77 where there is no pkg-config."""

import os

from package import CONSUMER, VERSION, arguments, configure_library, must, must_be_consumer, need, run

args = arguments(__doc__)
pkg_config = need("pkg-config")
run("cmake", "--install", configure_library(args), "--prefix", args.work / "installed")
moved = args.work / "moved"
(args.work / "installed").rename(moved)
environment = {**os.environ, "PKG_CONFIG_PATH": str(moved / "share" / "pkgconfig")}


def ask(*questions):
    return run(pkg_config, *questions, "parsearch", env=environment).split()


must(ask("--modversion") == [VERSION], f"pkg-config says version {VERSION}")
flags = ask("--cflags", "--libs")
includes = [os.path.realpath(flag[2:]) for flag in flags if flag.startswith("-I")]
must(includes == [str(moved / "include")], f"the headers are where the library was moved to; the flags are {flags}")
run(args.compiler, "-std=c++20", CONSUMER / "small.cpp", *flags, "-o", args.work / "consumer")
must_be_consumer(run(args.work / "consumer"))
