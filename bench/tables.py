#!/usr/bin/env python3
"""Makes the tables and quoted outputs of README.md and docs/**/*.md, or compares them with what their commands make.

    tables.py [--check] [--quick] [--list] [PAGE...]

What a page has from a command stands between two comments:

    <!-- made by ./bench/run pipeline; as pipeline; measured s -->       Markdown, as the command prints it
    <!-- printed by the code above; quick; from pipeline; to stage -->   quoted: in a code block
    <!-- end -->

A command is ./bench/run with a benchmark, build/release/examples/plan, or `the code above`: the last ```cpp program or ```sh command of the page.
$PARSEARCH_EXTERNAL_DATA in it is the folder of data; without one it is left out, aloud. Options:

    as NAME           the table that views.py makes of the rows which the benchmark writes
    from WORD         of what is printed, the lines from the first that begins with this word, blanks aside
    to WORD           ... to the next that begins with this one, which may be the same
    measured COLUMN   a column of times or speeds, which differ from run to run: not compared; once for each
    exit N            the exit code that is right, beside 0
    quick             takes seconds: of those that CI checks

Times after the word `in` ("in 2.7 s") are never compared. Exits with 1 where --check finds a difference or a command
fails, with 2 where a page is wrong.
"""

import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "test" / "build"), str(ROOT / "bench")]
import check_docs
import views

BEGIN = re.compile(r"<!-- (made|printed) by (.*?) *-->")
END = "<!-- end -->"
BENCH, PLAN, ABOVE = "./bench/run", "build/release/examples/plan", "the code above"
DATA = "$PARSEARCH_EXTERNAL_DATA"
OPTIONS = {"as", "from", "to", "measured", "exit", "quick"}


class wrong(Exception):
    """A page or a command is not as it must be; the text says where and why."""


class lacking(Exception):
    """Something outside the project is not there."""


class part:
    """What a page has from one command: lines [first, last) of it."""

    def __init__(self, where, lines, first, last, how, said):
        self.where, self.first, self.last, self.quoted = where, first, last, how == "printed"
        self.content = lines[first:last]
        self.command, *options = said.split("; ")
        self.options, self.measured = {}, []
        for option in options:
            name, _, value = option.partition(" ")
            if name not in OPTIONS or (name == "quick") != (not value):
                raise wrong(f"{where}: unknown option '{option}': {', '.join(sorted(OPTIONS))}")
            if name == "measured":
                self.measured.append(value)
            elif name in self.options:
                raise wrong(f"{where}: option '{name}' is given twice")
            else:
                self.options[name] = value
        if self.command == ABOVE:
            self.above = code_above(where, lines[: first - 1])
        elif shlex.split(self.command)[:1] not in ([BENCH], [PLAN]):
            raise wrong(f"{where}: unknown command '{self.command}': must be {BENCH} NAME, {PLAN} or '{ABOVE}'")
        if "as" in self.options and not self.command.startswith(BENCH):
            raise wrong(f"{where}: only the rows of {BENCH} can be made a table 'as {self.options['as']}'")
        if "as" in self.options and self.options["as"] not in views.VIEWS:
            raise wrong(f"{where}: unknown view '{self.options['as']}': {', '.join(views.VIEWS)}")

    def needs_data(self):
        return DATA in self.command


def code_above(where, lines):
    """('cpp' or 'sh', text) of the last code block of the lines."""
    fences = [n for n, line in enumerate(lines) if line.startswith("```")]
    if len(fences) < 2 or lines[fences[-2]] not in ("```cpp", "```sh"):
        raise wrong(f"{where}: the code block above is not ```cpp or ```sh")
    return lines[fences[-2]][3:], "\n".join(lines[fences[-2] + 1 : fences[-1]]) + "\n"


def parts(name, text):
    """The parts of a page, in its order."""
    found, lines, fenced, opened = [], text.splitlines(), False, None
    for number, line in enumerate(lines, 1):
        where, begin = f"{name}:{number}", BEGIN.fullmatch(line)
        if not opened and line.startswith("```"):
            fenced = not fenced
        elif begin and not fenced:
            if opened:
                raise wrong(f"{where}: begins inside the part of line {opened[0]}: that one lacks {END}")
            opened = (number, begin)
        elif line == END and not fenced:
            if not opened:
                raise wrong(f"{where}: {END} without a beginning")
            found.append(part(f"{name}:{opened[0]}", lines, opened[0], number - 1, *opened[1].groups()))
            opened = None
        elif not fenced and re.match(r"<!-- *(made|printed|end)\b", line):
            raise wrong(f"{where}: neither '<!-- made by COMMAND -->', '<!-- printed by COMMAND -->' nor '{END}'")
    if opened:
        raise wrong(f"{name}:{opened[0]}: lacks {END}")
    return found


