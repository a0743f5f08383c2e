"""What runtimes share: parts of operators on devices, where parts of operands are, first values, the optimizer's step."""

import math

import numpy

LEARNING_RATE, MOMENTUM, BETAS, ADAM_EPSILON = 0.1, 0.9, (0.9, 0.999), 1e-8


class Unsupported(Exception):
    """An operator or a split that is not executed; says which and why."""


class Part:
    """The part of an operator's iteration space on one device. `sizes`: of mesh axes; `whole`: all of it on one device."""

    def __init__(self, operator, sizes, whole=False):
        self.operator, self.sizes, self.whole = operator, sizes, whole
        self.dims = operator["dims"]

    def over(self, dim):
        return [] if self.whole else self.dims[dim].get("over", [])

    def degree(self, dim):
        return math.prod(self.sizes[a] for a in self.over(dim))

    def planned_degree(self, dim):
        return math.prod(self.sizes[a] for a in self.dims[dim].get("over", []))

    def extent(self, dim):
        return self.dims[dim]["extent"] // self.degree(dim)

    def place(self, axis):
        """Where this device is along a mesh axis: what the runtime says."""
        raise NotImplementedError

    def index(self, dim):
        """The number of this device's part."""
        number = 0
        for axis in self.over(dim):
            number = number * self.sizes[axis] + self.place(axis)
        return number

    def begin(self, dim):
        return self.index(dim) * self.extent(dim) if self.over(dim) else 0

    def dim(self, name):
        return next((i for i, d in enumerate(self.dims) if d["name"] == name), None)

    def shape(self, operand):
        """Of this device's part of an operand."""
        return tuple(a["extent"] // math.prod(self.degree(d) for d, _ in a["terms"]) for a in operand["axes"])

    def first_of_sums(self, operand):
        """1 on the device that holds the first partial sum of `operand`, else 0: what is added once is added there."""
        indexed = {d for a in operand["axes"] for d, _ in a["terms"]}
        first = True
        for d in range(len(self.dims)):
            if d not in indexed and self.over(d):
                first = (self.index(d) == 0) & first
        return first

    def refuse(self, why):
        raise Unsupported(f"operator '{self.operator['name']}' ({self.operator['kind']}): {why}")

    def require_whole(self, dims, why):
        for d in dims:
            if self.over(d):
                self.refuse(f"dim '{self.dims[d]['name']}' is split: {why}")


def only_dim(axis):
    return axis["terms"][0][0] if axis["terms"] else None


def wanted_spec(part, operand, what):
    """How an operator's part of an operand is split."""
    spec = []
    for axis in operand["axes"]:
        names = []
        for dim, stride in sorted(axis["terms"], key=lambda t: -t[1]):
            over = part.over(dim)
            if over and (axis.get("offset", 0) != 0 or axis.get("span", 1) != stride or axis["extent"] != stride * part.dims[dim]["extent"]):
                part.refuse(f"{what} is split by dim '{part.dims[dim]['name']}' in pieces that overlap or have gaps: halos are not executed")
            names += over
        spec.append(tuple(names))
    return tuple(spec)


def beside(part, operand):
    """The mesh axes of dims that do not index an operand: along them gradients are partial sums."""
    indexed = {d for a in operand["axes"] for d, _ in a["terms"]}
    return frozenset(a for d in range(len(part.dims)) if d not in indexed for a in part.over(d))


def trains(operator):
    return bool(operator.get("weights")) or any(i.get("gradient", True) for i in operator["inputs"])


def terminals(document):
    """What no operator reads and a gradient flows through: (operator, output)."""
    read = {(i["of"], i["output"]) for o in document["operators"] for i in o["inputs"]}
    return [(o["name"], n) for o in document["operators"] if trains(o) for n in range(len(o["outputs"])) if (o["name"], n) not in read]


def whole_shape(operand):
    return tuple(a["extent"] for a in operand["axes"])


def states_of(optimizer):
    return {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]


def updated(optimizer, p, g, states):
    """The parameter and its states behind the first step."""
    if optimizer == "sgd":
        return p - LEARNING_RATE * g, []
    if optimizer == "momentum":
        m = MOMENTUM * states[0] + g
        return p - LEARNING_RATE * m, [m]
    m, v = (b * s + (1 - b) * x for b, s, x in zip(BETAS, states, (g, g * g)))
    return p - LEARNING_RATE * (m / (1 - BETAS[0])) / ((v / (1 - BETAS[1])) ** 0.5 + ADAM_EPSILON), [m, v]


def initial(document, seed=0):
    """Parameters and the inputs of all micro-batches, drawn at random; indices are below what they index."""
    rng = numpy.random.default_rng(seed)
    parameters = {}
    for p in document["parameters"]:
        fan = math.prod(p["shape"][1:]) if len(p["shape"]) > 1 else 4
        parameters[p["name"]] = rng.standard_normal(p["shape"]) / math.sqrt(fan)
    limits = {}
    for o in document["operators"]:
        for number, i in enumerate(o["inputs"]):
            limit = {"embedding": lambda: o["weights"][0]["axes"][0]["extent"], "embedding_bag": lambda: o["weights"][0]["axes"][0]["extent"],
                     "cross_entropy": lambda: o["inputs"][0]["axes"][-1]["extent"] if number == 1 else None}.get(o["kind"], lambda: None)()
            if limit:
                limits[i["of"]] = min(limit, limits.get(i["of"], limit))
    batches = []
    for _ in range(document["micro_batches"]):
        batch = {}
        for i in document["inputs"]:
            if i["type"].startswith("i"):
                batch[i["name"]] = rng.integers(0, limits.get(i["name"], 2), i["shape"])
            else:
                batch[i["name"]] = rng.standard_normal(i["shape"])
        batches.append(batch)
    return parameters, batches


def differing(row):
    """{kind: [measured, predicted]} of the bytes that differ."""
    pairs = {kind: [row["measured"].get(kind, 0), row["predicted"].get(kind, 0)] for kind in sorted({*row["measured"], *row["predicted"]})}
    return {kind: pair for kind, pair in pairs.items() if pair[0] != pair[1]}


def judge(case, row, found, told, file, apart, beside):
    """Prints what came of a case: what differs, `found`, must be `told` in `file`. `apart`: what its numbers differ from, if so. Answers whether it is right."""
    wrong = [f"{what} is {pair[0]}, predicted {pair[1]}" for what, pair in found.items() if told.get(what, [])[:2] != pair]
    wrong += [f"{what} does not differ as {file} says" for what in told if what not in found]
    wrong += [f"differs from {apart}"] if apart else []
    print(f"{'FAILED' if wrong else 'agrees':8} {case}: loss {row['loss']:.1e}, gradients {row['gradients']:.1e}, parameters {row['parameters']:.1e}; "
          f"sent {sum(row['measured'].values())} B, predicted {sum(row['predicted'].values())} B"
          f"{', explained' if told and not wrong else ''}{beside}", flush=True)
    for what in wrong:
        print(f"         {what}")
    return not wrong


def error(got, wanted):
    """The largest difference of any tensor, by its largest element; of tensors that are all but zero by a millionth of the largest of all."""
    least = 1e-6 * max(float(numpy.abs(v).max()) for v in wanted.values())
    worst = 0.0
    for name, value in wanted.items():
        if got[name].shape != value.shape:
            raise ValueError(f"'{name}' has shape {got[name].shape}, on one device {value.shape}")
        difference = float(numpy.abs(got[name] - value).max())
        worst = max(worst, difference / max(float(numpy.abs(value).max()), least) if difference == difference else float("inf"))
    return worst
