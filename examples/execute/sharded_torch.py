"""A training step of one process under a plan whose replicas share what they keep: with `fully_shard` of FSDP2, as the export says it."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate

from network_torch import compute
from parts import BETAS, LEARNING_RATE, MOMENTUM, Unsupported, wanted_spec
from step_torch import Moves, Step, whole

OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, LEARNING_RATE), "momentum": lambda p: torch.optim.SGD(p, LEARNING_RATE, MOMENTUM),
              "adam": lambda p: torch.optim.Adam(p, LEARNING_RATE, BETAS)}


class Layer(torch.nn.Module):
    """Holds parameters, and runs operators that read them."""

    def forward(self, part, *inputs):
        return compute(part, inputs, [getattr(self, w["parameter"].rpartition(".")[2]) for w in part.operator["weights"]])


class Root(torch.nn.Module):
    """Has all other modules."""

    def forward(self, function, *arguments):
        return function(*arguments)


def modules_of(parameters, values):
    """Modules of the names that the export says."""
    root = Root()
    for p in parameters:
        module = root
        for name in p["module"].split("."):
            if not hasattr(module, name):
                module.add_module(name, Layer())
            module = getattr(module, name)
        module.register_parameter(p["name"].rpartition(".")[2], torch.nn.Parameter(torch.from_numpy(values[p["name"]])))
    return root


def shard(root, states, mesh):
    """Modules of a group are gathered together, one of several groups with the first; what is inside of another is sharded before it."""
    if "shard_within" in states:
        mesh = init_device_mesh("cpu", (mesh.size() // states["shard_within"], states["shard_within"]), mesh_dim_names=("between", "within"))
    first = {name: number for number, group in reversed(list(enumerate(states["groups"]))) for name in group}
    groups = [[name for name in group if first[name] == number] for number, group in enumerate(states["groups"])]
    for group in sorted(filter(None, groups), key=lambda group: -max(name.count(".") for name in group)):
        fully_shard([root.get_submodule(name) for name in group], mesh=mesh, reshard_after_forward=states["reshard_after_forward"])
    left = [name for name, p in root.named_parameters() if not hasattr(p, "placements")]
    if left:
        raise ValueError(f"no group of sharded_states has parameter '{left[0]}'")
    fully_shard(root, mesh=mesh, reshard_after_forward=states["reshard_after_forward"])


class ShardedStep(Step):
    def __init__(self, graph, plan, mesh):
        super().__init__(graph, plan, mesh)
        self.plan, self.modules = plan, {p["name"]: p["module"] for p in plan["parameters"]}
        split = next((n for n, placements in self.stored.items() if any(p != Replicate() for p in placements)), None)
        if mesh.ndim > 1 or split:
            raise Unsupported(f"parameter '{split}' is split, beside replicas that share it: this is not executed")

    def operate(self, part, inputs, parameters, moved):
        weights = part.operator.get("weights", [])
        for w in weights:
            if any(wanted_spec(part, w, f"'{w['name']}'")):
                part.refuse("its weights are split")
        modules = {self.modules[w["parameter"]] for w in weights}
        if len(modules) > 1:
            part.refuse(f"its weights are of several modules: {', '.join(sorted(modules))}")
        return self.root.get_submodule(modules.pop())(part, *inputs) if modules else compute(part, inputs, [])

    def run(self, initial_parameters, batches):
        states = self.plan["sharded_states"]
        self.root = root = modules_of(self.plan["parameters"], initial_parameters)
        shard(root, states, self.mesh)
        optimizer = OPTIMIZERS[self.graph["optimizer"]](root.parameters())
        loss, moves = 0.0, Moves()
        for number, batch in enumerate(batches):
            last = number + 1 == len(batches)
            root.set_requires_all_reduce(last)
            root.set_reshard_after_backward(last or states["reshard_after_forward"])
            values = {(n, 0): self.put(torch.from_numpy(v), [Replicate()]) for n, v in batch.items()}
            with moves:
                ends = root(self.forward, None, values)
                (sum(y.to_local().mean() for y in ends) / len(batches)).backward()
            loss += sum(float(whole(y.detach()).mean()) for y in ends) / len(batches)
        gradients = {n: whole(p.grad).numpy() for n, p in root.named_parameters()}
        with moves:
            optimizer.step()
        return loss, gradients, {n: whole(p.detach()).numpy() for n, p in root.named_parameters()}, moves.counts
