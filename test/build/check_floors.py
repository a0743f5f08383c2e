#!/usr/bin/env python3
"""Fails when a header includes what stands above it, or a library that has no place in it.

    check_floors.py <folder that holds parsearch/>
"""

import pathlib
import re
import sys

# What the headers of a directory may include beside their own directory.
ALL_BUT_IO = {"core", "concepts", "ops", "graph", "models", "topology", "space", "cost", "sim", "search", "rewrite", "fabric"}
MAY_INCLUDE = {
    "core": set(),
    "concepts": {"core"},
    "ops": {"core", "concepts"},
    "graph": {"core", "concepts", "ops"},
    "models": {"core", "concepts", "ops", "graph"},
    "topology": {"core", "concepts"},
    "space": {"core", "concepts", "ops", "graph", "topology"},
    "cost": {"core", "concepts", "ops", "topology"},
    "sim": {"core", "concepts", "ops", "graph", "topology", "space", "cost"},
    "search": {"core", "concepts"},
    "problem": {"core", "concepts", "ops", "graph", "topology", "space", "cost", "sim", "search"},
    "rewrite": ALL_BUT_IO | {"problem", "pipeline"},
    "fabric": ALL_BUT_IO | {"problem"},
    "pipeline": {"core", "concepts", "ops", "graph", "topology", "space", "cost", "sim", "search", "problem"},
    "flexnet": {"core", "concepts", "ops", "graph", "topology", "space", "sim", "fabric", "problem"},
    "io": ALL_BUT_IO | {"problem", "pipeline", "flexnet"},
    "lab": {"core", "concepts", "ops", "graph", "search", "rewrite"},
}
# Single headers that may include more.
ALSO = {"search/additive/minimise.hpp": {"graph"}}
# The only header outside the directories; it may include everything.
UMBRELLA = "parsearch.hpp"

# Other libraries: the first pattern that matches an include says where it is allowed (directories, folders in them or single headers).
# The standard library (no dot, no slash) is allowed everywhere; what matches no pattern only in io.
ABOVE_CONCEPTS = set(MAY_INCLUDE) - {"core", "concepts"}
LIBRARIES = [
    (r"range/v3/all\.hpp", set(), "slow to compile, include single views"),
    (r"range/v3/", ABOVE_CONCEPTS - {"sim", "search"}, "keep range-v3 out of inner loops and basic headers"),
    (r"boost/(graph|pending|property_map)/", {"graph", "rewrite", "fabric"}, "Boost.Graph stays in graph, rewrite and fabric"),
    (r"boost/hana(/|\.hpp)", {"ops", "space", "io", "search/portfolio.hpp"}, "Hana stays in ops, space, io and search/portfolio.hpp"),
    (r"boost/", set(MAY_INCLUDE) - {"core"}, "core stands on the standard library alone"),
    (r"z3(\+\+)?\.h", {"lab/prover"}, "Z3 stays in lab/prover"),
    (r".*", {"io"}, "the library needs Boost and range-v3, nothing else"),
]

LONG, TOO_LONG = 400, 600  # lines of a header: listed, refused


def included(header, root, text):
    """(line, path) of every include, as written between <>; a quoted neighbour as if it were."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not found:
            continue
        path = found[2]
        neighbour = (header.parent / path).resolve()
        if found[1] == '"' and neighbour.is_relative_to(root) and neighbour.exists():
            path = neighbour.relative_to(root).as_posix()
        yield number, path


def wrong_arrow(name, directory, target):
    """Why the header `name` may not include the header `target` of the library, or None."""
    if name == UMBRELLA:
        return None
    above = target.split("/")[0] if "/" in target else target
    if above == directory or above in MAY_INCLUDE[directory] | ALSO.get(name, set()):
        return None
    return f"{directory} may not include {above}"


def wrong_library(name, directory, path):
    """Why the header `name` may not include `path` of another library, or None."""
    if re.fullmatch(r"[a-z0-9_]+", path):
        return None
    for pattern, allowed, reason in LIBRARIES:
        if re.match(pattern, path):
            return None if allowed & {directory, name, name.rpartition("/")[0]} else reason


def check(root):
    """(errors, warnings) of the headers under root/parsearch, and of the .ipp files with what they declare."""
    root = pathlib.Path(root).resolve()
    library = root / "parsearch"
    headers = sorted(library.rglob("*.[hi]pp"))
    errors, warnings = [], []
    if not headers:
        errors.append(f"{library}: no headers")
    for header in headers:
        name = header.relative_to(library).as_posix()
        directory = name.split("/")[0] if "/" in name else ""
        if name != UMBRELLA and directory not in MAY_INCLUDE:
            errors.append(f"{name}: belongs to no known directory")
            continue
        text = header.read_text(encoding="utf-8")
        for line, path in included(header, root, text):
            if path.startswith("parsearch/"):
                reason = wrong_arrow(name, directory, path.removeprefix("parsearch/"))
            else:
                reason = wrong_library(name, directory, path)
            if reason:
                errors.append(f"{name}:{line}: includes {path}: {reason}")
        lines = len(text.splitlines())
        if lines > TOO_LONG:
            errors.append(f"{name}: {lines} lines, allowed are {TOO_LONG}")
        elif lines > LONG:
            warnings.append(f"{name}: {lines} lines, better at most {LONG}")
    return errors, warnings, len(headers)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    errors, warnings, count = check(sys.argv[1])
    for warning in warnings:
        print("warning:", warning)
    for error in errors:
        print("error:", error)
    print(f"{count} headers, {len(errors)} errors, {len(warnings)} warnings")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
