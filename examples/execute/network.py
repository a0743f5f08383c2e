"""What the operators of a graph compute, on whole tensors or on the parts of one device.

An operator is as `plan --export jax` writes it: dims, and how they index its tensors. Numbers that a graph does not hold (of a scale, a shift, a power)
are the same here for all, and dropout passes its input on, so that a network computes one thing however it is split.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

import parts
from parts import Unsupported, only_dim

EPSILON = 1e-5


class Part(parts.Part):
    def place(self, axis):
        return lax.axis_index(axis)


def letters(operand):
    return "".join(chr(ord("a") + only_dim(a)) for a in operand["axes"])


def erf(x):
    return jax.scipy.special.erf(x)


UNARY = {
    "identity": lambda x: x, "negate": lambda x: -x, "absolute": jnp.abs, "relu": jax.nn.relu, "leaky_relu": lambda x: jnp.where(x > 0, x, 0.01 * x),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, "silu": lambda x: x * jax.nn.sigmoid(x), "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x, "scale": lambda x: x * 0.5, "shift": lambda x: x + 0.5, "power": lambda x: x ** 2, "elu": jax.nn.elu,
    "selu": jax.nn.selu, "celu": jax.nn.celu, "hard_sigmoid": jax.nn.hard_sigmoid, "hard_swish": jax.nn.hard_swish, "softsign": jax.nn.soft_sign,
    "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)), "erf": erf, "clip": lambda x: jnp.clip(x, -1, 1), "sin": jnp.sin, "cos": jnp.cos,
    "dropout": lambda x: x, "cast": lambda x: x,
}
NARY = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": jnp.divide, "maximum": jnp.maximum, "minimum": jnp.minimum,
}


def product(part, inputs, weights):
    op = part.operator
    named = list(zip(op["inputs"], inputs)) + [(w, v) for w, v in zip(op.get("weights", []), weights) if w["name"] != "bias"]
    out = op["outputs"][0]
    y = jnp.einsum(",".join(letters(o) for o, _ in named) + "->" + letters(out), *(v for _, v in named))
    for w, v in zip(op.get("weights", []), weights):
        if w["name"] == "bias":
            y = y + along(part, v, w, out) * part.first_of_sums(out)
    return y


def along(part, value, operand, other):
    """`value`, with axes in the places that its dims have in `other`."""
    shape = [1] * len(other["axes"])
    for i, axis in enumerate(operand["axes"]):
        for j, there in enumerate(other["axes"]):
            if axis["terms"] and there["terms"] and axis["terms"][0][0] == there["terms"][0][0]:
                shape[j] = value.shape[i]
    return value.reshape(shape)


def window(part, axis, out_extent, kernel):
    """(stride, (padding before, behind), dilation) along an axis that a window slides over."""
    dim, stride = axis["terms"][0]
    span, before = axis.get("span", 1), -axis.get("offset", 0)
    if part.over(dim) and not (span == stride and before == 0):
        part.refuse(f"dim '{part.dims[dim]['name']}' is split and windows overlap: halos are not executed")
    extent = axis["extent"] // part.degree(dim)
    return stride, (before, (out_extent - 1) * stride + span - before - extent), (span - 1) // (kernel - 1) if kernel > 1 else 1


def convolution(part, inputs, weights):
    op = part.operator
    x, w, out = op["inputs"][0], op["weights"][0], op["outputs"][0]
    shape = part.shape(out)
    strides, padding, dilation = zip(*(window(part, x["axes"][i], shape[i], w["axes"][i]["extent"]) for i in range(2, len(shape))))
    letters_of = "HWD"[:len(shape) - 2]
    y = lax.conv_general_dilated(inputs[0], weights[0], strides, padding, rhs_dilation=dilation,
                                 dimension_numbers=("NC" + letters_of, "OI" + letters_of, "NC" + letters_of),
                                 feature_group_count=inputs[0].shape[1] // weights[0].shape[1])
    if len(weights) > 1:
        y = y + weights[1].reshape((1, -1) + (1,) * (len(shape) - 2)) * part.first_of_sums(out)
    return y


def pool(part, inputs, weights):
    op = part.operator
    x, out = op["inputs"][0], op["outputs"][0]
    shape = part.shape(out)
    windows, strides, padding = [1, 1], [1, 1], [(0, 0), (0, 0)]
    for i in range(2, len(shape)):
        span = x["axes"][i].get("span", 1)
        stride, around, _ = window(part, x["axes"][i], shape[i], 1)
        windows.append(span)
        strides.append(stride)
        padding.append(around)
    if op["kind"].startswith("max"):
        return lax.reduce_window(inputs[0], -jnp.inf, lax.max, windows, strides, padding)
    return lax.reduce_window(inputs[0], 0.0, lax.add, windows, strides, padding) / math.prod(windows)


def batch_norm(part, inputs, weights):
    """Statistics of the samples of each shard: on whole tensors of each group of samples that the plan has on one device."""
    op, x = part.operator, inputs[0]
    channel = only_dim(op["weights"][0]["axes"][0])
    groups = 1
    for i, axis in enumerate(op["inputs"][0]["axes"]):
        d = only_dim(axis)
        if d != channel and part.planned_degree(d) > 1:
            if i > 0:
                part.refuse(f"dim '{part.dims[d]['name']}' is split: statistics of parts of a sample are not executed")
            groups = part.planned_degree(d) // part.degree(d)
    grouped = x.reshape((groups, x.shape[0] // groups) + x.shape[1:])
    axes = tuple(i for i in range(1, grouped.ndim) if i != 2)
    mean = grouped.mean(axes, keepdims=True)
    variance = ((grouped - mean) ** 2).mean(axes, keepdims=True)
    y = ((grouped - mean) * lax.rsqrt(variance + EPSILON)).reshape(x.shape)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    y = y * weights[0].reshape(shape) + weights[1].reshape(shape)
    return jax.nn.relu(y) if op["kind"].endswith("relu") else y


def norm(part, inputs, weights):
    op, x = part.operator, inputs[0]
    axes = tuple(i for i, a in enumerate(op["inputs"][0]["axes"]) if part.dims[only_dim(a)]["kind"] == "fixed")
    if op["kind"] == "layer_norm":
        x = x - x.mean(axes, keepdims=True)
    y = x * lax.rsqrt((x * x).mean(axes, keepdims=True) + EPSILON)
    for w, v in zip(op.get("weights", []), weights):
        y = y + v if w["name"] == "bias" else y * v
    return y


def softmax(part, inputs, weights):
    op = part.operator
    axis = next(i for i, a in enumerate(op["inputs"][0]["axes"]) if part.dims[only_dim(a)]["kind"] == "fixed")
    return (jax.nn.log_softmax if op["kind"] == "log_softmax" else jax.nn.softmax)(inputs[0], axis)


def cross_entropy(part, inputs, weights):
    logits, labels = inputs
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), labels[..., None], -1)[..., 0]


def lookup(part, inputs, weights):
    op, table = part.operator, weights[0]
    rows = only_dim(op["weights"][0]["axes"][0])
    at = inputs[0] - part.begin(rows)
    here = (at >= 0) & (at < table.shape[0])
    y = jnp.where(here[..., None], table[jnp.clip(at, 0, table.shape[0] - 1)], 0)
    return y.sum(-2) if op["kind"] == "embedding_bag" else y


def scores_and_values(part, q, k, v):
    """q[s, lq, groups, heads of a group, d], k and v[s, lk, groups, d]."""
    queries = part.dim("lq")
    scores = jnp.einsum("sqghd,skgd->sghqk", q, k) / math.sqrt(q.shape[-1])
    if "causal" in part.operator.get("variant", ""):
        seen = jnp.arange(k.shape[1])[None, :] <= (part.begin(queries) + jnp.arange(q.shape[1]))[:, None]
        scores = jnp.where(seen, scores, -1e30)
    y = jnp.einsum("sghqk,skgd->sqghd", jax.nn.softmax(scores, -1), v)
    return y.reshape(y.shape[0], y.shape[1], -1)


def attention(part, inputs, weights):
    op = part.operator
    if len(inputs) > 3 or any(len(o["axes"]) != 3 or only_dim(o["axes"][0]) != part.dim("s") for o in op["inputs"] + op["outputs"]):
        part.refuse("masks and layouts other than [s, l, heads * d] are not executed")
    groups = part.extent(part.dim("heads"))
    q, k, v = inputs
    d = op["inputs"][1]["axes"][2]["terms"][0][1]
    return scores_and_values(part, q.reshape(q.shape[0], q.shape[1], groups, -1, d), *(t.reshape(t.shape[0], t.shape[1], groups, -1) for t in (k, v)))


def multi_head_attention(part, inputs, weights):
    op = part.operator
    w = {o["name"]: v for o, v in zip(op["weights"], weights)}
    d = next(o for o in op["weights"] if o["name"] == "k_weight")["axes"][0]["terms"][0][1]
    groups = part.extent(part.dim("heads"))

    def projected(x, name):
        y = x @ w[name + "_weight"].T
        return y + w[name + "_bias"] if name + "_bias" in w else y

    q, k, v = (projected(x, name) for x, name in zip(inputs, "qkv"))
    y = scores_and_values(part, q.reshape(q.shape[0], q.shape[1], groups, -1, d), *(t.reshape(t.shape[0], t.shape[1], groups, d) for t in (k, v)))
    y = y @ w["out_weight"].T
    return y + w["out_bias"] * part.first_of_sums(op["outputs"][0]) if "out_bias" in w else y


def rotary(part, inputs, weights):
    op = part.operator
    if len(op["inputs"][0]["axes"]) != 3:
        part.refuse("layouts other than [s, l, heads * d] are not executed")
    x, cos, sin = inputs
    heads = part.extent(part.dim("heads"))
    pairs = x.reshape(x.shape[0], x.shape[1], heads, 2, -1)
    a, b = pairs[..., 0, :], pairs[..., 1, :]
    cos, sin = cos[None, :, None, :a.shape[-1]], sin[None, :, None, :a.shape[-1]]
    return jnp.stack([a * cos - b * sin, b * cos + a * sin], -2).reshape(x.shape)


def gate(part, inputs, weights):
    k = int(part.operator["kind"].split("_")[1])
    least = lax.top_k(inputs[0], k)[0][..., -1:]
    return jnp.where(inputs[0] >= lax.stop_gradient(least), inputs[0], 0)


def slots(gates, count, before=0):
    """Of gates[s, l, e], one_hot[s, l, e, c]: which slot of which expert has which token, `before`[s, 1, e] of whose tokens are of earlier positions."""
    chosen = gates != 0
    place = jnp.cumsum(chosen, 1) - 1 + before
    return jax.nn.one_hot(jnp.where(chosen & (place < count), place, count), count, dtype=gates.dtype)


def dispatch(part, inputs, weights):
    x, gates = inputs
    return jnp.einsum("slec,slh->sech", slots(lax.stop_gradient(gates), part.extent(part.dim("c"))), x)


def moe_combine(part, inputs, weights):
    x, gates = inputs
    positions, before = part.dim("l"), 0
    if part.over(positions):  # tokens take their slots in turn along positions, of which other devices have the earlier ones
        counts = lax.all_gather((lax.stop_gradient(gates) != 0).sum(1), tuple(part.over(positions)))
        earlier = jnp.arange(counts.shape[0]) < part.index(positions)
        before = jnp.where(earlier[:, None, None], counts, 0).sum(0)[:, None, :]
    return jnp.einsum("slec,sle,sech->slh", slots(lax.stop_gradient(gates), x.shape[2], before), gates, x)


def concat(part, inputs, weights):
    op = part.operator
    axis = next(i for i, a in enumerate(op["inputs"][-1]["axes"]) if a.get("offset", 0) != 0) if len(inputs) > 1 else 1
    part.require_whole([only_dim(op["outputs"][0]["axes"][axis])], "what is joined is not cut by it")
    return jnp.concatenate(inputs, axis)


def part_of_axes(part, inputs, weights):
    """slice and split."""
    op = part.operator
    results = []
    for out in op["outputs"]:
        y = inputs[0]
        for i, (axis, there) in enumerate(zip(op["inputs"][0]["axes"], out["axes"])):
            begin, step = axis.get("offset", 0) - there.get("offset", 0), axis["terms"][0][1]
            if axis["extent"] != there["extent"] or begin != 0:
                part.require_whole([axis["terms"][0][0]], "what is cut out is not cut by it")
                y = lax.slice_in_dim(y, begin, begin + (there["extent"] - 1) * step + 1, step, i)
        results.append(y)
    return results


def transpose(part, inputs, weights):
    op = part.operator
    there = [only_dim(a) for a in op["inputs"][0]["axes"]]
    return jnp.transpose(inputs[0], [there.index(only_dim(a)) for a in op["outputs"][0]["axes"]])


def reshape(part, inputs, weights):
    return inputs[0].reshape(part.shape(part.operator["outputs"][0]))


def reduced(part, inputs, weights):
    """Pooling of all positions, and reductions: sums and means, as partial ones can be added."""
    op, mode = part.operator, part.operator["kind"]
    kept = {d for a in op["outputs"][0]["axes"] for d, _ in a["terms"]}
    axes = [i for i, a in enumerate(op["inputs"][0]["axes"]) if only_dim(a) is not None and only_dim(a) not in kept]
    if "max" in mode:
        part.require_whole([only_dim(op["inputs"][0]["axes"][i]) for i in axes], "maxima of parts cannot be added")
        y = inputs[0].max(tuple(axes))
    elif "average" in mode or "mean" in mode or "sum" in mode:
        y = inputs[0].sum(tuple(axes))
        if "sum" not in mode:
            y = y / math.prod(op["inputs"][0]["axes"][i]["extent"] for i in axes)
    else:
        part.refuse("this reduction is not executed")
    return y.reshape(part.shape(op["outputs"][0]))


KINDS = {
    "linear": product, "einsum": product, "batched_matmul": product, "conv2d": convolution, "conv1d": convolution, "max_pool2d": pool,
    "average_pool2d": pool, "batch_norm": batch_norm, "batch_norm_relu": batch_norm, "layer_norm": norm, "rms_norm": norm, "softmax": softmax, "log_softmax": softmax,
    "cross_entropy": cross_entropy, "embedding": lookup, "embedding_bag": lookup, "attention": attention,
    "multi_head_attention": multi_head_attention, "rotary_embedding": rotary, "moe_dispatch": dispatch, "moe_combine": moe_combine, "concat": concat,
    "slice": part_of_axes, "split": part_of_axes, "transpose": transpose, "reshape": reshape, "flatten": reshape,
    "average_global_pool": reduced, "max_global_pool": reduced, "reduce_sum": reduced, "reduce_mean": reduced, "reduce_max": reduced,
}


def compute(part, inputs, weights):
    """The outputs of an operator, a list, from its parts of inputs and weights."""
    op = part.operator
    kind = op["kind"]
    if any(d["kind"] in ("copies", "sums") and part.over(i) for i, d in enumerate(part.dims)):
        part.refuse("copies and partial sums as dims are not executed")
    if kind in UNARY:
        y = UNARY[kind](inputs[0])
    elif kind in NARY:
        y = inputs[0] if inputs else weights[0]
        for other in list(inputs[1:]) + list(weights if inputs else weights[1:]):
            y = NARY[kind](y, other)
    elif kind.startswith("top_") and kind.endswith("_gate"):
        y = gate(part, inputs, weights)
    elif kind in KINDS:
        y = KINDS[kind](part, inputs, weights)
    else:
        part.refuse("this kind of operator is not executed")
    return list(y) if isinstance(y, (list, tuple)) else [y]
