"""Textbook plans as plan.json, for `plan --import`: a strategy of a group of devices, in stages, with micro-batches and shared states."""

import copy
import json

SHARED = {"none": {}, "optimizer": {}, "gradients": {"sharded_gradients": True}, "parameters": {"sharded_parameters": True},
          "parameters within nodes": {"sharded_parameters": True, "sharded_within_nodes": True}}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(document, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)


def compose(strategy, order, devices, micro_batches=1, sharded="none", recompute=False, segments=1, cuts=(), launch_order="1f1b", interleaved=1):
    """`strategy`: a plan without stages, of a group of devices and the samples of one micro-batch. `order`: names of operators as data pass them; a
    stage begins at each of `cuts`. Each stage has `segments` that are computed again, of equal numbers of operators."""
    plan = copy.deepcopy(strategy)
    operators = {o["name"]: o for stage in strategy["stages"] for o in stage["operators"]}
    stages, groups = len(cuts) + 1, (len(cuts) + 1) // interleaved
    plan["topology"]["devices"] = devices
    plan["topology"].pop("name", None)
    plan.pop("predicted_ps", None)
    plan.update({"micro_batches": micro_batches, "order": launch_order, "sharded_optimizer": sharded != "none", **SHARED[sharded]})
    if interleaved > 1:
        plan["interleaved"] = interleaved
    firsts = [0] + [order.index(c) for c in cuts] + [len(order)]
    plan["stages"] = []
    for s in range(stages):
        names = order[firsts[s]:firsts[s + 1]]
        chosen = [copy.deepcopy(operators[n]) for n in names]
        for number, o in enumerate(chosen):
            base = s % groups * (devices // groups)
            if "devices" in o:
                o["devices"] = [d + base for d in o["devices"]]
            else:
                o["start"] += base
            if segments > 1:
                o["segment"] = number * segments // len(chosen)
        plan["stages"].append({"recompute": recompute, "operators": chosen})
    return plan
