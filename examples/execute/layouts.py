"""Where parts of a tensor are on a mesh, and how they get from one place to another. To be used inside of `jax.shard_map`.

A layout is (spec, partial): of each axis of the tensor the mesh axes that split it, the outermost first, and the mesh axes along which devices hold partial
sums. Along all others devices hold the same.
"""

import math

from jax import lax

from parts import Unsupported


def position(names, sizes):
    number = 0
    for axis in names:
        number = number * sizes[axis] + lax.axis_index(axis)
    return number


def cut(x, axis, names, sizes):
    """This device's piece of a whole axis."""
    extent = x.shape[axis] // math.prod(sizes[a] for a in names)
    return lax.dynamic_slice_in_dim(x, position(names, sizes) * extent, extent, axis)


def move(x, layout, spec, sizes):
    """The part of `x` under (`spec`, no partial sums)."""
    (have, partial), used = layout, {a for names in layout[0] for a in names}
    have = [list(names) for names in have]
    # Cut first what all have whole.
    for t, names in enumerate(spec):
        if list(names[:len(have[t])]) == have[t]:
            more = []
            for a in names[len(have[t]):]:
                if a in partial or a in used:
                    break
                more.append(a)
            if more:
                x = cut(x, t, more, sizes)
                have[t] += more
    # Partial sums: scattered where the result is split along their axes, else to all.
    left = set(partial)
    for t, names in enumerate(spec):
        if list(names[:len(have[t])]) == have[t]:
            more = []
            for a in names[len(have[t]):]:
                if a not in left:
                    break
                more.append(a)
            if more:
                x = lax.psum_scatter(x, tuple(more), scatter_dimension=t, tiled=True)
                have[t] += more
                left -= set(more)
    if left:
        x = lax.psum(x, tuple(a for a in sizes if a in left))
    # An axis that is split another way: all to all.
    for t, names in enumerate(have):
        for u, others in enumerate(spec):
            if t != u and names and list(names) != list(spec[t]) and list(others[:len(have[u])]) == have[u]:
                common = [a for a in others[len(have[u]):] if a in names]
                if common and names[len(names) - len(common):] == common and list(others[len(have[u]):len(have[u]) + len(common)]) == common:
                    x = lax.all_to_all(x, tuple(common), split_axis=u, concat_axis=t, tiled=True)
                    del names[len(names) - len(common):]
                    have[u] += common
    # The rest is gathered, and cut anew.
    for t, names in enumerate(spec):
        same = 0
        while same < min(len(names), len(have[t])) and names[same] == have[t][same]:
            same += 1
        if have[t][same:]:
            x = lax.all_gather(x, tuple(have[t][same:]), axis=t, tiled=True)
            del have[t][same:]
    for t, names in enumerate(spec):
        if tuple(have[t]) != tuple(names):
            x = cut(x, t, names[len(have[t]):], sizes)
            have[t] = list(names)
    if tuple(map(tuple, have)) != tuple(map(tuple, spec)):
        raise Unsupported(f"from {layout} to {spec}: this movement is not executed")
    return x
