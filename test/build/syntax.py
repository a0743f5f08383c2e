#!/usr/bin/env python3
"""Has clang check every header, alone and included twice, and every source, all by syntax alone.

    syntax.py --root <project> [--folder <of sources>]... [--leave-out <regular expression>]... <clang++> <flags...>

Headers are the .hpp files of include/. What is defined in .ipp files is compiled with the sources of src/. Hundreds of files include much the same: what many of
them need is precompiled. That hides nothing, since a file is compiled on top of a header that it includes itself, directly or not. Which headers are
precompiled follows from the includes and takes no list.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
# What includes these instantiates them, too.
HEAVY = {"nlohmann/json.hpp": 800, "onnx/onnx_pb.h": 500}


def weight(file):
    """What parsing a file costs, roughly, in units of a small header of the standard library. Files of the project are paths, others names."""
    if isinstance(file, pathlib.Path):
        return 12
    return HEAVY.get(file, 40 if "/" in file else 1)


def closures(files, folders):
    """What each file includes, directly or not, itself too."""
    closed = {}

    def find(name, file):
        return next((path for folder in [file.parent, *folders] if (path := folder / name).is_file()), name)

    def close(file):
        if file not in closed:
            closed[file] = {file}
            if isinstance(file, pathlib.Path):
                included = (find(name, file) for name in INCLUDE.findall(file.read_text(encoding="utf-8")))
                # PARSEARCH_COMPILED is defined: headers do not include what defines their functions.
                closed[file].update(*(close(other) for other in included if file.suffix != ".hpp" or pathlib.Path(other).suffix != ".ipp"))
        return closed[file]

    return {file: close(file) for file in files}


def choose_bases(closed, headers):
    """The headers to precompile, and for each file the one to start from or None. Takes the header that saves most until none saves anything."""
    cost = {file: sum(map(weight, closed[file])) for file in closed}
    users = {header: [user for user in closed if header in closed[user] and user != header] for header in headers}
    base = dict.fromkeys(closed)
    bases = []

    def saved(header):
        gain = sum(max(0, cost[header] - (cost[base[user]] if base[user] else 0)) for user in users[header])
        return gain - 2 * cost[header] # writing what was parsed takes about as long as parsing it

    while headers and saved(best := max(headers, key=saved)) > 0:
        bases.append(best)
        for user in users[best]:
            if not base[user] or cost[base[user]] < cost[best]:
                base[user] = best
    return bases, base


def check(headers, sources, folders, command, jobs):
    """(complaints, number of headers precompiled)"""
    bases, base = choose_bases(closures(headers + sources, folders), headers)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        precompiled = {header: pathlib.Path(folder, f"{number}.pch") for number, header in enumerate(bases)}

        def run(file, *options):
            text = f'#include "{file}"\n' * (2 if file in headers else 1)
            done = subprocess.run([*command, *options, "-x", "c++-header" if file in headers else "c++", "-"], input=text, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            return f"{file} does not compile alone:\n{done.stdout}" if done.returncode else None

        def precompile(header):
            return run(header, "-fpch-instantiate-templates", "-o", precompiled[header])

        def compile_alone(file):
            return run(file, "-fsyntax-only", *(["-include-pch", precompiled[base[file]]] if base[file] else []))

        complaints = [said for said in pool.map(precompile, bases) if said]
        if not complaints:
            complaints = [said for said in pool.map(compile_alone, [file for file in headers + sources if file not in bases]) if said]
    return complaints, len(bases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="the project")
    parser.add_argument("--folder", action="append", default=[], help="the project's folders whose sources are checked")
    parser.add_argument("--leave-out", action="append", default=[], help="files whose path this regular expression finds are left out, aloud")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="clang++ and flags")
    options = parser.parse_args()
    if not options.command:
        parser.error("no compiler given")
    root = options.root.resolve()
    headers = sorted((root / "include").rglob("*.hpp"))
    sources = sorted(source for folder in options.folder for source in (root / folder).rglob("*.cpp"))
    for expression in options.leave_out:
        every = headers + sources
        headers, sources = ([file for file in files if not re.search(expression, str(file.relative_to(root)))] for files in (headers, sources))
        print(f"{len(every) - len(headers) - len(sources)} files left out: {expression}")
    complaints, bases = check(headers, sources, [root / "include", root], options.command, options.jobs)
    for complaint in complaints:
        print(complaint)
    print(f"{len(headers)} headers and {len(sources)} sources, {bases} headers precompiled, {len(complaints)} errors")
    sys.exit(1 if complaints or not headers else 0)


if __name__ == "__main__":
    main()
