#!/usr/bin/env python3
"""Runs a training step of networks under plans with PyTorch, in processes of torch.distributed (gloo), as `plan --export pytorch` says: placements on
device meshes, shared states, stages, and segments that are computed again. Holds loss, gradients, updated parameters and what moves against one
process and against what the plan predicts.

    execute_torch.py --plan <program> [--work <folder>] [--only NETWORK[/PLAN]]... [--mutations] [--json FILE]
"""

import argparse
import collections
import contextlib
import itertools
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
from torch.distributed.tensor import Replicate, distribute_tensor  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402

import collectives  # noqa: E402
import mutations_torch  # noqa: E402
import networks  # noqa: E402
from network_torch import Part, compute  # noqa: E402
from parts import Unsupported, differing, error, initial, judge  # noqa: E402
from pipeline_torch import PipelineStep, mesh_of_stages  # noqa: E402
from sharded_torch import ShardedStep  # noqa: E402
from step_torch import Step, parsed, whole  # noqa: E402

TOLERANCE = 1e-9
HERE = pathlib.Path(__file__).resolve().parent
CASES = [("mlp", "data 4"), ("mlp", "tensor 4"), ("mlp", "reduction 4"), ("mlp", "data 8, gradients, 2 micro-batches"), ("mlp", "fully sharded 4"),
         ("mlp", "within nodes 2 x 4"), ("transformer", "within nodes 2 x 4"),
         ("mlp", "pipeline 2 x data 2, 4 micro-batches"), ("decoder", "pipeline 2 x tensor 2, 1f1b"), ("decoder", "pipeline 2, interleaved 2"),
         ("transformer", "data 2, computed again"), ("transformer", "fully sharded 8, computed again"),
         ("decoder", "pipeline 4 x data 2, gpipe, computed again"),
         ("transformer", "tensor 4"), ("transformer", "tensor 4, no sequence parallelism"), ("transformer", "tensor 2 x data 4, optimizer"),
         ("llama", "tensor 4 x data 2"), ("llama", "context 2 x data 4")]

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


def step_of(graph, plan):
    """The step of this process, by what the export says."""
    meshes = plan["device_meshes"]
    if len(meshes) > 1:
        return PipelineStep(graph, plan, mesh_of_stages(meshes))
    mesh = init_device_mesh("cpu", tuple(meshes[0]["shape"]), mesh_dim_names=tuple(meshes[0]["names"]))
    if mesh.ndim > 1:
        mesh._flatten("all")  # a sum along all axes is one all-reduce
    return (ShardedStep if "function" in plan.get("sharded_states", {}) else Step)(graph, plan, mesh)


def calls(graph):
    """How often a device computes each operator, and each segment that is computed again, by the plan."""
    count = graph["micro_batches"]
    out = {o["name"]: count * (2 if o.get("computed_again") else 1) for o in graph["operators"]}
    for again, group in itertools.groupby(graph["operators"], lambda o: o.get("computed_again") and (o["stage"], o.get("segment", 0))):
        if again:
            out[tuple(o["name"] for o in group)] = 2 * count
    return out


def process(rank, folder, graph, plan):
    """What one process does; the first writes result.json."""
    torch.set_num_threads(1)
    logging.getLogger("torch.distributed").setLevel(logging.ERROR)  # that two sums could be one is seen below, in what moves
    world = plan["world_size"]
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    try:
        step = step_of(graph, plan)
        parameters, batches = initial(graph)
        loss, gradients, new, counts = step.run(parameters, batches)
        first = rank % step.mesh.size() == 0  # of its stage
        every = [None] * world if rank == 0 else None
        distributed.gather_object((dict(counts), step.passes, dict(step.calls), *((loss, gradients, new) if first else (None, {}, {}))), every)
        plain = step.mesh.mesh_dim_names == ("model",) and {o["kind"] for o in graph["operators"]} <= {"linear", "relu", "cross_entropy"}
        by_style = styled(graph, plan, step.mesh, parameters, batches[0]) if plain and plan["parallelize_module"] else None
        if rank == 0:
            of_one = Step(graph, plan).run(parameters, batches)
            moved, gradients, new = collections.Counter(), {}, {}
            for mine, _, _, a_loss, some_gradients, some_new in every:
                loss = loss if a_loss is None else a_loss
                gradients.update(some_gradients)
                new.update(some_new)
                for key, times in mine.items():
                    moved[key] += times / key[1]
            wanted = calls(graph)
            result = {"loss": abs(loss - of_one[0]) / abs(of_one[0]), "gradients": error(gradients, of_one[1]), "parameters": error(new, of_one[2]),
                      "measured": collectives.totals({k: round(n) for k, n in moved.items()}),
                      "predicted": collectives.totals(collectives.predicted(graph)),
                      "order": all(p == [l[0] for l in graph["launches"] if l[1] == stage] for e in every for stage, p in e[1].items()),
                      "again": all(e[2].get(what, times) == times for what, times in wanted.items() for e in every)
                      and wanted.keys() == {what for e in every for what in e[2]}}
            if by_style:
                result["styles"] = max(abs(by_style[0] - of_one[0]) / abs(of_one[0]), error(by_style[1], of_one[1]))
            (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
        distributed.barrier()
        distributed.destroy_process_group()
    except Exception as e:  # whatever a wrong plan leads to
        with contextlib.suppress(FileExistsError), open(folder / "error.txt", "x", encoding="utf-8") as file:  # the first: others follow from it
            file.write(f"{type(e).__name__}: {e}")
        os._exit(1)


def executed(folder, graph, plan):
    """A dictionary of what came out. Throws RuntimeError where a process fails."""
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


def apart(row):
    """What a row differs from, if so."""
    if max(row["loss"], row["gradients"], row["parameters"], row.get("styles", 0)) > TOLERANCE:
        return "one process"
    return "" if row["order"] and row["again"] else "what the plan computes again" if row["order"] else "the order of launches"


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
        failed += not judge(case, row, differing(row), explained.get(case, {}), f"{HERE.name}/differences_torch.json", apart(row),
                            f", by styles of modules {row['styles']:.1e}" if "styles" in row else "")
        if asked.mutations:
            def execute(wrong):
                wrong_row = executed(folder, graph, wrong)
                return wrong_row, apart(wrong_row)

            failed += mutations_torch.run(case, plan, row, execute)
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"{len(rows)} cases executed with PyTorch, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    main()
