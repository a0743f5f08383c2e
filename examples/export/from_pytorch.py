#!/usr/bin/env python3
"""Writes a PyTorch module as an ONNX file that `plan` reads: names of modules and parameters are kept, weights are not.

    from from_pytorch import save, weightless

    net = weightless(lambda: MyNet(width=4096))          # a net that takes no memory; one with weights will do, too
    save(net, {"tokens": torch.zeros(2, 128, dtype=torch.long)}, "net.onnx", {"tokens": ("batch", "sequence")})

Needs torch 2.9 or later with onnx and onnxscript. Nothing is downloaded. from_transformers.py does it for models of that library.
"""

import ast
import collections
import math

import onnx_ir
import onnxscript.optimizer
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

OPSET = 23  # the first with attention


class _OnMeta(TorchDispatchMode):
    """While it is entered, tensors that would be made to be filled later are made without memory."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.empty.memory_format:
            kwargs = {**(kwargs or {}), "device": "meta"}
        return function(*args, **(kwargs or {}))


def weightless(make):
    """What `make()` answers, for inference, with parameters whose elements are one in memory. Buffers that are computed keep their contents."""
    with _OnMeta():
        module = make()
    made = {}  # parameters that modules share stay shared

    def without_memory(tensor):
        if id(tensor) not in made:
            stand_in = torch.zeros((), dtype=tensor.dtype).expand(tensor.shape)
            made[id(tensor)] = tensor, nn.Parameter(stand_in, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else stand_in
        return made[id(tensor)][1]

    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and tensor.is_meta:
                    tensors[name] = without_memory(tensor)
    return module.eval()


def _module_of(node):
    """The path of the module that a node was computed in, as PyTorch names it."""
    scopes = ast.literal_eval(node.metadata_props.get("pkg.torch.onnx.name_scopes", "[]"))
    return next((s for s in reversed(scopes[:-1]) if s), "")


def _name_nodes(graph):
    """`model.layers.0.mlp.up_proj/MatMul`: the module, and what it computes, with a number where it does so several times."""
    used = collections.Counter()
    for node in graph:
        name = f"{_module_of(node)}/{node.op_type}".removeprefix("/")
        used[name] += 1
        node.name = name if used[name] == 1 else f"{name}_{used[name]}"


def _name_dims(graph, dims):
    """Gives dims the names that they have in `dims`: PyTorch numbers them."""
    names = {}
    for value in graph.inputs:
        for axis, name in enumerate(dims.get(value.name, ())):
            if name:
                names[str(value.shape[axis])] = name
    values = [*graph.inputs, *(v for node in graph for v in node.outputs)]
    for value in values:
        if value.shape is not None:
            value.shape = onnx_ir.Shape([d if isinstance(d, int) else names.get(str(d), str(d)) for d in value.shape])


def save(module, inputs, file, dims=None):
    """Writes `file`. `inputs`: tensors (or other arguments) by the name of the argument of `forward`. `dims`: of tensors, names for the axes whose
    extents are said when the file is read; None for one that is fixed. Parameters become initialisers whose contents would be in a file `weights`, which
    is not written; buffers become constants."""
    named, shapes = {}, {name: None for name in inputs}
    for name, axes in (dims or {}).items():
        shapes[name] = {i: named.setdefault(axis, torch.export.Dim(axis)) for i, axis in enumerate(axes) if axis}
    with torch.no_grad():
        exported = torch.export.export(module, (), inputs, dynamic_shapes=shapes)
        program = torch.onnx.export(exported, (), opset_version=OPSET, dynamo=True, optimize=False, verify=False)
    model = program.model
    graph = model.graph
    trained = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    parameters, first = [], graph[0]
    for value in list(graph.initializers.values()):
        if value.name in trained:
            parameters.append(value)
        else:
            constant = onnx_ir.Node("", "Constant", [], [onnx_ir.AttrTensor("value", onnx_ir.tensor(value.const_value.numpy(), name=value.name))],
                                    outputs=[onnx_ir.Value(name=value.name, type=value.type, shape=value.shape)])
            graph.insert_before(first, constant)
            value.replace_all_uses_with(constant.outputs[0])
    graph.initializers.clear()
    _name_dims(graph, dims or {})
    _name_nodes(graph)
    # As inputs: what is made of parameters is not computed here.
    graph.inputs.extend(parameters)
    for value in parameters:
        value.const_value = None
    onnxscript.optimizer.optimize(model)
    for value in parameters:
        graph.inputs.remove(value)
        value.const_value = onnx_ir.ExternalTensor("weights", 0, math.prod(value.shape) * value.dtype.itemsize, value.dtype, shape=value.shape,
                                                   name=value.name)
        graph.initializers[value.name] = value
    for node in graph:
        node.metadata_props.clear()
    onnx_ir.save(model, file)