class runner:
    """Answers what the command of a part prints, or the rows that it writes where the part is made of them. Runs each once."""

    def __init__(self):
        self.said = {}

    def __call__(self, part):
        key = (part.above if part.command == ABOVE else part.command, "as" in part.options)
        if key not in self.said:
            self.said[key] = self.run(part)
        return self.said[key]

    def run(self, part):
        if part.needs_data() and not os.environ.get(DATA[1:]):
            raise lacking(f"{DATA[1:]} is not set")
        with tempfile.TemporaryDirectory() as folder:
            for entry in ROOT.iterdir():  # commands name files of the project, and what they write stays here
                pathlib.Path(folder, entry.name).symlink_to(entry)
            if part.command == ABOVE and part.above[0] == "cpp":
                command, folder = [self.compile(part, folder)], pathlib.Path(folder)
            elif part.command == ABOVE:
                command = shlex.split(part.above[1])
                if command[0] != PLAN:
                    raise wrong(f"{part.where}: unknown command '{command[0]}' above: must be {PLAN}")
            else:
                command = shlex.split(part.command.replace(DATA, os.environ.get(DATA[1:], "")))
            rows = None
            if command[0] == BENCH:
                if "as" in part.options:
                    rows = ROOT / "out" / "bench" / f"{command[1]}.json"
                    rows.unlink(missing_ok=True)  # those of an earlier run
                command[0], folder = str(ROOT / "bench" / "run"), ROOT
            elif command[0] == PLAN:
                command[0] = str(ROOT / PLAN)
            done = subprocess.run(command, cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        if done.returncode not in (0, int(part.options.get("exit", 0))):
            raise wrong(f"{part.where}: exit code {done.returncode} of {' '.join(command)}")
        if rows and not rows.is_file():
            raise wrong(f"{part.where}: {' '.join(command)} does not write {rows}")
        return rows.read_text(encoding="utf-8") if rows else done.stdout

    @staticmethod
    def compile(part, folder):
        source, program = pathlib.Path(folder, "above.cpp"), pathlib.Path(folder, "above")
        source.write_text(part.above[1], encoding="utf-8")
        command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-DPARSEARCH_COMPILED", f"-I{ROOT / 'include'}", str(source), "-o", str(program),
                   str(ROOT / "build/release/libparsearch_compiled.a")]
        if subprocess.run(command, check=False).returncode:
            raise wrong(f"{part.where}: the program above does not compile")
        return str(program)


def line_of(part, lines, word, first):
    for number in range(first, len(lines)):
        if lines[number].split()[:1] == [word]:
            return number
    raise wrong(f"{part.where}: no line that begins with '{word}' is printed")


def made(part, output):
    """The lines that a part should have, of what `runner` answers."""
    if "as" in part.options:
        return views.VIEWS[part.options["as"]](json.loads(output))
    lines = output.rstrip("\n").splitlines()
    if "from" in part.options:
        lines = lines[line_of(part, lines, part.options["from"], 0) :]
    if "to" in part.options:
        lines = lines[: line_of(part, lines, part.options["to"], 0) + 1]
    return ["```", *lines, "```"] if part.quoted else ["", *lines, ""]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def comparable(part, lines):
    """The lines without what differs from run to run."""
    out, head, met = [], None, set()
    for line in lines:
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
            met.update(head)
        elif part.measured:
            line = "| " + " | ".join("-" if name in part.measured else cell for name, cell in zip(head, cells(line))) + " |"
        out.append(re.sub(r"\bin \d[\d.,]* (ms|s|min|h)\b", r"in so many \1", line))
    for name in part.measured:
        if name not in met:
            raise wrong(f"{part.where}: no table has the column '{name}', which is said to be measured")
    return out


def differences(part, lines):
    """How what the page has differs from `lines`, as text; empty where it does not."""
    before, now = comparable(part, part.content), comparable(part, lines)
    return "\n".join(difflib.unified_diff(before, now, f"{part.where} (the page)", part.command, lineterm="", n=0))


def pages(named):
    if not named:
        return check_docs.pages(ROOT)
    for page in named:
        if not (ROOT / page).is_file():
            raise wrong(f"{page}: no such page")
    return [ROOT / page for page in named]


def run(options, run_command):
    """The exit code. All pages are read before a command runs, and a command that fails stops no other."""
    chosen = []
    for page in pages(options.pages):
        name = str(page.relative_to(ROOT))
        found = parts(name, page.read_text(encoding="utf-8"))
        # From below, so that the lines of the parts above stay where they are.
        chosen += [(page, one) for one in reversed(found) if "quick" in one.options or not options.quick]
    counts = dict.fromkeys(("made", "differ", "failed", "left out"), 0)
    for page, one in chosen:
        if options.list:
            print(f"{one.where}: {'quick' if 'quick' in one.options else 'slow'}: {one.command}")
            continue
        try:
            new = made(one, run_command(one))
            changed = differences(one, new) if options.check else ""
        except lacking as why:
            print(f"{one.where}: left out: {why}", flush=True)
            counts["left out"] += 1
            continue
        except wrong as why:
            print(f"error: {why}", flush=True)
            counts["failed"] += 1
            continue
        counts["made"] += 1
        counts["differ"] += changed != ""
        if not options.check:
            lines = page.read_text(encoding="utf-8").splitlines()
            lines[one.first : one.last] = new
            page.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(changed or f"{one.where}: {'agrees' if options.check else 'made'}", flush=True)
    if not options.list:
        print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["differ"] or counts["failed"] else 0


def main():
    parser = argparse.ArgumentParser(prog="./bench/run tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--quick", action="store_true", help="only what is marked quick")
    parser.add_argument("--list", action="store_true", help="only name the parts and their commands")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="as docs/results.md (default: all)")
    try:
        sys.exit(run(parser.parse_args(), runner()))
    except wrong as why:
        print(f"error: {why}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
