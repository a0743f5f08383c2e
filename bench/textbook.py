#!/usr/bin/env python3
"""Plans networks at the sizes that people train, and compares with the best textbook plan of each.

    textbook.py --programs FOLDER [--case NAME]... [--time 10s] [--out FILE]

A case is planned by `plan` with no flag but model, cluster and optimizer; its textbook plan is found by bench/textbook.cpp, which tries them all. Rows:
case, devices, found_s, textbook_s, textbook (its name), bound_s, wall_s and peak_bytes of the program, fits, distinct_blocks, kind (what was found).
Exits with 1 where what was found is worse than the textbook, or does not fit.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LLAMA_7B = "zoo:llama2_7b,type=bf16,sequence=4096"
LLAMA_70B = "zoo:llama,layers=80,hidden=8192,heads=64,kv_heads=8,feed_forward=28672,vocabulary=32000,tied=false,type=bf16,sequence=4096"
LLAMA_8B = "zoo:llama3_8b,type=bf16"
GPT_13B = "zoo:gpt,layers=40,hidden=5120,heads=40,sequence=2048,vocabulary=50304,type=bf16"
GPT_1B = "zoo:gpt,layers=24,hidden=2048,heads=16,sequence=2048,vocabulary=50304,type=bf16"
LLAMA_405B = "zoo:llama,layers=126,hidden=16384,heads=128,kv_heads=8,feed_forward=53248,sequence=8192,vocabulary=128256,tied=false,type=bf16"
MOE = "zoo:moe,type=bf16"
CASES = [
    # name, model, cluster, optimizer, and whether it takes minutes
    ("decoder_1b 4x4 V100", "examples/models/decoder_1b.onnx,batch=16", "4x4xv100", "adam", False),
    ("gpt 1.3B 1x8 H100", f"{GPT_1B},batch=64", "1x8xh100", "adam", False),
    ("llama 7B 1x8 H100, 8", f"{LLAMA_7B},batch=8", "1x8xh100", "adam", False),
    ("llama 7B 1x8 H100, 64", f"{LLAMA_7B},batch=64", "1x8xh100", "adam", False),
    ("llama 7B 4x8 H100", f"{LLAMA_7B},batch=256", "4x8xh100", "adam", False),
    ("gpt 13B 4x8 H100", f"{GPT_13B},batch=512", "4x8xh100", "adam", False),
    ("llama 70B 8x8 H100", f"{LLAMA_70B},batch=256", "8x8xh100", "adam", True),
    ("llama 70B 16x8 H100", f"{LLAMA_70B},batch=256", "16x8xh100", "adam", True),
    ("llama 70B 128x8 H100", f"{LLAMA_70B},batch=1024", "128x8xh100", "adam", True),
    ("llama 405B 256x8 H100", f"{LLAMA_405B},batch=2048", "256x8xh100", "adam", True),
    ("moe 4x8 H100", f"{MOE},batch=256", "4x8xh100", "adam", False),
    ("moe 32x8 H100", f"{MOE},batch=2048", "32x8xh100", "adam", True),
    ("llama 8B 8x8 H100, long", f"{LLAMA_8B},sequence=131072,batch=64", "8x8xh100", "adam", True),
    ("bert_large 2x8 A100", "zoo:bert_large,type=bf16,batch=256", "2x8xa100", "adam", False),
    ("resnet50 4x8 H100", "examples/models/resnet50.onnx,batch=1024", "4x8xh100", "momentum", False),
    ("inception_v3 1x8 H100", "zoo:inception_v3,batch=512", "1x8xh100", "momentum", False),
    ("dlrm 4x8 H100", "zoo:dlrm,batch=65536", "4x8xh100", "sgd", False),
    ("nmt 2x8 A100", "zoo:nmt,batch=1024", "2x8xa100", "adam", False),
]


def measured(command):
    """Output, exit code, wall seconds and peak bytes of a program."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, text=True, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return out.read(), child.returncode, time.monotonic() - began, usage.ru_maxrss * 1024


def distinct_blocks(stages):
    """How many kinds of blocks there are: operators of one number in their names, with their configurations; devices are counted within a stage."""
    kinds = set()
    for stage in stages:
        first = min((min(o["devices"]) if "devices" in o else o["start"] for o in stage["operators"]), default=0)
        blocks = {}
        for o in stage["operators"]:
            match = re.match(r"(.*?(?:block|layers?|h)[._/]?)(\d+)([._/].*)", o["name"])
            if not match:
                continue
            how = (json.dumps(o.get("degrees")), json.dumps(o.get("strides")), o.get("start", 0) - first, json.dumps(o.get("devices")))
            blocks.setdefault((match[1], int(match[2])), []).append((match[3], how))
        kinds |= {(name, json.dumps(sorted(b))) for (name, _), b in blocks.items()}
    return len(kinds)


