"""What the operators of a graph compute with PyTorch, on whole tensors or on the parts of one device: as network.py, of the kinds that are executed."""

import math

import torch
from torch.nn import functional

import parts
from parts import only_dim

EPSILON = 1e-5


class Part(parts.Part):
    """`mesh`: the device mesh, where the operator is not whole."""

    def __init__(self, operator, sizes, mesh=None):
        super().__init__(operator, sizes, whole=mesh is None)
        self.mesh = mesh

    def place(self, axis):
        return self.mesh.get_local_rank(axis)


def linear(part, inputs, weights):
    y = inputs[0] @ weights[0].T
    return y + weights[1] * part.first_of_sums(part.operator["outputs"][0]) if len(weights) > 1 else y


def lookup(part, inputs, weights):
    table = weights[0]
    at = inputs[0] - part.begin(only_dim(part.operator["weights"][0]["axes"][0]))
    here = (at >= 0) & (at < table.shape[0])
    y = torch.where(here[..., None], table[at.clamp(0, table.shape[0] - 1)], 0)
    return y.sum(-2) if part.operator["kind"] == "embedding_bag" else y


def norm(part, inputs, weights):
    op, x = part.operator, inputs[0]
    axes = tuple(i for i, a in enumerate(op["inputs"][0]["axes"]) if part.dims[only_dim(a)]["kind"] == "fixed")
    if op["kind"] == "layer_norm":
        x = x - x.mean(axes, keepdim=True)
    y = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + EPSILON)
    for w, v in zip(op.get("weights", []), weights):
        y = y + v if w["name"] == "bias" else y * v
    return y


def cross_entropy(part, inputs, weights):
    logits, labels = inputs
    return -functional.log_softmax(logits, -1).gather(-1, labels[..., None])[..., 0]


def scores_and_values(part, q, k, v):
    """q[s, lq, groups, heads of a group, d], k and v[s, lk, groups, d]."""
    scores = torch.einsum("sqghd,skgd->sghqk", q, k) / math.sqrt(q.shape[-1])
    if "causal" in part.operator.get("variant", ""):
        seen = torch.arange(k.shape[1])[None, :] <= (part.begin(part.dim("lq")) + torch.arange(q.shape[1]))[:, None]
        scores = scores.masked_fill(~seen, -1e30)
    return torch.einsum("sghqk,skgd->sqghd", scores.softmax(-1), v).flatten(2)


def attention(part, inputs, weights):
    op = part.operator
    if len(inputs) > 3 or any(len(o["axes"]) != 3 or only_dim(o["axes"][0]) != part.dim("s") for o in op["inputs"] + op["outputs"]):
        part.refuse("masks and layouts other than [s, l, heads * d] are not executed")
    groups, d = part.extent(part.dim("heads")), op["inputs"][1]["axes"][2]["terms"][0][1]
    q, *kv = inputs
    return scores_and_values(part, q.reshape(*q.shape[:2], groups, -1, d), *(t.reshape(*t.shape[:2], groups, -1) for t in kv))


def multi_head_attention(part, inputs, weights):
    op = part.operator
    w = {o["name"]: v for o, v in zip(op["weights"], weights)}
    d = next(o for o in op["weights"] if o["name"] == "k_weight")["axes"][0]["terms"][0][1]
    groups = part.extent(part.dim("heads"))
    q, k, v = (functional.linear(x, w[n + "_weight"], w.get(n + "_bias")) for x, n in zip(inputs, "qkv"))
    y = scores_and_values(part, q.reshape(*q.shape[:2], groups, -1, d), *(t.reshape(*t.shape[:2], groups, d) for t in (k, v)))
    y = y @ w["out_weight"].T
    return y + w["out_bias"] * part.first_of_sums(op["outputs"][0]) if "out_bias" in w else y


def rotary(part, inputs, weights):
    x, cosine, sine = inputs
    y = x.reshape(*x.shape[:2], -1, 2 * cosine.shape[-1])
    a, b = y.chunk(2, -1)
    cosine, sine = (t.reshape((1,) * (3 - t.dim()) + t.shape)[:, :, None, :] for t in (cosine, sine))
    return torch.cat((a * cosine - b * sine, a * sine + b * cosine), -1).reshape(x.shape)


UNARY = {"relu": torch.relu, "gelu": functional.gelu, "silu": functional.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "dropout": lambda x: x,
         "identity": lambda x: x}
NARY = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul}
KINDS = {"linear": linear, "embedding": lookup, "embedding_bag": lookup, "layer_norm": norm, "rms_norm": norm, "cross_entropy": cross_entropy,
         "attention": attention, "multi_head_attention": multi_head_attention, "rotary_embedding": rotary}


def compute(part, inputs, weights):
    """The output of an operator from its parts of inputs and weights."""
    kind = part.operator["kind"]
    if kind in UNARY:
        return UNARY[kind](inputs[0])
    if kind in NARY:
        first, *rest = list(inputs) + list(weights)
        for other in rest:
            first = NARY[kind](first, other)
        return first
    return KINDS[kind](part, inputs, weights) if kind in KINDS else part.refuse("this kind of operator is not executed with PyTorch")
