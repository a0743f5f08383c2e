#!/usr/bin/env python3
"""Fails when a header includes what stands above it, or a library that has no place in it, or does not refuse wrong compilers; names another module's
detail; or shares its name.

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
    "mpi": {"core", "concepts", "space", "search"},
}
# Which folders of a directory the headers of another one there may include: those before theirs; of those in parentheses none includes another. What
# lies in the directory itself is above all. Directories that are not here have no floors of their own.
FLOORS = {
    "sim": ["input", "schedule", "task", "memory", ("bounds", "delta")],
    "search": ["kernel", ("threads", "chain", "additive"), "bounds"],
    "rewrite": [("parallel", "algebra", "mapping"), "rules", "joint"],
    "lab": [("rules", "reference"), "prover"],
    "fabric": ["network", "paths", "wiring", "servers", "cooptimize"],
    "io": ["text", "json", "described", "files", "names", ("foreign", "flatbuffers", "display", "exports", "instances"), "report", "onnx"],
    "io/onnx": ["network", ("file", "patterns", "translators"), "lower"],
}
# Single headers that may include more.
ALSO = {"search/additive/minimise.ipp": {"graph"}}
# The only header outside the directories; it may include everything.
UMBRELLA = "parsearch.hpp"
# What refuses wrong compilers: all others include it, directly or not.
GATE = "core/compiler.hpp"

# Other libraries: the first pattern that matches an include says where it is allowed (directories, folders in them or single headers).
# The standard library (no dot, no slash) is allowed everywhere; what matches no pattern only in io.
ABOVE_CONCEPTS = set(MAY_INCLUDE) - {"core", "concepts"}
LIBRARIES = [
    (r"range/v3/all\.hpp", set(), "slow to compile, include single views"),
    (r"range/v3/", ABOVE_CONCEPTS - {"sim", "search"}, "keep range-v3 out of inner loops and basic headers"),
    (r"boost/(graph|pending|property_map)/", {"graph", "rewrite", "fabric"}, "Boost.Graph stays in graph, rewrite and fabric"),
    (r"boost/hana(/|\.hpp)", {"io"}, "Hana stays in io"),
    (r"boost/mpi(/|\.hpp)", {"mpi"}, "Boost.MPI stays in mpi"),
    (r"boost/", set(MAY_INCLUDE) - {"core"}, "core stands on the standard library alone"),
    (r"z3(\+\+)?\.h", {"lab/prover"}, "Z3 stays in lab/prover"),
    (r".*", {"io"}, "the library needs Boost and range-v3, nothing else"),
]

LONG, TOO_LONG = 400, 600  # lines of a header: listed, refused
MOST_HEADERS = 25  # of a folder


def included(header, root, text):
    """(line, path) of every include, as written between <>; a quoted neighbour as if it were."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"\s]+)[>"]', line) # files have no spaces, the sentences of GATE do
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
    if above == directory:
        return wrong_floor(name, target)
    if above in MAY_INCLUDE[directory] | ALSO.get(name, set()):
        return None
    return f"{directory} may not include {above}"


def floor_of(folder, rest):
    """(number, name) of the floor of FLOORS[folder] on which the header `rest` below it lies; the highest is the folder itself. None: no such floor."""
    floors = FLOORS[folder]
    if "/" not in rest:
        return len(floors), folder
    name = rest.split("/")[0]
    for number, floor in enumerate(floors):
        if name in (floor if isinstance(floor, tuple) else (floor,)):
            return number, name
    return None


def wrong_floor(name, target):
    """Why the header `name` may not include `target` of the same directory, or None."""
    for folder in FLOORS:
        if not (name.startswith(folder + "/") and target.startswith(folder + "/")):
            continue
        mine, other = (floor_of(folder, header[len(folder) + 1:]) for header in (name, target))
        if not mine or not other:
            return f"{folder} has no such folder"
        if other[0] > mine[0] or other[0] == mine[0] and other[1] != mine[1]:
            return f"{mine[1]} may not include {other[1]}"
    return None


def uses_of_detail(text):
    """(line, module) of every use of the namespace detail of a module, comments left out."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("//")[0]
        if re.match(r"\s*namespace\b", line):
            continue
        for found in re.finditer(r"\b(?:parsearch::)?(\w+)::(?:\w+::)*detail\b", line):
            if found[1] in MAY_INCLUDE:
                yield number, found[1]


def wrong_library(name, directory, path):
    """Why the header `name` may not include `path` of another library, or None."""
    if re.fullmatch(r"[a-z0-9_]+", path):
        return None
    for pattern, allowed, reason in LIBRARIES:
        if re.match(pattern, path):
            return None if allowed & {directory, name, name.rpartition("/")[0]} else reason


def beside_gate(root, headers):
    """The headers that do not include GATE. None where there is no GATE."""
    includes = {header.relative_to(root).as_posix(): {path for _, path in included(header, root, header.read_text(encoding="utf-8"))} for header in headers}
    behind = {"parsearch/" + GATE} & includes.keys()
    if not behind:
        return []
    while more := {name for name, paths in includes.items() if name not in behind and paths & behind}:
        behind |= more
    return sorted(includes.keys() - behind)


def wrong_definitions(library, sources):
    """What is wrong with the .ipp files, each of which its header and one of the sources must include."""
    listed = [path for source in sources for _, path in included(source, library.parent, source.read_text(encoding="utf-8"))]
    for file in sorted(library.rglob("*.ipp")):
        name = file.relative_to(library).as_posix()
        path = f"parsearch/{name}"
        header = file.with_suffix(".hpp")
        if not header.exists() or f"#include <{path}>" not in header.read_text(encoding="utf-8"):
            yield f"{name}: no header of this name includes it"
        if (times := listed.count(path)) != 1:
            yield f"{name}: is included {times} times in src, must be once"


def check(root):
    """(errors, warnings) of the headers under root/parsearch, and of the .ipp files with what they declare."""
    root = pathlib.Path(root).resolve()
    library = root / "parsearch"
    headers = sorted(library.rglob("*.[hi]pp"))
    errors, warnings, named, held = [], [], {}, {}
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
        for line, module in uses_of_detail(text):
            if module != directory:
                errors.append(f"{name}:{line}: uses what is in detail of {module}: what two modules need has a name of its own")
        if header.suffix == ".hpp":
            named.setdefault(header.name, []).append(name)
            held.setdefault(header.parent, []).append(name)
        lines = len(text.splitlines())
        if lines > TOO_LONG:
            errors.append(f"{name}: {lines} lines, allowed are {TOO_LONG}")
        elif lines > LONG:
            warnings.append(f"{name}: {lines} lines, better at most {LONG}")
    errors += [f"{second}: has the name of {first}" for first, *others in named.values() for second in others]
    for folder, names in held.items():
        if len(names) > MOST_HEADERS:
            errors.append(f"{folder.relative_to(library)}: {len(names)} headers, allowed are {MOST_HEADERS}")
    errors += [f"{name.removeprefix('parsearch/')}: does not include {GATE}, directly or not"
               for name in beside_gate(root, [header for header in headers if header.suffix == ".hpp"])]
    errors += wrong_definitions(library, sorted((root.parent / "src").rglob("*.cpp")))
    return errors, warnings, len(headers)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    errors, warnings, count = check(sys.argv[1])
    for warning in warnings:
        print("warning:", warning)
    for error in errors:
        print("error:", error)
    print(f"{count} headers and files of definitions, {len(errors)} errors, {len(warnings)} warnings")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
