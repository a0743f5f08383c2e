"""A training step of one process under a plan, with tensors where the export for PyTorch says; and what moves meanwhile."""

import collections
import itertools

import torch
from torch import distributed
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from network_torch import Part, compute
from parts import beside, states_of, terminals, updated, wanted_spec

MOVES = {"all_reduce": "all_reduce", "all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter", "all_to_all_single": "all_to_all",
         "shard_dim_alltoall": "all_to_all"}
# Of c10d, which DTensor does not call: the kind, and which argument is the whole tensor.
CALLS = {"allreduce_": ("all_reduce", 0), "_allgather_base_": ("all_gather", 0), "_reduce_scatter_base_": ("reduce_scatter", 1),
         "send": ("message", 0), "recv_": ("message", 0)}


def placed(spec, mesh, partial=()):
    """Placements of a list of names of mesh axes per axis of a tensor."""
    along = {name: Shard(axis) for axis, names in enumerate(spec) for name in names}
    return [Partial() if name in partial else along.get(name, Replicate()) for name in mesh.mesh_dim_names]


def parsed(placements):
    """Of the words of the export."""
    return [eval(p, {"Shard": Shard, "Replicate": Replicate, "Partial": Partial}) for p in placements]


def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


class Moves(TorchDispatchMode):
    """Counts collectives while it is entered, on this process: (kind, devices, bytes of the whole tensor)."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        result = function(*args, **(kwargs or {}))
        name = function._schema.name.split("::")[-1]
        if name in MOVES:
            group = args[-1] if isinstance(args[-1], str) else args[-1].group_name
            size = distributed.distributed_c10d._resolve_process_group(group).size()
            self.count(MOVES[name], size, args[0], size if MOVES[name] in ("all_gather", "all_to_all") else 1)
        elif name in CALLS:
            kind, number = CALLS[name]
            group = next(a for a in args if isinstance(a, torch.ScriptObject))
            size = 2 if kind == "message" else distributed.ProcessGroup.unbox(group).size()
            for tensor in args[number] if isinstance(args[number], list) else [args[number]]:
                self.count(kind, size, tensor)
        return result

    def count(self, kind, size, tensor, parts=1):
        if size > 1:
            self.counts[kind, size, tensor.numel() * tensor.element_size() * parts] += 1


class Step:
    """A training step of this process. `graph` is jax.json, of which operators and dims are read; where things are says `plan`, pytorch.json."""

    def __init__(self, graph, plan, mesh=None):
        self.graph, self.mesh, self.ends = graph, mesh, terminals(graph)
        self.shares, self.segments = False, {}
        self.passes, self.calls = {}, collections.Counter()  # what was launched, by stage; how often operators and segments were computed
        self.sizes = {a["name"]: a["size"] for a in graph["stages"][0]["mesh"]}
        self.parts = {o["name"]: Part(o, self.sizes, mesh) for o in graph["operators"]}
        self.parameters = {p["name"]: p for p in graph["parameters"]}
        if mesh is not None:
            self.outputs = {(a["operator"], a["output"]): parsed(a["placements"]) for a in plan["activations"]}
            self.stored = {p["name"]: parsed(p["placements"]) for p in plan["parameters"]}
            self.shares = "sharded_states" in plan
            again = plan.get("checkpoint", {"segments": []})
            self.reentrant = again.get("use_reentrant")
            self.segments = {name: number for number, s in enumerate(again["segments"]) for name in s["operators"]}

    # On one process `mesh` is none, and tensors are plain ones.

    def state(self, name):
        """Where what the optimizer keeps is."""
        p = self.parameters[name]
        return placed(p.get("state_spec", p["spec"]), self.mesh) if self.shares else self.stored[name]

    def wanted(self, part, operand):
        """Placements of an operand where an operator reads it, and of its gradient there."""
        spec = wanted_spec(part, operand, f"'{operand['name']}'")
        return tuple(placed(spec, self.mesh)), tuple(placed(spec, self.mesh, beside(part, operand)))

    def enter(self, value, part, operand, moved):
        """This process's part of an operand. `moved`: what has been moved of the same tensor."""
        if self.mesh is None:
            return value
        wanted, of_gradient = key = self.wanted(part, operand)
        if key not in moved:
            moved[key] = (value if value.placements == wanted else value.redistribute(self.mesh, wanted)).to_local(grad_placements=of_gradient)
        return moved[key]

    def operate(self, part, inputs, parameters, moved):
        """This process's part of what an operator answers."""
        weights = part.operator.get("weights", [])
        return compute(part, inputs, [self.enter(parameters[w["parameter"]], part, w, moved[w["parameter"]]) for w in weights])

    def run_operators(self, operators, parameters, values, moved):
        """Adds what operators answer to `values`."""
        for o in operators:
            part = self.parts[o["name"]]
            inputs = [self.enter(values.get((i["of"], i["output"])), part, i, moved[i["of"], i["output"]]) for i in o["inputs"]]
            y = self.operate(part, inputs, parameters, moved)
            self.calls[o["name"]] += 1
            if y.shape != part.shape(o["outputs"][0]):
                raise ValueError(f"operator '{o['name']}' ({o['kind']}): a part has the shape {tuple(y.shape)}, "
                                 f"{part.shape(o['outputs'][0])} by its dims")
            if self.mesh is not None:
                y = DTensor.from_local(y, self.mesh, self.outputs[o["name"], 0], run_check=False)
            values[o["name"], 0] = y

    def run_segment(self, operators, parameters, values, moved):
        """What operators outside of a segment read of it."""
        names, values = tuple(o["name"] for o in operators), dict(values)
        self.calls[names] += 1
        self.run_operators(operators, parameters, values, collections.defaultdict(dict, {k: dict(m) for k, m in moved.items()}))
        read = {(i["of"], i["output"]) for o in self.graph["operators"] if o["name"] not in names for i in o["inputs"]}
        return {k: v for k, v in values.items() if k[0] in names and (k in read or k in self.ends)}

    def pass_through(self, operators, parameters, values, moved):
        """Runs operators, those of a segment as what is computed again by backward."""
        for segment, group in itertools.groupby(operators, lambda o: self.segments.get(o["name"])):
            group = list(group)
            if segment is None:
                self.run_operators(group, parameters, values, moved)
                continue
            reads = {(i["of"], i["output"]) for o in group for i in o["inputs"]}
            with set_checkpoint_early_stop(False):  # all of it is computed again, not only what backward reads
                values.update(checkpoint(self.run_segment, group, parameters, {k: v for k, v in values.items() if k in reads},
                                         {k: m for k, m in moved.items() if k in reads}, use_reentrant=self.reentrant))

    def forward(self, parameters, batch):
        values = dict(batch)
        self.pass_through(self.graph["operators"], parameters, values, collections.defaultdict(dict))
        return [values[e] for e in self.ends]

    def put(self, value, placements):
        return value if self.mesh is None else distribute_tensor(value, self.mesh, placements)

    def gradients_of(self, parameters, total):
        """Adds the gradients of a micro-batch."""
        for name, p in parameters.items():
            g, p.grad = p.grad, None
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
        parameters = {n: self.put(torch.from_numpy(v), None if one else self.stored[n]).detach().requires_grad_()
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
