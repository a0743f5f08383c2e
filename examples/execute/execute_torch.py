#!/usr/bin/env python3
"""Runs a training step of networks under plans with PyTorch: processes of torch.distributed (gloo), a device mesh, and each parameter and activation as a
DTensor with the placements that `plan --export pytorch` says. Holds loss, gradients, updated parameters and what moves against one process and against
what the plan predicts.

    execute_torch.py --plan <program> [--work <folder>] [--only NETWORK[/PLAN]]... [--mutations] [--json FILE]
"""

import argparse
import collections
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import torch  # noqa: E402
from torch import distributed, multiprocessing  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import collectives  # noqa: E402
import networks  # noqa: E402
from network_torch import Part, compute  # noqa: E402
from parts import Unsupported, beside, differing, error, initial, judge, states_of, terminals, updated, wanted_spec  # noqa: E402

TOLERANCE = 1e-9
HERE = pathlib.Path(__file__).resolve().parent
CASES = [("mlp", "data 4"), ("mlp", "tensor 4"), ("mlp", "reduction 4"), ("mlp", "data 8, gradients, 2 micro-batches"), ("mlp", "fully sharded 4"),
         ("transformer", "tensor 4"), ("transformer", "tensor 4, no sequence parallelism"), ("transformer", "tensor 2 x data 4, optimizer"),
         ("llama", "tensor 4 x data 2"), ("llama", "context 2 x data 4")]
MOVES = {"all_reduce": "all_reduce", "all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter", "all_to_all_single": "all_to_all",
         "shard_dim_alltoall": "all_to_all"}


def placed(spec, mesh, partial=()):
    """Placements of a list of names of mesh axes per axis of a tensor."""
    along = {name: Shard(axis) for axis, names in enumerate(spec) for name in names}
    return [Partial() if name in partial else along.get(name, Replicate()) for name in mesh.mesh_dim_names]


def parsed(placements):
    """Of the words of the export."""
    return [eval(p, {"Shard": Shard, "Replicate": Replicate, "Partial": Partial}) for p in placements]


