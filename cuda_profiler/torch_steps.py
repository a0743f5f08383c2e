#!/usr/bin/env python3
"""Times training steps of the zoo's networks by PyTorch, eager, as CUDA graphs and compiled, beside what a profile predicts for them.

    torch_steps.py --out torch.json [--validation validation.json] [--networks resnet50 ...] [--types bf16 f32] [--modes eager graphed compiled]

A step is forward, loss, backward and SGD, as the profiler's iteration: parameters and activations of the given type, no TF32 in f32, images channels
last in bf16, losses in f32. A graphed step is the eager one replayed as a CUDA graph: its kernels without the host, which is slower than the device
where kernels are short. What --out has already is not timed again. Predictions are added to steps of the given modes: fused ones are held to compiled
steps. Without --validation, PyTorch's times stand alone.

Exit code: 0 done (a step that fails is in the file with its reason), 2 wrong call, 3 no PyTorch or no device, 4 the time limit is reached.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"torch_steps.py: {error}", file=sys.stderr)
    sys.exit(3)


class Block(nn.Module):
    """Self-attention and perceptron with residuals; normalization before (GPT-2) or after (BERT)."""

    def __init__(self, hidden, heads, causal, before, dropout):
        super().__init__()
        self.heads, self.causal, self.before = heads, causal, before
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def attention(self, x):
        samples, length, hidden = x.shape
        q, k, v = (t.view(samples, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(samples, length, hidden))

    def perceptron(self, x):
        return self.down(functional.gelu(self.up(x)))

    def forward(self, x):
        for f, norm in zip((self.attention, self.perceptron), self.norms):
            x = x + self.dropout(f(norm(x))) if self.before else norm(x + self.dropout(f(x)))
        return x


class Gpt(nn.Module):
    """The zoo's gpt: tied embedding, no bias at the logits."""

    def __init__(self, layers=12, hidden=768, heads=12, sequence=1024, vocabulary=50257, dropout=0.1):
        super().__init__()
        self.shape = (sequence, vocabulary)
        self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Parameter(torch.zeros(sequence, hidden))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(hidden, heads, True, True, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens):
        x = self.dropout(self.tokens(tokens) + self.positions)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


class Bert(nn.Module):
    """The zoo's bert: the head of masked tokens over all positions, tied embedding with a bias of its own."""

    def __init__(self, layers=24, hidden=1024, heads=16, sequence=512, vocabulary=30522, dropout=0.1):
        super().__init__()
        self.shape = (sequence, vocabulary)
        self.tokens, self.segments = nn.Embedding(vocabulary, hidden), nn.Embedding(2, hidden)
        self.positions = nn.Embedding(sequence, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(hidden, heads, False, False, dropout) for _ in range(layers))
        self.head, self.bias = nn.Linear(hidden, hidden), nn.Parameter(torch.zeros(vocabulary))

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.segments(torch.zeros_like(tokens)) + self.positions(places)
        x = self.dropout(self.norms[0](x))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norms[1](functional.gelu(self.head(x))), self.tokens.weight, self.bias)


def vision(name, **options):
    import torchvision  # not every machine with PyTorch has it

    return getattr(torchvision.models, name)(**options)


# The zoo's networks: what makes the module from the zoo's options, the batch, the size of an image (0: tokens).
NETWORKS = {
    "resnet50": (lambda: vision("resnet50"), 64, 224),
    "inception_v3": (lambda: vision("inception_v3", aux_logits=False, init_weights=False), 64, 299),
    "bert_large": (Bert, 64, 0),
    "gpt2": (Gpt, 64, 0),
}
MODES = ["eager", "graphed", "compiled"]
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


def split_name(network):
    """The name and the options of "bert_large,layers=4"."""
    name, *options = network.split(",")
    values = {}
    for option in options:
        key, _, value = option.partition("=")
        if not value.isdigit():
            raise ValueError(f"network '{network}': option '{option}' must be NAME=NUMBER")
        values[key] = int(value)
    if name not in NETWORKS:
        raise ValueError(f"network '{network}': must be one of {', '.join(NETWORKS)}")
    return name, values


