"""How near predictions are to what was published."""

import math

NEAR = 0.1


def ranks(values):
    """From 1; equal values share the mean of theirs."""
    at = sorted(values)
    return [at.index(v) + (at.count(v) + 1) / 2 for v in values]


def spearman(xs, ys):
    """Spearman's rank correlation; None where it is not defined."""
    a, b = ranks(xs), ranks(ys)
    middle = (len(xs) + 1) / 2
    square = lambda u, v: sum((x - middle) * (y - middle) for x, y in zip(u, v))  # noqa: E731
    spread = square(a, a) * square(b, b)
    return square(a, b) / math.sqrt(spread) if spread > 0 else None


def near(ratios):
    return sum(abs(r - 1) <= NEAR for r in ratios) / len(ratios)


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def figures(source, part, rows):
    """Of the rows that were predicted; None where there are none."""
    told = [row for row in rows if row["predicted"] is not None]
    ratios = [row["ratio"] for row in told]
    memory = [row["memory_ratio"] for row in told if row.get("memory_ratio")]
    return {"source": source, "part": part, "rows": len(rows), "predicted": len(told),
            "geometric_mean": geometric_mean(ratios) if told else None, "within_10_percent": near(ratios) if told else None,
            "least": min(ratios, default=None), "most": max(ratios, default=None),
            "spearman": spearman([row["predicted"] for row in told], [row["published"] for row in told]) if told else None,
            "memory_geometric_mean": geometric_mean(memory) if memory else None, "memory_within_10_percent": near(memory) if memory else None}


def summary(rows):
    """Of each source, and of its parts where it has several."""
    out = []
    for source in dict.fromkeys(row["source"] for row in rows):
        own = [row for row in rows if row["source"] == source]
        out.append(figures(source, "", own))
        parts = dict.fromkeys(row["part"] for row in own)
        if len(parts) > 1:
            out += [figures(source, part, [row for row in own if row["part"] == part]) for part in parts]
    return out