class Moves(TorchDispatchMode):
    """Counts collectives while it is entered, on this process: (kind, devices, bytes of the whole tensor)."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        result = function(*args, **(kwargs or {}))
        kind = MOVES.get(function._schema.name.split("::")[-1])
        if kind:
            group = args[-1] if isinstance(args[-1], str) else args[-1].group_name
            size = distributed.distributed_c10d._resolve_process_group(group).size()
            whole = args[0].numel() * args[0].element_size() * (size if kind in ("all_gather", "all_to_all") else 1)
            if size > 1:
                self.counts[kind, size, whole] += 1
        return result


class Step:
    """A training step of this process. `graph` is jax.json, of which operators and dims are read; where things are says `plan`, pytorch.json."""

    def __init__(self, graph, plan, mesh=None):
        self.graph, self.mesh, self.ends = graph, mesh, terminals(graph)
        self.gathers = self.shares = self.early = False
        self.sizes = {a["name"]: a["size"] for a in graph["stages"][0]["mesh"]}
        self.parts = {o["name"]: Part(o, self.sizes, mesh) for o in graph["operators"]}
        self.parameters = {p["name"]: p for p in graph["parameters"]}
        if mesh is not None:
            self.outputs = {(a["operator"], a["output"]): parsed(a["placements"]) for a in plan["activations"]}
            self.stored = {p["name"]: parsed(p["placements"]) for p in plan["parameters"]}
            states = plan.get("sharded_states", {})
            self.gathers = states.get("reshard_after_forward", False)
            self.shares = bool(states)
            self.early = graph["sharded"] not in ("none", "optimizer")

    # On one process `mesh` is none, and tensors are plain ones.

    def state(self, name):
        """Where what the optimizer keeps is."""
        p = self.parameters[name]
        return placed(p.get("state_spec", p["spec"]), self.mesh) if self.shares else self.stored[name]

    def enter(self, value, part, operand, moved):
        """This process's part of an operand. `moved`: what has been moved of the same tensor."""
        if self.mesh is None:
            return value
        spec = wanted_spec(part, operand, f"'{operand['name']}'")
        wanted, of_gradient = placed(spec, self.mesh), placed(spec, self.mesh, beside(part, operand))
        key = str((wanted, of_gradient))
        if key not in moved:
            moved[key] = (value if list(value.placements) == wanted else value.redistribute(self.mesh, wanted)).to_local(grad_placements=of_gradient)
        return moved[key]

    def forward(self, parameters, batch):
        values, gathered, moved = dict(batch), {}, collections.defaultdict(dict)
        for o in self.graph["operators"]:
            part, inputs, weights = self.parts[o["name"]], [], []
            for i in o["inputs"]:
                inputs.append(self.enter(values[i["of"], i["output"]], part, i, moved[i["of"], i["output"]]))
            for w in o.get("weights", []):
                name = w["parameter"]
                if self.mesh is not None and name not in gathered:
                    p = parameters[name]
                    gathered[name] = p if tuple(p.placements) == tuple(self.stored[name]) else p.redistribute(self.mesh, self.stored[name])
                weights.append(self.enter(gathered.get(name, parameters[name]), part, w, moved[name]))
            y = compute(part, inputs, weights)
            if y.shape != part.shape(o["outputs"][0]):
                raise ValueError(f"operator '{o['name']}' ({o['kind']}): a part has the shape {tuple(y.shape)}, {part.shape(o['outputs'][0])} by its dims")
            if self.mesh is not None:
                y = DTensor.from_local(y, self.mesh, self.outputs[o["name"], 0], run_check=False)
            values[o["name"], 0] = y
        return [values[e] for e in self.ends]

    def put(self, value, placements):
        return value if self.mesh is None else distribute_tensor(value, self.mesh, placements)

    def gradients_of(self, parameters, total):
        """Adds the gradients of a micro-batch, where the plan adds them up."""
        for name, p in parameters.items():
            g, p.grad = p.grad, None
            if self.mesh is not None and self.early:
                g = g.redistribute(self.mesh, self.state(name))
            total[name] = g if name not in total else total[name] + g

    def update(self, parameters, gradients):
        """Gradients, and parameters behind the optimizer's step, of which each process makes its part."""
        optimizer, new = self.graph["optimizer"], {}
        for name, p in parameters.items():
            mine, g = p.detach(), gradients[name].detach()
            if self.mesh is not None:
                at = self.state(name)
                gradients[name] = g = g.redistribute(self.mesh, at)
                mine, g = mine.redistribute(self.mesh, at).to_local(), g.to_local()
            value, _ = updated(optimizer, mine, g, [torch.zeros_like(mine)] * states_of(optimizer))
            if self.mesh is not None:
                value = DTensor.from_local(value, self.mesh, at, run_check=False).redistribute(self.mesh, p.placements)
            new[name] = value
        return gradients, new

    def run(self, initial_parameters, batches):
        """Loss, gradients and updated parameters, whole, as arrays; and what moved."""
        one = self.mesh is None
        parameters = {n: self.put(torch.from_numpy(v), None if one else self.state(n) if self.gathers else self.stored[n]).detach().requires_grad_()
                      for n, v in initial_parameters.items()}
        loss, total, moves = 0.0, {}, Moves()
        for batch in batches:
            values = {(n, 0): self.put(torch.from_numpy(v), None if one else [Replicate()] * self.mesh.ndim) for n, v in batch.items()}
            with moves:
                ends = self.forward(parameters, values)
                torch.autograd.backward(ends, [torch.full_like(y, 1 / (y.numel() * len(batches))) for y in ends])
                self.gradients_of(parameters, total)
            loss += sum(float(whole(y.detach()).mean()) for y in ends) / len(batches)
        with moves:
            total, new = self.update(parameters, total)
        return loss, {n: whole(g).numpy() for n, g in total.items()}, {n: whole(v).detach().numpy() for n, v in new.items()}, moves.counts


