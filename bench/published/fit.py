"""Fits the parts of peaks that devices reach to published runs: to all of them, and to all but those of one source, which are then predicted."""

import math

import figures

START = {"matmul": 0.6, "attention": 0.3, "convolution": 0.5}
STEP = 0.1  # by which the logarithm of a part is lowered, to see what it is worth
TOLD = 0.05  # of the time of some run, at least, rests on a part that runs tell
ROUNDS = 30


def solve(matrix, right):
    """A small system of linear equations, by elimination with pivots."""
    rows = [[*m, b] for m, b in zip(matrix, right)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda j: abs(rows[j][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for j in range(len(rows)):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


class run:
    """A run's time, over what was published, as a function of parts: a constant, and for each class what is inverse to its part."""

    def __init__(self, at, ratio, lowered):
        self.inverse = {c: (1 / lowered[c] - 1 / ratio) / (math.exp(STEP) - 1) * at[c] for c in at}
        self.rest = 1 / ratio - sum(self.inverse[c] / at[c] for c in at)

    def time(self, parts):
        return self.rest + sum(self.inverse[c] / parts[c] for c in self.inverse)

    def slope(self, parts, c):
        """Of the logarithm of predicted over published throughput by that of a part."""
        return self.inverse[c] / parts[c] / self.time(parts) if c in self.inverse else 0


def priced(rows, at, price):
    """Those of `rows` that can be simulated; says why others can not."""
    out = []
    for row, ratio in zip(rows, price(rows, at)):
        if isinstance(ratio, str):
            print(f"left out: {row['name']}: {ratio}")
        else:
            out.append(row)
    return out


def linear(rows, at, price):
    """The runs of `rows` about the parts `at`."""
    ratios = price(rows, at)
    lowered = {c: price(rows, at | {c: at[c] * math.exp(-STEP)}) for c in at}
    return [run(at, ratio, {c: lowered[c][i] for c in at}) for i, ratio in enumerate(ratios)]


def fitted(runs, parts):
    """The parts with the least sum of squared logarithms of ratios, by Gauss and Newton, of those that runs tell."""
    told = [c for c in parts if any(r.slope(parts, c) > TOLD for r in runs)]
    parts = dict(parts)
    for _ in range(ROUNDS):
        slopes = [[r.slope(parts, c) for c in told] for r in runs]
        errors = [-math.log(r.time(parts)) for r in runs]
        # Runs that are alike tell a sum of two parts, not each: of these the change that is least.
        square = [[sum(s[i] * s[j] for s in slopes) + (1e-4 if i == j else 0) for j in range(len(told))] for i in range(len(told))]
        change = solve(square, [-sum(s[i] * e for s, e in zip(slopes, errors)) for i in range(len(told))])
        for c, by in zip(told, change):
            parts[c] = min(1, parts[c] * math.exp(max(-0.3, min(0.3, by))))
    return parts, told


def error(runs, parts):
    ratios = [1 / r.time(parts) for r in runs]
    worst = max(ratios, key=lambda r: abs(math.log(r)))
    return f"{figures.geometric_mean(ratios):6.3f} {worst:6.3f} {figures.near(ratios):7.0%}"


def report(asked, price):
    """Prints fits for each device and type. `price(rows, parts)`: ratios of predicted to published, or why there is none."""
    print(f"{'device, type':<16} {'fitted to':<24} {'rows':>4}  {'parts of the peak':<34} {'mean':>6} {'worst':>6} {'in 10%':>7}"
          f"  {'left out: mean':>14} {'worst':>6} {'in 10%':>7}")
    told = [one for one in asked if one.get("fit")]
    for device, dtype in dict.fromkeys(one["fit"][:2] for one in told):
        own = [one for one in told if one["fit"][:2] == (device, dtype)]
        at = {c: START[c] for one in own for c in one["fit"][2]}
        own = priced(own, at, price)
        if not own:
            continue
        sources = list(dict.fromkeys(one["source"] for one in own))
        for _ in range(2):  # about the start, then about what was found
            runs = linear(own, at, price)
            at, _known = fitted(runs, at)
        for without in [None, *(sources if len(sources) > 1 else [])]:
            kept = [r for one, r in zip(own, runs) if one["source"] != without]
            left = [r for one, r in zip(own, runs) if one["source"] == without]
            parts, known = fitted(kept, at)
            print(f"{device + ', ' + dtype:<16} {'all' if without is None else 'all but ' + without:<24} {len(kept):>4}  "
                  f"{' '.join(f'{c} {parts[c]:.3f}' for c in known):<34} {error(kept, parts)}"
                  + (f"  {'':7} {error(left, parts)}" if left else ""), flush=True)
