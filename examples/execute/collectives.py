"""The collectives of a compiled program, and those that a plan predicts, in the same words.

Bytes are those of the whole tensor, as the library counts them: the result of an all-reduce or all-gather, the input of a reduce-scatter, what all devices
of an all-to-all hold together.
"""

import math
import re

SIZES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "s64": 8, "u64": 8, "s32": 4, "u32": 4, "s8": 1, "u8": 1, "pred": 1}
KINDS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter", "all-to-all": "all_to_all",
         "collective-permute": "message"}
LINE = re.compile(r"=\s*(?P<shape>\([^=]*?\)|\S+)\s+(?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def bytes_of(shapes):
    return sum(SIZES[t] * math.prod(int(n) for n in extents.split(",") if n) for t, extents in re.findall(r"(\w+)\[([\d,]*)\]", shapes))


def groups_of(line):
    """(how many groups, devices of each)."""
    listed = re.search(r"replica_groups=\{(\{[\d,]*\}(?:,\{[\d,]*\})*)\}", line)
    if listed:
        groups = re.findall(r"\{([\d,]*)\}", listed[1])
        return len(groups), len(groups[0].split(","))
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if iota:
        return int(iota[1]), int(iota[2])
    pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", line)
    if pairs:
        return pairs[1].count("{"), 2
    raise ValueError(f"a collective without groups: {line}")


def collectives_of(text):
    """Of the text of a compiled program: {(kind, devices of a group, bytes of the whole tensor): how many of them}. A collective of several tensors,
    which XLA makes of several collectives, counts as one of all their bytes."""
    counts = {}
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        found = LINE.search(line)
        if not found:
            continue
        kind, (groups, size) = KINDS[found["kind"]], groups_of(line)
        result = bytes_of(found["shape"])
        whole = {"all_reduce": result, "all_gather": result, "reduce_scatter": result * size, "all_to_all": result * size, "message": result}[kind]
        if size > 1:
            counts[kind, size, whole] = counts.get((kind, size, whole), 0) + groups
    return counts


def sent(kind, devices, size):
    """Bytes that all devices send together in a collective along a ring, or all to all."""
    return {"all_gather": (devices - 1) * size, "reduce_scatter": (devices - 1) * size,
            "broadcast": (devices - 1) * size, "reduce": (devices - 1) * size, "all_to_all": size * (devices - 1) // devices,
            "message": size, "all_to_all_v": size}[kind]


def totals(counts):
    """{kind: bytes sent} of {(kind, devices, bytes): times}. An all-reduce counts as a reduce-scatter and an all-gather, which it is. Collectives of two
    devices are messages: the library makes no difference."""
    out = {}
    for (kind, devices, size), times in counts.items():
        for half in ("all_gather", "reduce_scatter") if kind == "all_reduce" else (kind,):
            told = "message" if devices == 2 else half
            out[told] = out.get(told, 0) + sent(half, devices, size) * times
    return {kind: out[kind] for kind in sorted(out)}


def predicted(document):
    """The collectives and messages that the plan predicts, as `collectives_of` has them."""
    out = {}
    for m in document["predicted"]["moves"]:
        key = (m["kind"], m["devices"], m["bytes"])
        out[key] = out.get(key, 0) + m["times"]
    return out
