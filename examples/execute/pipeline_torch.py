"""A training step of one process under a plan of several stages: with `torch.distributed.pipelining`, as the export says it."""

import collections
import math

import torch
from torch.distributed import pipelining
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining.schedules import PipelineScheduleMulti
from torch.distributed.tensor import DTensor, Replicate

from parts import Unsupported, whole_shape
from step_torch import Moves, Step, whole


def mesh_of_stages(meshes):
    """One mesh of all stages, of which the first dim is the pipeline."""
    size = math.prod(meshes[0]["shape"])
    groups = max(m["first_rank"] for m in meshes) // size + 1
    for number, m in enumerate(meshes):
        if (m["shape"], m["names"]) != (meshes[0]["shape"], meshes[0]["names"]) or m["first_rank"] != number % groups * size:
            raise Unsupported(f"stage {number} has a mesh {m['shape']} from rank {m['first_rank']}: "
                              "stages are executed on meshes like the first's, which they take in turn")
    return init_device_mesh("cpu", (groups, *meshes[0]["shape"]), mesh_dim_names=("pipe", *meshes[0]["names"]))


class Stage(torch.nn.Module):
    """Operators of a stage, and their parameters. `reads`: what comes from the stage before: (operand, operator that reads it), once a tensor and
    placement. `sends`: the `reads` of the next."""

    def __init__(self, step, operators, parameters, reads, sends):
        super().__init__()
        self.step, self.operators, self.reads, self.sends = step, operators, reads, sends
        self.names = list(parameters)
        self.values = torch.nn.ParameterList(parameters.values())
        self.ends = [e for e in step.ends if e[0] in {o["name"] for o in operators}]
        self.passes = []

    def forward(self, *received, **inputs):
        values = {(n, 0): DTensor.from_local(v, self.step.mesh, [Replicate()] * self.step.mesh.ndim, run_check=False) for n, v in inputs.items()}
        moved = collections.defaultdict(dict)
        for (operand, part), tensor in zip(self.reads, received, strict=True):
            moved[operand["of"], operand["output"]][self.step.wanted(part, operand)] = tensor
        self.step.pass_through(self.operators, dict(zip(self.names, self.values)), values, moved)
        sent = [self.step.enter(values[i["of"], i["output"]], part, i, moved[i["of"], i["output"]]) for i, part in self.sends]
        sent += [values[e].to_local() for e in self.ends]
        self.passes.append("forward")
        if sent[0].requires_grad:
            sent[0].register_hook(lambda _: self.passes.append("backward"))
        return sent[0] if self.ends else tuple(sent)


class PipelineStep(Step):
    """`mesh`: its first dim is the pipeline, the others are those of every stage."""

    def __init__(self, graph, plan, mesh):
        if "function" in plan.get("sharded_states", {}):
            raise Unsupported("fully_shard in stages is not executed")
        names = mesh.mesh_dim_names[1:]
        inner = mesh[names if len(names) > 1 else names[0]]
        if inner.ndim > 1:
            inner._flatten("all")
        super().__init__(graph, plan, inner)
        self.pipe, self.plan = mesh["pipe"], plan
        self.of_stage = self.stages()

    def stages(self):
        """The operators of each stage, by `split_spec`."""
        first = {s["operator"]: s["stage"] for s in self.plan["pipelining"]["split_spec"]}
        out = [[]]
        for o in self.graph["operators"]:
            if o["name"] in first:
                if first[o["name"]] != len(out):
                    raise ValueError(f"stage {first[o['name']]} begins at operator '{o['name']}', behind {len(out)} stages")
                out.append([])
            out[-1].append(o)
        return out

    def reads(self, number):
        """What a stage reads of the one before, each tensor once in each of its placements."""
        before, mine = ({o["name"] for o in self.of_stage[s]} for s in (number - 1, number)) if number else (set(), set())
        out = {}
        for o in self.of_stage[number] if number else []:
            part = self.parts[o["name"]]
            for i in o["inputs"]:
                if i["of"] in before:
                    out.setdefault((i["of"], i["output"], self.wanted(part, i)), (i, part))
                elif i["of"] in self.parts and i["of"] not in mine:
                    part.refuse(f"reads '{i['of']}' of a stage that is not the one before: this is not executed")
        return list(out.values())

    def stage(self, number, values):
        """A stage of this process, and the inputs of the graph that it reads."""
        last = number + 1 == len(self.of_stage)
        reads, sends = self.reads(number), [] if last else self.reads(number + 1)
        parameters = {p["name"]: torch.nn.Parameter(self.put(torch.from_numpy(values[p["name"]]), self.stored[p["name"]]))
                      for p in self.plan["parameters"] if p["stage"] == number}
        for o in self.of_stage[number]:
            missing = [w["parameter"] for w in o.get("weights", []) if w["parameter"] not in parameters]
            if missing:
                raise ValueError(f"operator '{o['name']}' of stage {number} reads parameter '{missing[0]}', which is of another stage")
        module = Stage(self, self.of_stage[number], parameters, reads, sends)
        if len(module.ends) != last:
            raise Unsupported(f"stage {number} has {len(module.ends)} ends: the last has one, others have none, or they are not executed")

        def empty(part, operand):
            return torch.empty(part.shape(operand), dtype=torch.float64, device="meta")

        received = tuple(empty(part, i) for i, part in reads)
        sent = tuple(empty(part, i) for i, part in sends) + tuple(empty(self.parts[n], self.parts[n].operator["outputs"][k]) for n, k in module.ends)
        return pipelining.PipelineStage(module, number, len(self.of_stage), torch.device("cpu"), received, sent, group=self.pipe.get_group())

    def run(self, initial_parameters, batches):
        """As of a step, but of the stages of this process; no loss where it has not the last."""
        place, count, how = self.pipe.get_local_rank(), len(batches), self.plan["pipelining"]
        here = [s for s, m in enumerate(self.plan["device_meshes"]) if m["first_rank"] == place * self.mesh.size()]
        stages = [self.stage(s, initial_parameters) for s in here]
        schedule = getattr(pipelining, how["schedule"])
        size = math.prod(whole_shape(self.parts[self.ends[0][0]].operator["outputs"][0]))
        many = issubclass(schedule, PipelineScheduleMulti)
        schedule = schedule(stages if many else stages[0], how["n_microbatches"], lambda y, _: y.sum() / (size * count), scale_grads=False)
        inputs = {i["of"] for s in here for o in self.of_stage[s] for i in o["inputs"]}
        whole_batch = {n: torch.cat([torch.from_numpy(b[n]) for b in batches]) for n in batches[0] if n in inputs}
        target = torch.empty(count)  # the loss is an operator
        schedule.step(target=target, **whole_batch)  # processes that send to each other say so once
        for s in stages:
            s.submod.zero_grad()
            s.submod.passes.clear()
        self.calls.clear()
        moves = Moves()
        with moves:
            answer = schedule.step(target=target, **whole_batch)
        parameters = {n: p for s in stages for n, p in zip(s.submod.names, s.submod.values)}
        with moves:
            gradients, new = self.update(parameters, {n: p.grad for n, p in parameters.items()})
        self.passes = {s.stage_index: s.submod.passes for s in stages}
        loss = None
        if stages[-1].is_last:
            loss = float(whole(DTensor.from_local(answer.detach(), self.mesh, self.outputs[self.ends[0]], run_check=False)).mean())
        return loss, {n: whole(g).numpy() for n, g in gradients.items()}, {n: whole(v).detach().numpy() for n, v in new.items()}, moves.counts
