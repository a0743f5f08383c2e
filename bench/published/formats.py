"""The formats of published runs: what the columns are, and what a row asks to be priced."""

import os
import pathlib
import re

import works


class format:
    def __init__(self, name, columns, read):
        self.name, self.columns, self.read = name, columns.split(","), read


def asked(row, name, unit, published, amount, question, notes=(), part="", **more):
    """What is to be predicted: `amount` per second of what `question` takes. `fit`: (device, type, classes of operators) whose reached part of the
    peak the row tells."""
    return {"name": name, "part": part, "unit": unit, "published": row.number(published), "amount": amount, "notes": list(notes),
            "question": {"place": row.place, **question}, **more}


TRANSFORMER = ["matmul", "attention"]


def training(model, device, optimizer, overlap=True, gradients="f32_of_bf16", **run):
    return {"model": model, "device": works.DEVICES[device], "optimizer": optimizer, "overlap": overlap, "gradients": gradients,
            "run": {"data": 1, "tensor": 1, "context": 1, "groups": 1, "rounds": 1, "micro_batch": 1, "micro_batches": 1, "again": "none",
                    "sharded": "nothing", "sequence_parallel": True, "fusion": "none", "f8_products": False, **run}}


def device_of(row):
    row.of("device", works.DEVICES)
    return row.cells["device"]


def gpt(layers, hidden, heads, sequence, vocabulary, dtype, dropout, flash=True):
    return (f"zoo:gpt,layers={layers},hidden={hidden},heads={heads},sequence={sequence},vocabulary={vocabulary},type={dtype},dropout={dropout},"
            f"flash={str(flash).lower()}")


def whole_nodes(row, gpus):
    if gpus > 8 and gpus % 8:
        row.refuse("gpus", "must be a multiple of 8, or fewer")
    return gpus


def megatron(row):
    sequence, vocabulary = 2048, 51200
    name, layers, hidden, heads = row.text("name"), row.integer("layers", most=65536), row.integer("hidden"), row.integer("heads")
    row.quotient("hidden", heads, "heads")
    row.quotient("heads", row.integer("tensor"), "tensor")
    tensor, pipeline, gpus = row.integer("tensor", most=8192), row.integer("pipeline", most=8192), whole_nodes(row, row.integer("gpus", most=8192))
    data = row.quotient("gpus", tensor * pipeline, "tensor x pipeline")
    row.quotient("layers", pipeline, "pipeline")
    micro_batch = row.integer("micro_batch")
    micro_batches = row.quotient("batch", data * micro_batch, "replicas x micro_batch")
    notes = []
    rounds = 1  # where interleaving is set
    if name in works.MEGATRON_STAGE_LAYERS:
        stages = layers // works.MEGATRON_STAGE_LAYERS[name]
        if stages % pipeline == 0 and micro_batches % pipeline == 0:
            rounds = stages // pipeline
        else:
            notes.append("interleaving not simulated: stages or micro-batches are no multiple of pipeline")
    batch = row.integer("batch")
    flops = 96 * batch * sequence * layers * hidden**2 * (1 + sequence / (6 * hidden) + vocabulary / (16 * layers * hidden))
    # Its own data parallelism, which pipelines had (DDP=local), does not overlap.
    question = training(gpt(layers, hidden, heads, sequence, vocabulary, "f16", 0.1, flash=False), "a100", "adam", overlap=pipeline == 1, data=data, tensor=tensor,
                        groups=pipeline, rounds=rounds, micro_batch=micro_batch, micro_batches=micro_batches, again="all",
                        sequence_parallel=False, fusion="dropout")
    return asked(row, name, "Tflops per GPU", "tflops", flops / gpus / 1e12, question, notes, gpus=gpus, fit=("a100", "f16", TRANSFORMER))


