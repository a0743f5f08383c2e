#!/usr/bin/env python3
"""Runs whole iterations of small networks on one core and on two, beside what tables measured on the core predict.

    cpu.py --run PROGRAM --out FILE [--iterations N] [options of parsearch-profile, such as --kernel-time 300ms]

PROGRAM is cpu_profiler/run. Of each network a row for one core and one for two (data parallelism): network, cores, kernels, measured_ps, spread_ps,
predicted_ps, sum_ps (kernels and all-reduces one after the other), throttled (part of all kernels during which other processes had more than a
twentieth of the core), and, on one core, other_sizes_ps: what is predicted from a table of half and of twice as many samples, and interpolated, the part
of it that is not such a table's own.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLUSTER = str(ROOT / "cpu_profiler" / "cores.json")
NETWORKS = [  # and their samples
    ("mlp,features=784,hidden=1024*3,classes=10", 256),
    ("lenet", 64),
    ("resnet50,image=64", 4),
    ("gpt,layers=2,hidden=256,heads=4,sequence=128,vocabulary=2000", 8),
]


def models(factors):
    return [f"--model=zoo:{name},batch={int(batch * f)}" for name, batch in NETWORKS for f in factors]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--iterations", type=int, default=20)
    asked, options = parser.parse_known_args()
    validating = ["--validate", "--within", 1, "--iterations", asked.iterations]

    def profile(*arguments):
        command = [asked.run, "--cluster", CLUSTER, *map(str, arguments), *options]
        code = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode
        if code and not ("--validate" in command and code == 1):  # 1: a prediction is off, which is what the rows are to tell
            sys.exit(f"cpu.py: exit code {code} of {' '.join(command)}")

    with tempfile.TemporaryDirectory() as folder:
        table, sizes, whole, estimated = (pathlib.Path(folder, name) for name in ("table.json", "sizes.json", "whole.json", "estimated.json"))
        profile(*models([1]), *validating, "--data-parallel", "--profile", table, "--out", whole)
        profile(*models([0.5, 2]), "--degrees", 1, "--kernels-only", "--out", sizes)
        profile(*models([1]), *validating, "--no-measure", "--profile", sizes, "--out", estimated)
        written = json.loads(table.read_text())
        others = {row["model"]: row for row in json.loads(estimated.read_text())["models"]}
        disturbed = sum(written["measured"].get("throttled", {}).values()) / len(written["kernels"])
        rows = []
        for row in json.loads(whole.read_text())["models"]:
            made = {"network": row["model"].removeprefix("zoo:"), "cores": row["devices"], "throttled": disturbed}
            made |= {key: row[key] for key in ("kernels", "measured_ps", "spread_ps", "predicted_ps", "sum_ps")}
            if row["devices"] == 1:
                made |= {"other_sizes_ps": others[row["model"]]["predicted_ps"], "interpolated": 1 - others[row["model"]]["share"]["exact"]}
            rows.append(made)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"{asked.out}; other processes disturbed {100 * disturbed:.0f}% of the kernels")


if __name__ == "__main__":
    main()
