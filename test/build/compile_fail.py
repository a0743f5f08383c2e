#!/usr/bin/env python3
"""Checks that wrong code is refused with a readable message.

    compile_fail.py <case.cpp> -- <compiler> <flags...>

A case holds two programs in one file:

    // expect: <regular expression that the diagnostics contain>     (one line or several, all must match)
    // max_lines: 25                                                 (optional; 25 is the default)
    // max_columns: 600                                              (optional; of the longest line)
    // errors: 1                                                     (optional; how many there are)
    // flags: -fno-exceptions                                        (optional; of the wrong code, which may then be its own twin)
    #ifdef PARSEARCH_FAIL
    the wrong code
    #else
    its twin, as close as possible, that compiles
    #endif

The twin must compile. The wrong code must be refused, with the expected text, in at most `max_lines` lines of whatever the
compiler prints by default.
"""

import os
import re
import subprocess
import sys


def compile_case(command, case, *options):
    """The exit status and everything that the compiler says."""
    environment = dict(os.environ, LC_ALL="C")
    done = subprocess.run([*command, "-fsyntax-only", "-fno-diagnostics-color", *options, case], text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    return done.returncode, done.stdout


def check(case, command):
    """A list of complaints, each with the compiler's output where that helps."""
    with open(case, encoding="utf-8") as file:
        source = file.read()
    expected = re.findall(r"^// expect: *(.+?) *$", source, re.MULTILINE)
    flags = " ".join(re.findall(r"^// flags: *(.+?) *$", source, re.MULTILINE)).split()

    def number(name, default=None):
        found = re.search(rf"^// {name}: *(\d+)", source, re.MULTILINE)
        return int(found[1]) if found else default

    if not expected:
        return ["the case has no line '// expect: <regular expression>'"]
    if "PARSEARCH_FAIL" not in source and not flags:
        return ["the case has no variant under PARSEARCH_FAIL"]

    complaints = []
    status, output = compile_case(command, case)
    if status != 0:
        complaints.append("the twin does not compile:\n" + output)
    status, output = compile_case(command, case, "-DPARSEARCH_FAIL", *flags)
    if status == 0:
        return complaints + ["the wrong code compiles"]
    for pattern in expected:
        if not re.search(pattern, output):
            complaints.append(f"the diagnostics do not contain '{pattern}':\n{output}")
    lines = len(output.splitlines())
    if lines > (most := number("max_lines", 25)):
        complaints.append(f"the diagnostics have {lines} lines, allowed are {most}:\n{output}")
    if (longest := max(map(len, output.splitlines()), default=0)) > (most := number("max_columns", longest)):
        complaints.append(f"the diagnostics have a line of {longest} columns, allowed are {most}:\n{output}")
    if (errors := len(re.findall(r"\berror: ", output))) != (right := number("errors", errors)):
        complaints.append(f"the diagnostics have {errors} errors, must have {right}:\n{output}")
    if not complaints:
        print(f"refused as expected, in {lines} lines:\n{output}", end="")
    return complaints


def main():
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        sys.exit(__doc__)
    complaints = check(sys.argv[1], sys.argv[3:])
    for complaint in complaints:
        print(f"{sys.argv[1]}: {complaint}")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
