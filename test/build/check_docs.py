#!/usr/bin/env python3
"""Compiles the code in the documentation.

    check_docs.py [--root <project>] <compiler> <flags...>

Every ```cpp block of README.md and docs/**/*.md whose first line is `// compile` is a program of its own. Each must pass the compiler's checks
(-fsyntax-only), whose messages point into the page itself. Blocks are compiled together, each in a namespace of its own, since they include much the
same; with --each they are compiled one by one, so that each must include what it uses. A block whose first line is
`// compile, needs <header>` is left out where the compiler does not find the header, which is said. Other blocks are excerpts and are only counted.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
import unit

MARK = "// compile"
NEEDS = ", needs "


def pages(root):
    return [page for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if page.is_file()]


def blocks(text):
    """(line, code) of every ```cpp block: the number of its first line of code. A block may be indented, as in a list."""
    found, lines = [], text.splitlines()
    opened, fence, indent, is_cpp = 0, "", "", False
    for number, line in enumerate(lines, 1):
        if not opened:
            start = re.match(r"( *)(`{3,})\s*(\S*)", line)
            if start:
                opened, indent, fence, is_cpp = number, start[1], start[2], start[3] == "cpp"
        elif re.fullmatch(r" *`{%d,} *" % len(fence), line):
            if is_cpp:
                code = [part.removeprefix(indent) for part in lines[opened : number - 1]]
                found.append((opened + 1, "\n".join(code) + "\n"))
            opened = 0
    if opened:
        raise ValueError(f"{opened}: the code block is not closed")
    return found


def is_complete(code):
    first = code.split("\n", 1)[0].rstrip()
    return first == MARK or first.startswith(MARK + NEEDS)


def lacking(command, code, source):
    """The header that a block needs and the compiler does not find, or None."""
    header = code.split("\n", 1)[0].rstrip().removeprefix(MARK).removeprefix(NEEDS)
    if not header:
        return None
    source.write_text(f"#include <{header}>\n", encoding="utf-8")
    done = subprocess.run([*command, "-E", str(source)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return header if done.returncode else None


def compile_source(command, source, text):
    """What the compiler says of a source that it refuses, or None. `source` is the file to write."""
    source.write_text(text, encoding="utf-8")
    done = subprocess.run([*command, "-fsyntax-only", str(source)], text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout if done.returncode else None


def marked(page, line, code):
    return f'#line {line} "{page}"\n{code}'


def together(blocks):
    return unit.join([name for _, _, code in blocks for name in unit.includes(code)],
                     [(f"block_{number}", marked(*block)) for number, block in enumerate(blocks)])


def check(root, command, each=False, jobs=2):
    """(complaints, number of blocks compiled, number of other blocks)."""
    complaints, complete, others = [], [], 0
    for page in pages(root):
        try:
            found = blocks(page.read_text(encoding="utf-8"))
        except ValueError as error:
            complaints.append(f"{page}:{error}")
            continue
        complete += [(page, line, code) for line, code in found if is_complete(code)]
        others += sum(not is_complete(code) for _, code in found)
    if not complete and not complaints:
        complaints.append(f"{root}: no ```cpp block that begins with '{MARK}' in README.md or docs")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        folder = pathlib.Path(folder)
        compiled = []
        for page, line, code in complete:
            if header := lacking(command, code, folder / "lacking.cpp"):
                print(f"{page}:{line}: left out: {header} is not found")
            else:
                compiled.append((page, line, code))
        texts = [marked(*block) for block in compiled] if each else [together(compiled[job::jobs]) for job in range(min(jobs, len(compiled)))]
        sources = [folder / f"{number}.cpp" for number in range(len(texts))]
        complaints += [said for said in pool.map(compile_source, [command] * len(texts), sources, texts) if said]
    return complaints, len(compiled), others


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2],
                        help="the folder of README.md and docs (the project)")
    parser.add_argument("--each", action="store_true", help="compile the blocks one by one")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="compiler and flags")
    options = parser.parse_args()
    if not options.command:
        parser.error("no compiler given")
    complaints, compiled, others = check(options.root, options.command, options.each)
    for complaint in complaints:
        print(complaint)
    print(f"{compiled} blocks compiled, {others} excerpts, {len(complaints)} errors")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