STYLES = {"ColwiseParallel": ColwiseParallel, "RowwiseParallel": RowwiseParallel}


def styled(graph, plan, mesh, initial_parameters, batch):
    """Loss and gradients of linear layers as modules of PyTorch, under `parallelize_module` with the styles of the plan alone."""
    modules = torch.nn.ModuleDict()
    for o in graph["operators"]:
        if o["kind"] == "linear":
            outputs, inputs = (a["extent"] for a in o["weights"][0]["axes"])
            modules[o["name"]] = torch.nn.Linear(inputs, outputs, dtype=torch.float64)
    with torch.no_grad():
        for name, p in modules.named_parameters():
            p.copy_(torch.from_numpy(initial_parameters[name]))
    for s in plan["parallelize_module"]:
        layouts = {key: parsed([s[key]])[0] for key in ("input_layouts", "output_layouts")}
        parallelize_module(modules, mesh[s["mesh_dim"]], {s["module"]: STYLES[s["style"]](**layouts, use_local_output=False)})
    values = {(n, 0): distribute_tensor(torch.from_numpy(v), mesh, [Replicate()]) for n, v in batch.items()}
    for o in graph["operators"]:
        inputs = [values[i["of"], i["output"]] for i in o["inputs"]]
        if o["kind"] == "cross_entropy":
            y = torch.nn.functional.cross_entropy(*(whole(x) for x in inputs))
        else:
            y = modules[o["name"]](inputs[0]) if o["kind"] == "linear" else compute(Part(o, {}), inputs, [])
        values[o["name"], 0] = y
    y.backward()
    return float(y.detach()), {n: whole(p.grad).numpy() for n, p in modules.named_parameters()}


def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def process(rank, folder, graph, plan):
    """What one process does; the first writes result.json."""
    torch.set_num_threads(1)
    logging.getLogger("torch.distributed").setLevel(logging.ERROR)  # that two sums could be one is seen below, in what moves
    world = plan["world_size"]
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    try:
        mesh = plan["device_meshes"][0]
        mesh = init_device_mesh("cpu", tuple(mesh["shape"]), mesh_dim_names=tuple(mesh["names"]))
        if mesh.ndim > 1:
            mesh._flatten("all")  # a sum along all axes is one all-reduce
        step = Step(graph, plan, mesh)
        parameters, batches = initial(graph)
        loss, gradients, new, counts = step.run(parameters, batches)
        every = [None] * world
        distributed.all_gather_object(every, dict(counts))
        plain = mesh.mesh_dim_names == ("model",) and {o["kind"] for o in graph["operators"]} <= {"linear", "relu", "cross_entropy"}
        by_style = styled(graph, plan, mesh, parameters, batches[0]) if plain and plan["parallelize_module"] else None
        if rank == 0:
            of_one = Step(graph, plan).run(parameters, batches)
            moved = collections.Counter()
            for mine in every:
                for key, times in mine.items():
                    moved[key] += times / key[1]
            result = {"loss": abs(loss - of_one[0]) / abs(of_one[0]), "gradients": error(gradients, of_one[1]), "parameters": error(new, of_one[2]),
                      "measured": collectives.totals({k: round(n) for k, n in moved.items()}),
                      "predicted": collectives.totals(collectives.predicted(graph))}
            if by_style:
                result["styles"] = max(abs(by_style[0] - of_one[0]) / abs(of_one[0]), error(by_style[1], of_one[1]))
            (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
        distributed.barrier()
        distributed.destroy_process_group()
    except Exception as e:  # whatever a wrong plan leads to
        (folder / "error.txt").write_text(f"{type(e).__name__}: {e}", encoding="utf-8")
        os._exit(1)


def executed(folder, graph, plan):
    """A dictionary of what came out. Throws RuntimeError where a process fails."""
    if len(plan["device_meshes"]) > 1:
        raise Unsupported("stages are not executed with PyTorch")
    for old in ("store", "result.json", "error.txt"):
        (folder / old).unlink(missing_ok=True)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=process, args=(rank, folder, graph, plan)) for rank in range(plan["world_size"])]
    for w in workers:
        w.start()
    until = time.monotonic() + 300
    while any(w.is_alive() for w in workers) and not any(w.exitcode for w in workers) and time.monotonic() < until:
        time.sleep(0.05)
    failed = any(w.exitcode for w in workers) or any(w.is_alive() for w in workers)
    for w in workers:
        if w.is_alive():
            w.kill()
        w.join()
    if failed:
        error_file = folder / "error.txt"
        raise RuntimeError(error_file.read_text(encoding="utf-8") if error_file.exists() else "a process was late or died")
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def agrees(row):
    return max(row["loss"], row["gradients"], row["parameters"], row.get("styles", 0)) <= TOLERANCE


