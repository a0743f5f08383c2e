"""Deliberately wrong exports: each must be found out by what is computed, by what moves, or by memory."""

import networks
from parts import Unsupported
from wrong_exports import missed

# What a wrong export may end with: parts whose shapes do not fit, or a split that is not executed.
REFUSED = (Unsupported, ValueError)


def operator(document, name):
    return next(o for o in document["operators"] if o["name"] == name)


def dim(document, operator_name, name):
    return next(d for d in operator(document, operator_name)["dims"] if d["name"] == name)


def parameter(document, name):
    return next(p for p in document["parameters"] if p["name"] == name)


def wrong_axis(d):
    """A layer is split by inputs where it is to be split by outputs; its weight is where it was."""
    dim(d, "block1.mlp.1", "k")["over"] = dim(d, "block1.mlp.1", "o").pop("over")


def missing_sum(d):
    """Partial sums of a layer are taken for the whole."""
    del operator(d, "block1.mlp.2")["outputs"][0]["partial"]


def missing_gradient_sum(d):
    """Replicas of a weight do not add up its gradient."""
    parameter(d, "block2.mlp.1.weight")["replicas"] = []


def other_weight_axis(d):
    """A weight is cut along its other axis."""
    p = parameter(d, "block2.mlp.1.weight")
    p["spec"].reverse()
    next(w for w in operator(d, "block2.mlp.1")["weights"] if w["name"] == "weight")["spec"].reverse()


def other_mesh(d):
    """The mesh has its axes the other way round."""
    for stage in d["stages"]:
        sizes = [a["size"] for a in stage["mesh"]]
        for a, size in zip(stage["mesh"], reversed(sizes)):
            a["size"] = size


def unsplit_samples(d):
    """A norm runs on all samples everywhere."""
    del dim(d, "norm", "s")["over"]
    operator(d, "norm")["outputs"][0]["spec"][0] = []


def state_not_shared(d):
    """Replicas keep the whole state of the optimizer."""
    d["sharded"] = "none"
    for p in d["parameters"]:
        p.pop("state_spec", None)


def no_gradient(d):
    """A gradient is not passed on."""
    operator(d, "block1.mlp.add")["inputs"][1]["gradient"] = False


def cut_elsewhere(d):
    """The second stage begins a layer earlier."""
    operator(d, "fc2")["stage"] = 1
    operator(d, "relu2")["stage"] = 1
    for p in d["parameters"]:
        if p["name"].startswith("fc2."):
            p["stage"] = 1


def other_order(d):
    """All micro-batches forward first, where forward and backward take turns."""
    d["launches"].sort(key=lambda l: (l[0] == "backward", l[2], l[1] if l[0] == "forward" else -l[1]))


def fewer_micro_batches(d):
    """Half of the micro-batches."""
    d["micro_batches"] //= 2
    d["launches"] = [l for l in d["launches"] if l[2] < d["micro_batches"]]


def other_rows(d):
    """A table is looked up as if its rows were not split."""
    dim(d, "tokens", "v").pop("over")
    operator(d, "tokens")["outputs"][0].pop("partial", None)


MUTATIONS = {
    ("transformer", "tensor 2 x data 4, optimizer"): [wrong_axis, missing_sum, missing_gradient_sum, other_weight_axis, other_mesh, unsplit_samples,
                                                     state_not_shared, no_gradient, other_rows],
    ("mlp", "pipeline 2 x data 2, 4 micro-batches"): [cut_elsewhere, other_order, fewer_micro_batches],
}


def run(run_plan, work, results, execute):
    """How many are not found out."""
    count = 0
    for (network, name), mutations in MUTATIONS.items():
        document = networks.make(run_plan, network, networks.CASES[network][name], work / "mutations" / network)
        right = execute.executed(document, results)
        if not execute.agrees(right):
            print(f"FAILED   {network}/{name}, unchanged, differs from one device: wrong exports of it prove nothing", flush=True)
            count += len(mutations)
            continue

        def attempt(wrong):
            row = execute.executed(wrong, results, document)
            worst = max(row["loss"], row["gradients"], row["parameters"])
            return row, "" if execute.agrees(row) else f"one device by {worst:.1e}"

        count += missed(document, mutations, right, REFUSED, attempt)
    return count
