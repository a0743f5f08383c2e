#!/usr/bin/env python3
"""Writes one translation unit made of several sources, which then share the headers and templates that they compile.

    unit.py UNIT FOLDER SOURCE...

Sources lie in FOLDER, and are included by their names in it, so that a unit is the same in every checkout. Each stands in a namespace of its own, so
helpers of equal names do not meet; what the sources include comes first, so it stands in none. A source that specializes templates (`template <>` at
the start of a line) or defines `main` must not stand in a namespace either.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]', re.MULTILINE)
GLOBAL = re.compile(r"^template <>|^int main\(", re.MULTILINE)


def includes(text, folder=None, beside=None):
    """What the text includes. What lies beside the text is named as in the folder."""
    for bracket, name in INCLUDE.findall(text):
        if bracket == '"' and beside and (beside / name).exists():
            name = (beside / name).resolve().relative_to(folder).as_posix()
        yield f"<{name}>"


def join(included, parts):
    """The text of a unit: what it includes, then the parts, which are pairs of a namespace or None and text."""
    lines = [f"#include {name}" for name in sorted(set(included))]
    for namespace, text in parts:
        lines += [f"namespace {namespace} {{", text, "}"] if namespace else [text]
    return "\n".join(lines) + "\n"


def of_files(folder, sources):
    included, parts = [], []
    for source in sources:
        text = source.read_text(encoding="utf-8")
        included += includes(text, folder, source.parent)
        name = source.relative_to(folder).as_posix()
        namespace = None if GLOBAL.search(text) else "unit_" + re.sub(r"\W", "_", name)
        parts.append((namespace, f"#include <{name}>"))
    return join(included, parts)


def main():
    path, folder, *sources = map(pathlib.Path, sys.argv[1:])
    text = of_files(folder.resolve(), [source.resolve() for source in sources])
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