def wrong_exports(plan):
    """Of the plan mlp/tensor 4: what is changed, and the plan."""
    def changed(what, where, name, placements):
        other = json.loads(json.dumps(plan))
        key = "name" if where == "parameters" else "operator"
        entry = next(e for e in other[where] if e[key] == name)
        if entry["placements"] == placements:
            raise ValueError(f"{name} has the placements {placements}: nothing is changed")
        entry["placements"] = placements
        return what, other

    yield changed("a parameter split along another axis", "parameters", "fc1.weight", ["Shard(1)"])
    yield changed("a parameter that is whole", "parameters", "fc2.weight", ["Replicate()"])
    yield changed("a missing sum", "activations", "fc2", ["Replicate()"])
    yield changed("a sum of what is no part", "activations", "fc1", ["Partial()"])
    yield changed("an activation split along another axis", "activations", "fc1", ["Shard(0)"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--plan", required=True, help="the program plan")
    parser.add_argument("--work", help="a folder for the plans [one that is removed]")
    parser.add_argument("--only", action="append", default=[], metavar="NETWORK[/PLAN]", help="these cases; several times for several")
    parser.add_argument("--mutations", action="store_true", help="wrong exports are to be found out, too")
    parser.add_argument("--json", metavar="FILE", help="writes what was measured")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(run(asked, pathlib.Path(asked.work or temporary).resolve()))


def run(asked, work):
    def run_plan(arguments):
        done = subprocess.run([asked.plan, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"plan {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")

    explained = json.loads((HERE / "differences_torch.json").read_text(encoding="utf-8"))
    rows, failed = [], 0
    for network, name in CASES:
        case = f"{network}/{name}"
        if asked.only and not {network, case} & set(asked.only):
            continue
        folder = work / network / name.replace(" ", "_").replace(",", "")
        try:
            graph = networks.make(run_plan, network, networks.CASES[network][name], folder, ["pytorch"])
            plan = json.loads((folder / "plan" / "pytorch.json").read_text(encoding="utf-8"))
            row = executed(folder, graph, plan)
        except (Unsupported, ValueError, RuntimeError) as e:
            print(f"FAILED   {case}: {e}", flush=True)
            failed += 1
            continue
        rows.append({"case": case, **row})
        failed += not judge(case, row, differing(row), explained.get(case, {}), f"{HERE.name}/differences_torch.json", "" if agrees(row) else "one process",
                            f", by styles of modules {row['styles']:.1e}" if "styles" in row else "")
        if asked.mutations and case == "mlp/tensor 4":
            for what, other in wrong_exports(plan):
                try:
                    wrong_row = executed(folder, graph, other)
                    found_out = not agrees(wrong_row) or wrong_row["measured"] != row["measured"]  # DTensor moves what is elsewhere
                except RuntimeError:
                    found_out = True
                failed += not found_out
                print(f"{'found' if found_out else 'MISSED':8} {what}", flush=True)
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"{len(rows)} cases executed with PyTorch, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    main()
