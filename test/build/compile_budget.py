#!/usr/bin/env python3
"""Measures what it costs to compile the headers and programs that have a compile budget, and fails above it.

The cost is the memory that g++ allocates in all, as its -ftime-report says, for a file that only includes the header, without optimisation, or for
the program at -O2. Time follows it, but differs by half from one moment to the next where a machine has more to do; what is allocated is the same
in every run. Another version allocates otherwise: a yardstick is compiled, too, and the budgets are scaled by what it takes.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# Megabytes, a few per cent above what it takes, by header, folder of headers or program, and what is defined.
HEADERS, COMPILED = [], ["-DPARSEARCH_COMPILED"]
BUDGET = [
    ("concepts/", HEADERS, 100),
    ("search/mcmc.hpp", HEADERS, 155),
    ("problem/problem.hpp", COMPILED, 280),
    ("parsearch.hpp", COMPILED, 420),
    ("parsearch.hpp", HEADERS, 1220),
    ("examples/quickstart.cpp", COMPILED, 790),
]

# A header of another library at -O2, and the megabytes that it took where the budgets were set, with g++ 12.2.
YARDSTICK = "boost/graph/adjacency_list.hpp", 281

UNITS = {"k": 1 / 1024, "M": 1, "G": 1024}


def cost(command):
    """Megabytes that one compilation allocated."""
    done = subprocess.run([*command, "-ftime-report"], capture_output=True, text=True)
    said = re.search(r"(?m)^ *TOTAL +:.* (\d+)([kMG])$", done.stderr)
    if done.returncode != 0 or not said:
        sys.exit(f"{shlex.join(command)}: {done.stderr.strip()}\nno compilation by a g++ that says what memory it took")
    return int(said[1]) * UNITS[said[2]]


def files_of(include, entry):
    if entry.endswith(".cpp"):
        return [include.parent / entry]
    library = include / "parsearch"
    if entry.endswith("/"):
        return sorted(library.glob(entry + "**/*.hpp"))
    return [library / entry] if (library / entry).exists() else []


def main():
    default_include = pathlib.Path(__file__).resolve().parents[2] / "include"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="a g++, with flags if need be ($CXX or g++)")
    parser.add_argument("--include", type=pathlib.Path, default=default_include, help="the folder that holds parsearch/")
    options = parser.parse_args()

    failed = False
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "only_include.cpp"
        command = [*shlex.split(options.compiler), "-std=c++20", f"-I{options.include}", "-c", "-o", str(source.with_suffix(".o"))]

        def including(header, *more):
            source.write_text(f"#include <{header}>\n", encoding="utf-8")
            return cost([*command, *more, str(source)])

        yardstick, usual = YARDSTICK
        taken = including(yardstick, "-O2")
        scale = taken / usual
        print(f"yardstick: {yardstick} at -O2 allocates {taken:.0f} MB, {usual} where the budgets were set, which are scaled by that\n")
        print(f"{'header or program':<50} {'MB':>6} {'budget':>7}")
        for entry, defined, budget in BUDGET:
            files = files_of(options.include, entry)
            if not files:
                print(f"{entry:<50} missing: FAILED")
                failed = True
            for file in files:
                header = file.suffix == ".hpp"
                name = file.relative_to(options.include / "parsearch" if header else options.include.parent).as_posix()
                taken = including(f"parsearch/{name}", "-O0", *defined) if header else cost([*command, "-O2", *defined, str(file)])
                within = taken <= budget * scale
                failed = failed or not within
                print(f"{' '.join([name, *defined]):<50} {taken:>6.0f} {budget * scale:>7.0f}   {'ok' if within else 'FAILED'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