def row_of(programs, name, model, cluster, optimizer, budget):
    said, code, _, _ = measured([str(programs / "bench" / "textbook"), "--model", model, "--cluster", cluster, "--optimizer", optimizer])
    if code != 0:
        raise SystemExit(f"textbook: {name}: exit code {code}")
    book = json.loads(said)
    with tempfile.TemporaryDirectory() as folder:
        _, code, wall, peak = measured([str(programs / "examples" / "plan"), "--model", model, "--cluster", cluster, "--simulation.optimizer", optimizer,
                                        "--time", budget, "--quiet", "--out", folder])
        if code not in (0, 3):
            raise SystemExit(f"plan: {name}: exit code {code}")
        run = json.loads(pathlib.Path(folder, "run.json").read_text())
        plan = json.loads(pathlib.Path(folder, "plan.json").read_text())
        found, stages = plan["predicted_ps"], plan["stages"]
        parts = [f"{len(stages)} stages" if len(stages) > 1 else "", f"interleaved {plan['interleaved']}" if "interleaved" in plan else "", f"{plan['micro_batches']} micro-batches" if plan["micro_batches"] > 1 else "",
                 "sharded within nodes" if plan.get("sharded_within_nodes") else "fully sharded" if plan.get("sharded_parameters") else "sharded gradients" if plan.get("sharded_gradients") else "sharded optimizer" if plan["sharded_optimizer"] else "", "computed again" if any(s.get("recompute") for s in stages) else "", "offloaded" if any(o.get("offloaded") for s in stages for o in s["operators"]) else "", "other operators" if plan.get("rewritten_by") else ""]
        kind = ", ".join(p for p in parts if p) or "a strategy"
    return {"case": name, "devices": book["devices"], "found_s": found / 1e12, "textbook_s": book["textbook_ps"] and book["textbook_ps"] / 1e12, "textbook": book["textbook"],
            "bound_s": run.get("lower_bound_ps", 0) / 1e12 or None, "wall_s": wall, "peak_bytes": peak, "fits": code == 0,
            "distinct_blocks": distinct_blocks(stages), "kind": kind}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder of a build: its bench/textbook and examples/plan are run")
    parser.add_argument("--case", action="append", choices=[c[0] for c in CASES], help="all of them, but for those that take minutes")
    parser.add_argument("--all", action="store_true", help="also those that take minutes and gigabytes")
    parser.add_argument("--time", default="10s", help="of each plan (10s)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/bench/textbook.json", help="the rows")
    asked = parser.parse_args()
    rows, worse = [], 0
    print(f"{'case':<24} {'devices':>7} {'found s':>9} {'textbook s':>10} {'ratio':>6} {'bound s':>9} {'wall s':>7} {'GB':>5} {'fits':>5} {'blocks':>6}  found; textbook")
    for name, model, cluster, optimizer, long in CASES:
        if name not in asked.case if asked.case else long and not asked.all:
            continue
        r = row_of(asked.programs, name, model, cluster, optimizer, asked.time)
        rows.append(r)
        ratio = r["found_s"] / r["textbook_s"] if r["textbook_s"] else None
        worse += not r["fits"] or (ratio is not None and ratio > 1)
        shown = lambda x, form: "-" if x is None else format(x, form)
        print(f"{name:<24} {r['devices']:>7} {r['found_s']:>9.4g} {shown(r['textbook_s'], '10.4g'):>10} {shown(ratio, '6.3f'):>6} {shown(r['bound_s'], '9.4g'):>9} "
              f"{r['wall_s']:>7.1f} {r['peak_bytes'] / 1e9:>5.2f} {'yes' if r['fits'] else 'NO':>5} {r['distinct_blocks']:>6}  {r['kind']}; {r['textbook']}", flush=True)
    ratios = [math.log(r["found_s"] / r["textbook_s"]) for r in rows if r["textbook_s"]]
    if ratios:
        print(f"found / textbook, geometric mean: {math.exp(sum(ratios) / len(ratios)):.3f}; worse, or does not fit: {worse} of {len(rows)}")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
