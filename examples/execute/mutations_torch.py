"""Deliberately wrong exports for PyTorch: each must be found out by what is computed, by what moves, or by PyTorch."""

from parts import Unsupported
from wrong_exports import missed


def place(document, where, name, placements):
    entry = next(e for e in document[where] if name in (e.get("name"), e.get("operator")))
    entry["placements"] = placements


def other_weight_axis(d):
    """A parameter is split along another axis."""
    place(d, "parameters", "fc1.weight", ["Shard(1)"])


def whole_weight(d):
    """A parameter is whole."""
    place(d, "parameters", "fc2.weight", ["Replicate()"])


def missing_sum(d):
    """A sum is missing."""
    place(d, "activations", "fc2", ["Replicate()"])


def needless_sum(d):
    """What is no part is added up."""
    place(d, "activations", "fc1", ["Partial()"])


def other_axis(d):
    """An activation is split along another axis."""
    place(d, "activations", "fc1", ["Shard(0)"])


def kept_parameters(d):
    """Parameters stay gathered from forward to backward."""
    d["sharded_states"]["reshard_after_forward"] = False


def freed_parameters(d):
    """Parameters are gathered again by backward, and by each micro-batch."""
    d["sharded_states"]["reshard_after_forward"] = True


def fewer_groups(d):
    """A module is in no group."""
    d["sharded_states"]["groups"].pop()


def optimizer_alone(d):
    """The optimizer's state alone is shared."""
    d["sharded_states"] = {"class": "torch.distributed.optim.ZeroRedundancyOptimizer"}


def other_nodes(d):
    """States are shared within half of a node."""
    d["sharded_states"]["shard_within"] //= 2


def all_nodes(d):
    """States are shared among all nodes."""
    del d["sharded_states"]["shard_within"]


def cut_elsewhere(d):
    """The second stage begins a layer earlier."""
    d["pipelining"]["split_spec"][0]["operator"] = "fc2"


def other_order(d):
    """All micro-batches forward first, where forward and backward take turns."""
    d["pipelining"]["schedule"] = "ScheduleGPipe"


def fewer_micro_batches(d):
    """Half of the micro-batches."""
    d["pipelining"]["n_microbatches"] //= 2


def whole_between(d):
    """What is sent to the second stage is taken for whole."""
    place(d, "activations", "relu2", ["Replicate()"])


def kept_segment(d):
    """What a segment computes is kept."""
    d["checkpoint"]["segments"].pop()


def kept_operator(d):
    """An operator in the midst of a segment is kept."""
    d["checkpoint"]["segments"][1]["operators"].remove("block2.mlp.gelu")


def joined_segments(d):
    """Two segments are computed again as one."""
    second = d["checkpoint"]["segments"].pop(1)
    d["checkpoint"]["segments"][0]["operators"] += second["operators"]


MUTATIONS = {
    "mlp/tensor 4": [other_weight_axis, whole_weight, missing_sum, needless_sum, other_axis],
    "mlp/data 8, gradients, 2 micro-batches": [freed_parameters],
    "mlp/fully sharded 4": [kept_parameters, fewer_groups, optimizer_alone],
    "mlp/within nodes 2 x 4": [other_nodes, all_nodes],
    "mlp/pipeline 2 x data 2, 4 micro-batches": [cut_elsewhere, other_order, fewer_micro_batches, whole_between],
    "transformer/data 2, computed again": [kept_segment, kept_operator, joined_segments],
}


def run(case, plan, right, execute):
    """How many wrong exports of a case are not found out."""
    return missed(plan, MUTATIONS.get(case, []), right, (RuntimeError, Unsupported), execute)