def mpt(row):
    device, (layers, hidden, heads), sequence = device_of(row), row.of("model", works.MPT), row.integer("sequence")
    gpus, again = whole_nodes(row, row.integer("gpus", most=8192)), row.flag("checkpointing")
    micro_batch, accumulation = row.integer("micro_batch", most=65536), row.integer("accumulation", most=65536)
    question = training(gpt(layers, hidden, heads, sequence, works.MPT_VOCABULARY, "bf16", 0), device, "adam", gradients="of_weights", data=gpus,
                        micro_batch=micro_batch, micro_batches=accumulation, again="all" if again else "none", sharded="parameters" if gpus > 1 else "nothing")
    name = f"{row.cells['model']} {device}, sequence {sequence}, {gpus} GPUs, {micro_batch} x {accumulation}"
    return asked(row, name, "tokens/s per GPU", "tokens_per_second_per_gpu", micro_batch * accumulation * sequence, question,
                 works.DEVICE_NOTES.get(device, []), f"{device}, checkpointing" if again else device, gpus=gpus,
                 fit=None if again else (device, "bf16", TRANSFORMER))


SCHEDULES = {"": 1, "1f1b": 1, "1F1B": 1, "interleaved": 2, "interleaved1f1b": 2, "Interleaved1F1B": 2, "interleaved 1f1b": 2, "Interleaved 1F1B": 2}


def torchtitan(row):
    device, (model, kv_heads), sequence = device_of(row), row.of("model", works.LLAMA), row.integer("sequence")
    fsdp, tensor, pipeline, context = (row.integer(column, most=8192) for column in ("fsdp", "tensor", "pipeline", "context"))
    if kv_heads % tensor:
        row.refuse("tensor", f"must divide the heads of keys and values, {kv_heads}")
    gpus = whole_nodes(row, row.integer("gpus", most=8192))
    copies = row.quotient("gpus", fsdp * tensor * pipeline * context, "fsdp x tensor x pipeline x context")
    row.quotient("sequence", context, "context")
    rounds, batch = row.of("schedule", SCHEDULES), row.integer("batch")
    f8 = row.of("type", {"bf16": False, "f8": True})
    again = row.of("checkpointing", {"none": "none", "selective": "every other", "all but attention": "all but attention", "full": "all"})
    notes = list(works.DEVICE_NOTES.get(device, []))
    if f8:
        notes.append("output layer in f8, too")
    micro_batches = 1
    if pipeline > 1:  # torchtitan's default
        micro_batches = pipeline if batch % pipeline == 0 else batch
        notes.append("as many micro-batches as stages" if micro_batches == pipeline else "micro-batches of one sequence")
        if fsdp * context > 1:
            notes.append("weights gathered for each micro-batch")
        if rounds > 1 and micro_batches % pipeline:
            rounds = 1
            notes.append("interleaving not simulated: micro-batches are no multiple of pipeline")
    else:
        rounds = 1
    if copies > 1:
        notes.append("sharded over all replicas, not within fsdp")
    data = gpus // (tensor * pipeline * context)
    question = training(f"{model},sequence={sequence},type=bf16", device, "adam", data=data, tensor=tensor, context=context, groups=pipeline,
                        rounds=rounds, micro_batch=batch // micro_batches, micro_batches=micro_batches, again=again,
                        sharded="parameters" if data * context > 1 else "nothing", fusion="compiled" if row.flag("compiled") else "none", f8_products=f8)
    degrees = " ".join(f"{column} {row.cells[column]}" for column in ("fsdp", "tensor", "pipeline", "context") if row.cells[column] != "1")
    name = ", ".join(part for part in (f"{row.cells['model']} {device}", degrees, row.cells["schedule"], f"sequence {sequence}", row.cells["type"],
                                       "compiled" if row.flag("compiled") else "", row.cells["checkpointing"]) if part)
    as_fitted = not f8 and not row.flag("compiled")
    return asked(row, name, "tokens/s per GPU", "tps", batch * sequence * data / gpus, question, notes, device, gpus=gpus,
                 fit=(device, "bf16", TRANSFORMER) if as_fitted else None,
                 published_memory_gib=row.number("memory") if row.cells["memory"] else None)