def make_step(network, kind, mode, device):
    """What runs one training step."""
    if mode == "graphed" and device != "cuda":
        raise ValueError("CUDA graphs need a GPU")
    name, options = split_name(network)
    make, batch, image = NETWORKS[name]
    batch = options.pop("batch", batch)
    model = make(**options).to(device=device, dtype=TYPES[kind]).train()
    if image:
        x, classes = torch.rand(batch, 3, image, image, device=device, dtype=TYPES[kind]), 1000
        y = torch.randint(classes, (batch,), device=device)
        if kind == "bf16":
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    else:
        length, classes = model.shape
        x, y = (torch.randint(classes, (batch, length), device=device) for _ in range(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def loss(x, y):
        return functional.cross_entropy(model(x).flatten(0, -2).float(), y.flatten())

    if mode == "compiled":
        loss = torch.compile(loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(x, y).backward()
        optimizer.step()

    return graphed(step) if mode == "graphed" else step


def graphed(step):
    """What replays `step` as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.empty_cache()  # a graph has memory of its own
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay():
        graph.replay()

    replay.step = step  # the graph reads and writes its tensors
    return replay


def timed(step, device, steps, warm_up):
    """Picoseconds of each of so many steps, behind some that are not counted."""
    times = []
    for number in range(warm_up + steps):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            step()
            end.record()
            end.synchronize()
            seconds = begin.elapsed_time(end) / 1e3
        else:
            start = time.perf_counter()
            step()
            seconds = time.perf_counter() - start
        if number >= warm_up:
            times.append(round(seconds * 1e12))
    return times


def measured(model, mode, arguments):
    """The entry of one network, type and mode."""
    network, _, kind = model.removeprefix("zoo:").rpartition(",type=")
    entry = {"model": model, "mode": mode}
    try:
        times = timed(make_step(network, kind, mode, arguments.device), arguments.device, arguments.steps, arguments.warm_up)
        entry |= {"measured_ps": round(statistics.median(times)), "steps_ps": times}
    except Exception as error:  # memory, a compiler that is missing, no torchvision: the others go on
        entry["failure"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    if arguments.device == "cuda":
        torch.cuda.empty_cache()
    torch.compiler.reset()
    return entry


def add_predictions(entries, modes, path):
    """The profiler's prediction and its own measured iteration of the same model, and the errors by PyTorch's time, of steps in `modes`."""
    models = {m["model"]: m for m in json.loads(path.read_text())["models"]} if path and path.exists() else {}
    for entry in entries:
        known = models.get(entry["model"])
        if not known or entry["mode"] not in modes or "measured_ps" not in entry:
            continue
        entry["predicted_ps"] = known["predicted_ps"]
        entry["error"] = (known["predicted_ps"] - entry["measured_ps"]) / entry["measured_ps"]
        if "measured_ps" in known:
            entry["iteration_ps"] = known["measured_ps"]


def save(path, document):
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(document, indent=2) + "\n")
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(prog="torch_steps.py", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--validation", type=pathlib.Path)
    parser.add_argument("--networks", nargs="+", default=["resnet50", "inception_v3", "bert_large,layers=4", "gpt2"])
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds, after which no further network is begun")
    arguments = parser.parse_args()
    if arguments.steps < 1 or arguments.warm_up < 0:
        parser.error(f"--steps is {arguments.steps} and --warm-up {arguments.warm_up}: must be at least 1 and 0")
    try:
        for network in arguments.networks:
            split_name(network)
    except ValueError as error:
        parser.error(str(error))
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("torch_steps.py: PyTorch sees no GPU", file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    begin = time.monotonic()
    entries = json.loads(arguments.out.read_text())["steps"] if arguments.out.exists() else []
    known = {(e["model"], e["mode"]) for e in entries}
    document = {
        "format": "parsearch.steps",
        "version": 1,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
        "date": datetime.date.today().isoformat(),
        "steps": entries,
    }
    for mode in arguments.modes:
        for network in arguments.networks:
            for kind in arguments.types:
                model = f"zoo:{network},type={kind}"
                if (model, mode) in known:
                    continue
                if time.monotonic() - begin >= arguments.time_limit:
                    return 4
                entries.append(measured(model, mode, arguments))
                add_predictions(entries, arguments.modes, arguments.validation)
                save(arguments.out, document)
                print(json.dumps({k: v for k, v in entries[-1].items() if k != "steps_ps"}), flush=True)
    add_predictions(entries, arguments.modes, arguments.validation)
    save(arguments.out, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
