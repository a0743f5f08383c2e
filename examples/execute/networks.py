"""The networks that are executed, and their plans."""

import pathlib

import plans

SEQUENCE = "sequence=32,vocabulary=256"
# Small, of all that their kind has; in f64, so that what differs is not rounding.
NETWORKS = {
    "mlp": ("zoo:mlp,features=64,hidden=128x128x128,classes=32", 64),
    "transformer": (f"zoo:gpt,layers=4,hidden=64,heads=8,{SEQUENCE}", 32),
    "llama": (f"zoo:llama,layers=2,hidden=64,heads=8,kv_heads=4,feed_forward=128,tied=false,{SEQUENCE}", 16),
    "decoder": (f"zoo:llama,layers=4,hidden=64,heads=8,kv_heads=8,feed_forward=128,tied=false,{SEQUENCE}", 32),
    "experts": (f"zoo:moe,layers=2,hidden=32,heads=8,kv_heads=8,feed_forward=64,experts=8,{SEQUENCE}", 16),
    "dlrm": ("zoo:dlrm,dense=16,bottom=64x32,tables=512*8,features=32,bag=4,top=64x32", 64),
    "onnx": ("ONNX", 32),  # convolutions and batch normalisation, as `onnx_file` writes it
}


def model_of(network, folder, batch=None):
    name, samples = NETWORKS[network]
    if name == "ONNX":
        name = str(pathlib.Path(folder) / "network.onnx")
    return f"{name},batch={batch or samples},type=f64"


def onnx_file(path):
    """Two convolutions with batch normalisation, pooling and two linear layers, as a file."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = numpy.random.default_rng(1)
    nodes, weights = [], []

    def weight(name, *shape):
        weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(numpy.float32) * 0.2, name))
        return name

    def convolution(x, name, channels, features):
        nodes.append(helper.make_node("Conv", [x, weight(name + ".weight", features, channels, 3, 3)], [name], name, kernel_shape=[3, 3],
                                      pads=[1, 1, 1, 1]))
        norm = name + ".norm"
        nodes.append(helper.make_node("BatchNormalization", [name] + [weight(f"{norm}.{w}", features) for w in ("scale", "bias", "mean", "var")],
                                      [norm], norm))
        nodes.append(helper.make_node("Relu", [norm], [name + ".relu"], name + ".relu"))
        return name + ".relu"

    x = convolution("image", "conv1", 3, 8)
    nodes.append(helper.make_node("MaxPool", [x], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]))
    x = convolution("pool", "conv2", 8, 16)
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["average"], "average"))
    nodes.append(helper.make_node("Flatten", ["average"], ["flat"], "flat"))
    nodes.append(helper.make_node("Gemm", ["flat", weight("fc1.weight", 32, 16), weight("fc1.bias", 32)], ["fc1"], "fc1", transB=1))
    nodes.append(helper.make_node("Relu", ["fc1"], ["fc1.relu"], "fc1.relu"))
    nodes.append(helper.make_node("Gemm", ["fc1.relu", weight("fc2.weight", 16, 32), weight("fc2.bias", 16)], ["logits"], "fc2", transB=1))
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [32, 3, 16, 16])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [32, 16])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


class Textbook:
    """A plan by hand: `start` is the strategy of each group of devices, an expert's name or ("context", degree) or ("reduction", degree)."""

    def __init__(self, cluster, start, optimizer="sgd", batch=None, **how):
        self.cluster, self.start, self.optimizer, self.batch, self.how = cluster, start, optimizer, batch, how


class Found:
    """A plan that `plan` finds with these options."""

    def __init__(self, cluster, options, optimizer="sgd", batch=None):
        self.cluster, self.options, self.optimizer, self.batch = cluster, options, optimizer, batch


