#!/usr/bin/env python3
"""Compares exact search on additive problems with solvers of integer programs.

    additive.py --programs FOLDER --against highs,cbc [--solver-time SECONDS] [--most-variables N] [--out FILE] [ARGUMENT OF bench/additive ...]

The problems are those that bench/additive solves under the same arguments, one process each; without any, PaSE's from $PARSEARCH_EXTERNAL_DATA and Llama 70B
on meshes of 64 to 1,024 H100s. Each solver gets the same tables, whose costs are
rounded to whole numbers, see additive/integer_program.py; its answer is judged by bench/judge. A row has
what bench/additive writes and `against`, by solver: seconds, variables, proved, bound_ps, cost_ps, ratio (its seconds to ours where both prove), or why there is
none. Exits with 1 where two that are proved optimal differ.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
MESHES = ("8x8", "4x4x4", "16x16", "4x8x8", "32x32", "16x8x8")
SOLVERS = ("highs", "cbc")


def cases(asked):
    """The arguments of bench/additive, a problem each."""
    if asked.rest:
        return [asked.rest]
    data = os.environ.get("PARSEARCH_EXTERNAL_DATA")
    files = sorted(pathlib.Path(data, "pase").glob("*.bin")) if data else []
    if not files:
        print("PaSE's problems are left out: PARSEARCH_EXTERNAL_DATA does not name their folder")
    return [[str(f)] for f in files] + [["--mesh", mesh, "--time", str(asked.solver_time)] for mesh in MESHES]


def lacking(solver):
    """Why a solver cannot be asked, or nothing."""
    if solver == "cbc":
        return None if shutil.which("cbc") else "there is no program cbc (Debian: coinor-cbc)"
    asked = subprocess.run([sys.executable, "-c", "import highspy"], capture_output=True, check=False)
    return "there is no Python package highspy" if asked.returncode else None


def against(solver, instance, ours, asked, programs, folder):
    """What a solver makes of the instance."""
    document = json.loads(instance.read_text(encoding="utf-8"))["tables"]
    variables = sum(len(d["costs_ps"]) for d in document["decisions"]) + sum(len(p["costs_ps"]) for p in document["pairs"])
    if variables > asked.most_variables:
        return {"why": f"{variables} variables"}
    out = folder / "choices.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, BENCH / "additive" / "integer_program.py", "--solver", solver, "--time", str(asked.solver_time), instance, out]
    try: # a solver may look at its watch seldom
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=2 * asked.solver_time + 120)
    except subprocess.TimeoutExpired:
        return {"why": "did not end in time"}
    said = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if not said:
        return {"why": (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]}
    row = json.loads(said[-1])
    if not out.exists():
        return {**row, "why": "no solution"}
    judged = subprocess.run([programs / "bench" / "judge", instance, out], capture_output=True, text=True, check=False).stdout
    if not judged.startswith("feasible: "):
        return {**row, "why": judged.splitlines()[0] if judged else "not judged"}
    row["cost_ps"] = int(judged.split()[1])
    if row["proved"] and ours["proved"]:
        row["ratio"] = row["seconds"] / ours["seconds"]
    return row


def told(solver, row):
    if "cost_ps" not in row:
        return f"{solver}: {row['why']}"
    ended = "proved" if row["proved"] else "not proved"
    return f"{solver}: {row['seconds']:.2f} s, {ended}" + (f", {row['ratio']:.0f} times ours" if "ratio" in row else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder of a build, with bench/additive and bench/judge")
    parser.add_argument("--against", required=True, help="solvers, by comma: " + ", ".join(SOLVERS))
    parser.add_argument("--solver-time", type=float, default=300, help="seconds that each may take for a problem")
    parser.add_argument("--most-variables", type=int, default=500_000, help="of a program; larger ones are left out")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/bench/additive.json"))
    asked, asked.rest = parser.parse_known_args()
    solvers = asked.against.split(",")
    for solver in list(solvers):
        if solver not in SOLVERS:
            parser.error(f"--against {solver}: must be of {', '.join(SOLVERS)}")
        if why := lacking(solver):
            print(f"{solver} is left out: {why}")
            solvers.remove(solver)
    rows, differing = [], 0
    for arguments in cases(asked):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            command = [asked.programs / "bench" / "additive", *arguments, "--write", folder / "problems", "--out", folder / "rows.json"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for row in json.loads((folder / "rows.json").read_text(encoding="utf-8")):
                problem = pathlib.Path(row["file"]).stem
                row["against"] = {s: against(s, folder / "problems" / f"{problem}.json", row, asked, asked.programs, folder) for s in solvers}
                ended = "proved" if row["proved"] else "not proved"
                if not row["proved"] and row["lower_bound"]:
                    ended = f"{100 * (row['best'] / row['lower_bound'] - 1):.2f} % above the bound"
                print(f"{problem:<20} {row['seconds'] * 1e3:10.2f} ms, {ended}; " + "; ".join(told(s, r) for s, r in row["against"].items()), flush=True)
                for solver, other in row["against"].items():
                    if "ratio" in other and not math.isclose(other["cost_ps"], row["best"], rel_tol=1e-6):
                        print(f"{problem}: {solver} proves {other['cost_ps']}, dominator_dp {row['best']:.0f}", file=sys.stderr)
                        differing = 1
                rows.append(row)
                asked.out.parent.mkdir(parents=True, exist_ok=True)
                asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for solver in solvers:
        ratios = [r["against"][solver]["ratio"] for r in rows if "ratio" in r["against"][solver]]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{solver}: {len(ratios)} problems that both prove, {mean:.0f} times our seconds in the geometric mean, at least {min(ratios):.1f}")
    print(f"wrote {asked.out}")
    return differing


if __name__ == "__main__":
    sys.exit(main())
