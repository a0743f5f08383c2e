#!/usr/bin/env python3
"""Measures what it costs to include the headers that have a compile budget, and fails above it.

The cost is the compiler's CPU time (user + system) for a file that only includes the header, without optimisation, the
least of some runs. Machines differ: the budgets hold for one that compiles the yardstick in the time given below, and are
scaled up on one that takes longer for it.
"""

import argparse
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile

# Seconds, by header or by directory, and what is defined.
HEADERS, COMPILED = [], ["-DPARSEARCH_COMPILED"]
BUDGET = [
    ("concepts/", HEADERS, 1.0),
    ("search/mcmc.hpp", HEADERS, 1.5),
    ("problem/problem.hpp", COMPILED, 1.4),
    ("parsearch.hpp", COMPILED, 3.0),
    ("parsearch.hpp", HEADERS, 5.5),
]

# A header of another library at -O2, and the CPU seconds that it took where the budgets were set.
YARDSTICK = "boost/graph/adjacency_list.hpp", 0.97


def cpu_seconds(command):
    """CPU time of one finished command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def headers_of(include, entry):
    library = include / "parsearch"
    if entry.endswith("/"):
        return sorted(library.glob(entry + "**/*.hpp"))
    return [library / entry] if (library / entry).exists() else []


def main():
    default_include = pathlib.Path(__file__).resolve().parents[2] / "include"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slack", type=float, default=1.5, help="factor on every budget, against noise (1.5)")
    parser.add_argument("--runs", type=int, default=3, help="the least of this many runs counts (3)")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="with flags if need be ($CXX or g++)")
    parser.add_argument("--include", type=pathlib.Path, default=default_include, help="the folder that holds parsearch/")
    options = parser.parse_args()

    failed = False
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "only_include.cpp"
        command = [*shlex.split(options.compiler), "-std=c++20", "-O0", f"-I{options.include}", "-c", str(source),
                   "-o", str(source.with_suffix(".o"))]
        yardstick, usual = YARDSTICK
        source.write_text(f"#include <{yardstick}>\n", encoding="utf-8")
        taken = min(cpu_seconds([*command, "-O2"]) for _ in range(options.runs))
        machine = max(1.0, taken / usual)
        print(f"{yardstick} takes {taken:.2f} s at -O2, {usual} s where the budgets were set: they are scaled by {machine:.2f}\n")
        print(f"{'header':<40} {'seconds':>8} {'budget':>8}   (fails above {options.slack:g} x budget)")
        for entry, defined, budget in BUDGET:
            budget *= machine
            headers = headers_of(options.include, entry)
            if not headers:
                print(f"{entry:<40} {'missing':>8} {budget:>8.2f}   FAILED")
                failed = True
            for header in headers:
                name = header.relative_to(options.include / "parsearch").as_posix()
                source.write_text(f"#include <parsearch/{name}>\n", encoding="utf-8")
                seconds = min(cpu_seconds([*command, *defined]) for _ in range(options.runs))
                verdict = "ok" if seconds <= budget else "above budget, within slack"
                if seconds > budget * options.slack:
                    verdict, failed = "FAILED", True
                print(f"{' '.join([name, *defined]):<40} {seconds:>8.2f} {budget:>8.2f}   {verdict}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