def one_device(row):
    work = row.text("work")
    base, sequence = re.fullmatch(r"(bert_.*?)_(\d+)", work).groups() if re.fullmatch(r"bert_.*_\d+", work) else (work, None)
    if base not in works.SINGLE or (sequence is not None) != base.startswith("bert"):
        row.refuse("work", "must be one of " + ", ".join(f"{w}_SEQUENCE" if w.startswith("bert") else w for w in works.SINGLE))
    model, optimizer, unit, notes = works.SINGLE[base]
    device, gpus = device_of(row), whole_nodes(row, row.integer("gpus", most=8192))
    dtype, batch = row.of("type", {t: t for t in ("f32", "tf32", "f16", "bf16")}), row.integer("batch_per_gpu")
    row.of("unit", {unit: unit})
    of_bert = f",sequence={sequence},flash=false,predictions={works.bert_predictions(int(sequence))}" if sequence else ""
    question = training(f"{model},type={dtype}{of_bert}", device, optimizer, data=gpus, micro_batch=batch)
    return asked(row, f"{work} {device} {dtype}, batch {batch}" + (f", {gpus} GPUs" if gpus > 1 else ""), unit, "published", batch * gpus, question,
                 [*notes, *works.DEVICE_NOTES.get(device, [])], gpus=gpus,
                 fit=(device, dtype, TRANSFORMER if sequence else ["convolution", "matmul"]))


SEVERAL = 4  # nodes, where a file says "several"


def all_reduce(row):
    cluster, size = row.text("cluster"), 8e9
    found = re.match(r"(?:(several|\d+) nodes? of )?(\d+) (\w+)\b(.*)", cluster)
    if not found or found[3].lower() not in works.DEVICES:
        row.refuse("cluster", "must begin as '8 A100' or '4 nodes of 8 A100', with one of " + ", ".join(works.DEVICES))
    nodes, gpus, device = found[1] or "1", int(found[2]), works.DEVICES[found[3].lower()]
    devices = gpus * (SEVERAL if nodes == "several" else int(nodes))
    if not 2 <= devices <= 8192 or (nodes != "1" and gpus != 8) or (nodes == "1" and gpus > 8):
        row.refuse("cluster", "must have from 2 to 8 devices on one node, or 8 on each of at most 1024")
    notes = [f"priced on {SEVERAL} nodes"] if nodes == "several" else []
    row.text("source")
    question = {"device": {**device, "nvls": "NVLS" in found[4]}, "devices": devices, "bytes": int(size)}
    return asked(row, cluster, "GB/s", "busbw", 2 * (devices - 1) / devices * size / 1e9, question, notes, gpus=devices)


def packet_level(row):
    graph = row.text("task_graph")
    folders = [row.file.resolve().parent.parent, pathlib.Path(os.environ.get("PARSEARCH_EXTERNAL_DATA", "."))]
    files = [folder / "flexnet" / "taskgraphs" / f"{graph}.fbuf" for folder in folders]
    file = next((f for f in files if f.is_file()), None)
    if not re.fullmatch(r"[\w.-]+", graph) or not file:
        row.refuse("task_graph", "must be a file " + " or ".join(map(str, files)))
    return asked(row, graph, "ms", "milliseconds", None, {"task_graph": str(file), "gbps": row.number("rate_gbps")})


FORMATS = [
    format("Megatron", "name,layers,hidden,heads,tensor,pipeline,gpus,batch,micro_batch,tflops", megatron),
    format("MPT", "device,model,sequence,gpus,micro_batch,accumulation,checkpointing,tokens_per_second_per_gpu", mpt),
    format("torchtitan", "model,device,gpus,fsdp,tensor,pipeline,context,schedule,sequence,batch,type,compiled,checkpointing,tps,memory", torchtitan),
    format("one device", "work,device,gpus,type,batch_per_gpu,published,unit", one_device),
    format("all-reduce", "cluster,busbw,source", all_reduce),
    format("packet level", "task_graph,rate_gbps,milliseconds", packet_level),
]