CASES = {
    "mlp": {
        "data 4": Textbook("1x4xh100", "data_parallel"),
        "data 16, optimizer": Textbook("2x8xh100", "data_parallel", "adam", sharded="optimizer"),
        "data 8, gradients, 2 micro-batches": Textbook("2x4xh100", "data_parallel", "momentum", sharded="gradients", micro_batches=2),
        "fully sharded 4": Textbook("1x4xh100", "data_parallel", "adam", sharded="parameters"),
        "within nodes 2 x 4": Textbook("2x4xh100", "data_parallel", "adam", sharded="parameters within nodes", micro_batches=2),
        "tensor 4": Textbook("1x4xh100", "tensor_parallel_4", "momentum"),
        "reduction 4": Textbook("1x4xh100", ("reduction", 4)),
        "found, 8": Found("2x4xh100", ["--evaluations", "300", "--space.pipelines", "false"]),
        "pipeline 2 x data 2, 4 micro-batches": Textbook("1x4xh100", "data_parallel", "adam", cuts=["fc3"], micro_batches=4),
    },
    "transformer": {
        "data 4, 4 micro-batches": Textbook("1x4xh100", "data_parallel", "adam", micro_batches=4),
        "tensor 4": Textbook("1x4xh100", "tensor_parallel_4", "adam"),
        "tensor 4, no sequence parallelism": Textbook("1x4xh100", ("no sequence", "tensor_parallel_4"), "adam"),
        "tensor 2 x data 4, optimizer": Textbook("1x8xh100", "tensor_parallel_2", "adam", sharded="optimizer"),
        "fully sharded 8, computed again": Textbook("1x8xh100", "data_parallel", "adam", sharded="parameters", recompute=True, segments=4),
        "within nodes 2 x 4": Textbook("2x4xh100", "data_parallel", "adam", sharded="parameters within nodes"),
        "data 2, computed again": Textbook("1x2xh100", "data_parallel", "adam", recompute=True, segments=4, micro_batches=2),
        "found, 8": Found("2x4xh100", ["--evaluations", "200", "--space.max_stages", "1"], "adam"),
    },
    "decoder": {
        "pipeline 2 x tensor 2, 1f1b": Textbook("1x4xh100", "tensor_parallel_2", "adam", cuts=["block3.attention.norm"], micro_batches=4),
        "pipeline 4 x data 2, gpipe, computed again": Textbook("1x8xh100", "data_parallel", "adam", recompute=True, micro_batches=4,
                                                              cuts=[f"block{b}.attention.norm" for b in (2, 3, 4)], launch_order="gpipe"),
        "pipeline 4 x tensor 2 x data 2": Textbook("2x8xh100", "tensor_parallel_2", "adam", micro_batches=4,
                                                    cuts=[f"block{b}.attention.norm" for b in (2, 3, 4)]),
        "pipeline 2, interleaved 2": Textbook("1x4xh100", "data_parallel", "adam", micro_batches=4, interleaved=2,
                                               cuts=[f"block{b}.attention.norm" for b in (2, 3, 4)]),
        "found, 8": Found("2x4xh100", ["--evaluations", "200", "--space.zero_bubble", "false"], "adam"),
    },
    "llama": {
        "context 4": Textbook("1x4xh100", ("context", 4), "adam", batch=4),
        "context 2 x data 4": Textbook("1x8xh100", ("context", 2), "adam"),
        "tensor 4 x data 2": Textbook("1x8xh100", "tensor_parallel_4"),
    },
    "experts": {
        "experts 4": Textbook("1x4xh100", "expert_parallel", "adam"),
        "experts 8, fully sharded": Textbook("1x8xh100", "expert_parallel", "adam", sharded="parameters"),
        "tensor 2 x data 2": Textbook("1x4xh100", "tensor_parallel_2"),
    },
    "dlrm": {
        "data 8": Textbook("1x8xh100", "data_parallel"),
        "vocabulary 4": Textbook("1x4xh100", ("vocabulary", 4)),
        "vocabulary 4, optimizer": Textbook("1x4xh100", ("vocabulary", 4), "momentum", sharded="optimizer"),
    },
    "onnx": {
        "data 4": Textbook("1x4xh100", "data_parallel", "momentum"),
        "linear layers by features 4": Textbook("1x4xh100", "one_weird_trick", "momentum"),
        "pipeline 2 x data 2, 2 micro-batches": Textbook("1x4xh100", "data_parallel", micro_batches=2, cuts=["conv2"]),
    },
}
QUICK = [("transformer", "tensor 2 x data 4, optimizer"), ("mlp", "pipeline 2 x data 2, 4 micro-batches")]


