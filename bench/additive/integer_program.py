#!/usr/bin/env python3
"""Solves an instance of tables as an integer program, as Alpa and AutoParallel do, with HiGHS (the package highspy) or CBC (the program cbc).

    integer_program.py --solver highs|cbc [--time SECONDS] INSTANCE OUT

INSTANCE is a file of format parsearch.instance with tables, OUT gets choices, see docs/instances.md. Prints a line of JSON: `seconds` that the solver took
from the program in a file, reading it left out where the solver tells; `variables`; `proved`; and `bound_ps`, null where it has none.

A binary variable per choice, one of each decision; a continuous one per pair of choices of two decisions with a pair table, whose sums over either
end's choices are the other's variables (the tightest linear form of one table); one row for the budget. One thread, no gap.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

UNIT = 1e9  # picoseconds: costs are in ms


def program_of(tables):
    """The program as free MPS, and of each variable of a choice its decision and number."""
    rows, columns, choices = [("N", "cost")], [], []
    right = []

    def column(cost, terms, binary):
        name = f"x{len(columns)}"
        columns.append((name, binary, [("cost", cost / UNIT), *terms]))
        return name

    in_pairs = {}  # (decision, choice): rows that its variable is in, with -1
    of_pair = []
    for n, pair in enumerate(tables.get("pairs", [])):
        sizes = [len(tables["decisions"][pair[end]]["costs_ps"]) for end in ("from", "to")]
        for end, letter, size in (("from", "f", sizes[0]), ("to", "t", sizes[1])):
            for c in range(size):
                row = f"{letter}{n}.{c}"
                rows.append(("E", row))
                in_pairs.setdefault((pair[end], c), []).append((row, -1))
        of_pair.append(sizes)
    most = tables.get("budget_bytes")
    if most is not None:
        rows.append(("L", "budget"))
        right.append(("budget", 1))
    for d, decision in enumerate(tables["decisions"]):
        rows.append(("E", f"d{d}"))
        right.append((f"d{d}", 1))
        for c, cost in enumerate(decision["costs_ps"]):
            if cost is None:
                continue  # its rows make the variables of its pairs 0
            terms = [(f"d{d}", 1), *in_pairs.get((d, c), [])]
            if most is not None and decision["memory_bytes"][c]:
                terms.append(("budget", decision["memory_bytes"][c] / max(1, most)))
            column(cost, terms, True)
            choices.append((d, c))
    for n, pair in enumerate(tables.get("pairs", [])):
        width = of_pair[n][1]
        for at, cost in enumerate(pair["costs_ps"]):
            if cost is not None:
                column(cost, [(f"f{n}.{at // width}", 1), (f"t{n}.{at % width}", 1)], False)
    lines = ["NAME program FREE", "ROWS", *(f" {kind} {name}" for kind, name in rows), "COLUMNS", " m1 'MARKER' 'INTORG'"]
    ends = False
    for name, binary, terms in columns:
        if not binary and not ends:
            lines.append(" m2 'MARKER' 'INTEND'")
            ends = True
        lines += [f" {name} {row} {value!r}" for row, value in terms if value]
        if not any(value for _, value in terms):
            lines.append(f" {name} cost 0")
    if not ends:
        lines.append(" m2 'MARKER' 'INTEND'")
    lines += ["RHS", *(f" rhs {row} {value}" for row, value in right), "BOUNDS"]
    lines += [f" UP bound {name} 1" for name, _, _ in columns]
    return "\n".join([*lines, "ENDATA", ""]), choices, len(columns)


def by_highs(path, seconds):
    """Values of the variables, or None; seconds; whether proved; the bound."""
    import highspy

    h = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-9), ("time_limit", float(seconds))):
        h.setOptionValue(name, value)
    h.readModel(str(path))
    began = time.monotonic()
    h.run()
    took = time.monotonic() - began
    info = h.getInfo()
    solved = h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    values = list(h.getSolution().col_value) if info.primal_solution_status == 2 else None
    return values, took, solved, info.mip_dual_bound


def by_cbc(path, seconds):
    out = path.with_suffix(".solution")
    command = ["cbc", str(path), "-timeMode", "elapsed", "-threads", "0", "-ratioGap", "0", "-allowableGap", "0", "-sec", str(seconds), "-solve"]
    command += ["-solution", str(out)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    solved = "Optimal solution found" in said
    took = float((re.search(r"Total time \(CPU seconds\):.*\(Wallclock seconds\):\s+([\d.]+)", said) or [0, "nan"])[1])
    bound = re.search(r"Lower bound:\s+(\S+)", said)
    values = None
    if out.exists():
        lines = out.read_text().splitlines()
        if lines and ("Optimal" in lines[0] or "objective value" in lines[0]) and "nfeasible" not in lines[0]:
            values = {int(name[1:]): float(value) for name, value in (line.removeprefix("**").split()[1:3] for line in lines[1:])}
            values = [values.get(n, 0) for n in range(max(values, default=-1) + 1)]
            if solved:
                bound = [0, re.search(r"objective value (\S+)", lines[0])[1]]
    return values, took, solved, float(bound[1]) if bound else -math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solver", choices=("highs", "cbc"), required=True)
    parser.add_argument("--time", type=float, default=600, help="seconds")
    parser.add_argument("instance", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    asked = parser.parse_args()
    document = json.loads(asked.instance.read_text(encoding="utf-8"))
    if "tables" not in document:
        sys.exit(f"{asked.instance}: has no tables")
    text, choices, variables = program_of(document["tables"])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mps"
        path.write_text(text, encoding="utf-8")
        values, took, solved, bound = {"highs": by_highs, "cbc": by_cbc}[asked.solver](path, asked.time)
    print(json.dumps({"seconds": took, "variables": variables, "proved": solved, "bound_ps": bound * UNIT if math.isfinite(bound) else None}))
    if values is None:
        sys.exit(f"{asked.solver}: found no solution in {asked.time:g} s")
    chosen = [0] * len(document["tables"]["decisions"])
    for (d, c), value in zip(choices, values):
        if value > 0.5:
            chosen[d] = c
    asked.out.write_text(json.dumps({"format": "parsearch.choices", "version": 1, "choices": chosen}), encoding="utf-8")


if __name__ == "__main__":
    main()
