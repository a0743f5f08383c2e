#!/usr/bin/env python3
"""Measures what it costs to compile the headers and programs that have a compile budget, and fails above it.

The cost is the compiler's CPU time (user + system) for a file that only includes the header, without optimisation, or for the program at -O2. Machines
differ, and so do moments on one: a yardstick is compiled just before every run, and the budget is scaled up where that takes
longer than it did where the budgets were set. Each is run again until it is within its budget, a few times at most; the
run that is the smallest part of its budget counts.
"""

import argparse
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile

# Seconds, by header, folder of headers or program, and what is defined.
HEADERS, COMPILED = [], ["-DPARSEARCH_COMPILED"]
BUDGET = [
    ("concepts/", HEADERS, 1.0),
    ("search/mcmc.hpp", HEADERS, 1.5),
    ("problem/problem.hpp", COMPILED, 1.2),
    ("parsearch.hpp", COMPILED, 2.2),
    ("parsearch.hpp", HEADERS, 5.5),
    ("examples/quickstart.cpp", COMPILED, 8.5),
]

# A header of another library at -O2, and the CPU seconds that it took where the budgets were set.
YARDSTICK = "boost/graph/adjacency_list.hpp", 0.97


def cpu_seconds(command):
    """CPU time of one finished command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


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
    parser.add_argument("--slack", type=float, default=1.5, help="factor on every budget, against noise (1.5)")
    parser.add_argument("--runs", type=int, default=3, help="at most this many runs of each (3)")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="with flags if need be ($CXX or g++)")
    parser.add_argument("--include", type=pathlib.Path, default=default_include, help="the folder that holds parsearch/")
    options = parser.parse_args()

    failed = False
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "only_include.cpp"
        command = [*shlex.split(options.compiler), "-std=c++20", f"-I{options.include}", "-c", "-o", str(source.with_suffix(".o"))]
        yardstick, usual = YARDSTICK

        def including(header, *more):
            source.write_text(f"#include <{header}>\n", encoding="utf-8")
            return cpu_seconds([*command, *more, str(source)])

        print(f"yardstick: {yardstick} at -O2 in {usual} s; budgets are scaled by what it takes here before each run\n")
        print(f"{'header or program':<50} {'seconds':>8} {'budget':>8}   (fails above {options.slack:g} x budget)")
        for entry, defined, budget in BUDGET:
            files = files_of(options.include, entry)
            if not files:
                print(f"{entry:<50} {'missing':>8} {budget:>8.2f}   FAILED")
                failed = True
            for file in files:
                header = file.suffix == ".hpp"
                name = file.relative_to(options.include / "parsearch" if header else options.include.parent).as_posix()
                runs = []
                while len(runs) < options.runs and (not runs or min(runs)[0] > 1):
                    scaled = budget * max(1.0, including(yardstick, "-O2") / usual)
                    seconds = including(f"parsearch/{name}", "-O0", *defined) if header else cpu_seconds([*command, "-O2", *defined, str(file)])
                    runs.append((seconds / scaled, seconds, scaled))
                part, seconds, scaled = min(runs)
                verdict = "ok" if part <= 1 else "above budget, within slack"
                if part > options.slack:
                    verdict, failed = "FAILED", True
                print(f"{' '.join([name, *defined]):<50} {seconds:>8.2f} {scaled:>8.2f}   {verdict}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
