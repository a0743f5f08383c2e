#!/usr/bin/env python3
"""Runs a training step of networks under plans on host devices, and holds loss, gradients, updated parameters and collectives against one device and
against what the plan predicts.

    execute.py --plan <program> [--work <folder>] [--only NETWORK[/PLAN]]... [--quick] [--mutations] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=16"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import collectives  # noqa: E402
import networks  # noqa: E402
from jax_plan import Plan  # noqa: E402
from parts import Unsupported, differing, error, initial, judge  # noqa: E402
from training import Training, on_one_device  # noqa: E402

TOLERANCE = 1e-9
HERE = pathlib.Path(__file__).resolve().parent


class Results:
    """What one device computes, once for networks that are alike."""

    def __init__(self):
        self.known = {}

    def of(self, document):
        key = json.dumps([document["operators"], document["parameters"], document["micro_batches"], document["optimizer"]]
                         if any(o["kind"] == "batch_norm" for o in document["operators"]) else
                         [document["model"], document["micro_batches"], document["optimizer"]])
        if key not in self.known:
            parameters, batches = initial(document)
            self.known[key] = parameters, batches, on_one_device(document, parameters, batches)
        return self.known[key]


def executed(document, results, given=None):
    """A dictionary of what came out. `document`: the plan that is run. `given`: the one that the network is of, where that is another."""
    parameters, batches, (loss, gradients, new) = results.of(given or document)
    began = time.monotonic()
    training = Training(Plan(document))
    got_loss, got_gradients, got_new = training.step(parameters, batches)
    counts = {}
    for stage in training.stages:
        for key, times in stage.collectives().items():
            counts[key] = counts.get(key, 0) + times
    if training.sent_bytes:
        counts["message", 2, training.sent_bytes] = 1
    predicted = document["predicted"]
    return {"loss": abs(got_loss - loss) / abs(loss), "gradients": error(got_gradients, gradients), "parameters": error(got_new, new),
            "measured": collectives.totals(counts), "predicted": collectives.totals(collectives.predicted(document)),
            "memory": {what: [max(got), max(m[what] for m in predicted["memory"])] for what, got in training.memory.items()},
            "seconds": time.monotonic() - began}


def differences(row):
    """{kind: [measured, predicted]} of the bytes that differ, and the same of memory: activations by more than 10%, the rest by more than 1%."""
    out = differing(row)
    for what, (got, wanted) in row["memory"].items():
        if abs(got - wanted) > (0.1 if what == "activations" else 0.01) * wanted:
            out["memory of " + what] = [got, wanted]
    return out


def agrees(row):
    return max(row["loss"], row["gradients"], row["parameters"]) <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--plan", required=True, help="the program plan")
    parser.add_argument("--work", help="a folder for the plans [one that is removed]")
    parser.add_argument("--only", action="append", default=[], metavar="NETWORK[/PLAN]", help="these cases; several times for several")
    parser.add_argument("--quick", action="store_true", help="two cases")
    parser.add_argument("--mutations", action="store_true", help="wrong exports are to be found out, too")
    parser.add_argument("--json", metavar="FILE", help="writes what was measured")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(asked.work or temporary)
        sys.exit(run(asked, work))


def chosen(asked):
    known = [one for n, plans in networks.CASES.items() for one in (n, *(f"{n}/{name}" for name in plans))]
    for one in asked.only:
        if one not in known:
            sys.exit(f"--only '{one}' is no network and no plan of one: must be one of\n  " + "\n  ".join(known))
    for network, plans in networks.CASES.items():
        for name, plan in plans.items():
            if asked.quick and (network, name) not in networks.QUICK:
                continue
            if asked.only and not {network, f"{network}/{name}"} & set(asked.only):
                continue
            yield network, name, plan


def run(asked, work):
    def run_plan(arguments):
        done = subprocess.run([asked.plan, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"plan {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")

    explained = json.loads((HERE / "differences.json").read_text(encoding="utf-8"))
    results, rows, failed = Results(), [], 0
    for network, name, plan in chosen(asked):
        case = f"{network}/{name}"
        try:
            document = networks.make(run_plan, network, plan, work / network / name.replace(" ", "_").replace(",", ""))
            row = executed(document, results)
        except (Unsupported, ValueError, RuntimeError) as e:
            print(f"FAILED   {case}: {e}", flush=True)
            failed += 1
            continue
        rows.append({"case": case, **row})
        failed += not judge(case, row, differences(row), explained.get(case, {}), f"{HERE.name}/differences.json", "" if agrees(row) else "one device",
                            f"; {row['seconds']:.0f} s")
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if asked.mutations:
        import mutations
        failed += mutations.run(run_plan, work, results, sys.modules[__name__])
    print(f"{len(rows)} cases executed, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    main()