def devices_of(cluster):
    nodes, per_node, _ = cluster.split("x")
    return int(nodes), int(per_node)


def group_cluster(cluster, groups):
    """The cluster of one group of devices."""
    nodes, per_node = devices_of(cluster)
    count = nodes * per_node // groups
    return f"{max(1, count // per_node)}x{min(count, per_node)}xh100"


def split_dims(strategy, operators, devices, degree, wanted):
    """Splits of each operator the first dim of its that `wanted(operator, dim)` names over `degree` neighbours, samples over the rest."""
    for entry in (o for s in strategy["stages"] for o in s["operators"]):
        o = operators[entry["name"]]
        samples = next((d for d in o["dims"] if d["kind"] == "sample"), None)
        chosen = next((d for d in o["dims"] if wanted(o, d) and d["extent"] % degree == 0), None)
        degrees, strides, stride = {}, {}, 1
        if chosen:
            degrees[chosen["name"]], strides[chosen["name"]], stride = degree, 1, degree
        data = devices // stride
        while samples and samples["extent"] % data != 0:
            data -= 1
        if samples and data > 1:
            degrees[samples["name"]], strides[samples["name"]] = data, stride
        entry.update({"degrees": degrees, "strides": strides, "start": 0})
        entry.pop("devices", None)
    return strategy


POSITIONS = {"l", "lq"}
SPLITS = {
    "context": lambda o, d: d["name"] in POSITIONS and d["kind"] != "fixed",
    "reduction": lambda o, d: o["kind"] == "linear" and d["kind"] == "reduction",
    "vocabulary": lambda o, d: o["kind"].startswith("embedding") and d["name"] == "v",
}


def make(run_plan, network, plan, folder, exports=()):
    """Writes jax.json of a case into `folder`, and `exports` beside it. `run_plan(arguments)` runs the program."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if NETWORKS[network][0] == "ONNX":
        onnx_file(folder / "network.onnx")
    model = model_of(network, folder, plan.batch)
    options = ["--simulation.optimizer", plan.optimizer, "--quiet"]
    exported = [a for name in ("jax", *exports) for a in ("--export", name)]
    if isinstance(plan, Found):
        run_plan(["--model", model, "--cluster", plan.cluster, *plan.options, *options, "--out", folder / "plan", *exported])
        return plans.load(folder / "plan" / "jax.json")
    how = dict(plan.how)
    nodes, per_node = devices_of(plan.cluster)
    groups = (len(how.get("cuts", ())) + 1) // how.get("interleaved", 1)
    batch = (plan.batch or NETWORKS[network][1]) // how.get("micro_batches", 1)
    start = plan.start if isinstance(plan.start, str) else plan.start[1] if isinstance(plan.start[1], str) else "data_parallel"
    run_plan(["--model", model_of(network, folder, batch), "--cluster", group_cluster(plan.cluster, groups), "--search", "none", "--start", start,
              "--space.pipelines", "false", "--out", folder / "group", "--export", "jax", *options])
    strategy, graph = plans.load(folder / "group" / "plan.json"), plans.load(folder / "group" / "jax.json")
    operators = {o["name"]: o for o in graph["operators"]}
    count = nodes * per_node // groups
    if not isinstance(plan.start, str):
        if plan.start[0] == "no sequence":
            for entry in (o for s in strategy["stages"] for o in s["operators"]):
                o = operators[entry["name"]]
                if not any(d["kind"] in ("parameter", "reduction") and d.get("over") for d in o["dims"]):
                    split = {n for n in entry.get("degrees", {}) if any(d["name"] == n and d["name"] in POSITIONS for d in o["dims"])}
                    for n in split:
                        del entry["degrees"][n], entry["strides"][n]
        else:
            strategy = split_dims(strategy, operators, count, plan.start[1], SPLITS[plan.start[0]])
    document = plans.compose(strategy, [o["name"] for o in graph["operators"]], nodes * per_node, **how)
    plans.save(document, folder / "given.json")
    run_plan(["--model", model, "--cluster", plan.cluster, "--import", folder / "given.json", *options, "--out", folder / "plan", *exported])
    return plans.load(folder / "plan" / "jax.json")
