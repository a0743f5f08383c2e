#!/usr/bin/env python3
"""Writes a JAX function as an ONNX file that `plan` reads: names of parameters and scopes are kept, weights are not.

    from from_jax import save

    save(model, parameters, (tokens,), "model.onnx")     # of model(parameters, tokens), which answers what the loss is of: logits

`parameters` is a pytree, of arrays or of shapes as `jax.eval_shape` answers them. A parameter is named after its place, `layers.0.mlp.up`; an operator
after its `jax.named_scope`s, `layers.0/mlp/MatMul`. Needs jax and onnx. Loops (`lax.scan`, `lax.while_loop`) are refused: layers are to be written out.
"""

import collections
import math
import string

import jax
import jax.extend.core
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18

UNARY = {"neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh", "logistic": "Sigmoid", "sqrt": "Sqrt", "erf": "Erf", "sin": "Sin", "cos": "Cos",
         "abs": "Abs", "sign": "Sign", "floor": "Floor", "ceil": "Ceil", "not": "Not", "is_finite": None, "stop_gradient": "Identity",
         "optimization_barrier": "Identity", "copy": "Identity", "copy_p": "Identity", "reduce_precision": "Identity"}
BINARY = {"add": "Add", "add_any": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow", "rem": "Mod", "and": "And",
          "or": "Or", "xor": "Xor", "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd"}
CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


def onnx_type(dtype):
    name = str(dtype)
    return TensorProto.BFLOAT16 if name == "bfloat16" else helper.np_dtype_to_tensor_dtype(numpy.dtype(name))


def place(path):
    """The name of a leaf of a pytree: keys, indices and attributes with dots between."""
    return ".".join(str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path)


class Writer:
    def __init__(self, trained):
        self.nodes, self.used = [], collections.Counter()
        self.scope = ""
        self.made = {}      # nodes by what they make
        self.numbers = {}   # constants of one element
        self.kept = {}      # of what is reduced: its shape where the axes stay
        self.sizes = {}     # of sums: of how many elements
        self.shapes = {}
        self.trained = trained

    def refuse(self, why):
        raise ValueError(f"{'scope ' + repr(self.scope) if self.scope else 'the function'}: {why}")

    def constant(self, value):
        value = numpy.asarray(value)
        made = self.node("Constant", [], value=numpy_helper.from_array(value, ""))
        if value.size == 1:
            self.numbers[made] = float(value.reshape(())[()])
        return made

    def node(self, kind, inputs, **attributes):
        name = f"{self.scope}/{kind}".removeprefix("/")
        self.used[name] += 1
        if self.used[name] > 1:
            name = f"{name}_{self.used[name]}"
        outputs = attributes.pop("outputs", 1)
        names = [name + ":" + str(i) for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name, **attributes))
        self.made.update({n: self.nodes[-1] for n in names})
        return names[0] if outputs == 1 else names

    def shaped(self, kind, x, shape):
        return self.node(kind, [x, self.constant(numpy.array(shape, numpy.int64))])

    def with_axes(self, x, shape):
        """`x` with axes of one element: of a sum and the like, those that were summed are kept."""
        n = self.made.get(x)
        if n is not None and n.op_type in (*REDUCTIONS.values(), "ReduceMean") and self.kept[x] == list(shape):
            made = self.node(n.op_type, n.input, keepdims=1)
            self.kept[made] = list(shape)
            return self.counted(made, "reduce_sum", self.sizes[x]) if x in self.sizes else made
        return self.shaped("Reshape", x, shape)

    def counted(self, made, kind, elements):
        """Remembers of how many elements a sum is: divided by them, it is a mean."""
        if kind == "reduce_sum":
            self.sizes[made] = elements
        return made

    def softmax_axis(self, above, below):
        """The axis where above / below is exp(x - max x) over its sum, as jax.nn.softmax has it; else None."""
        exp, total = self.made.get(above), self.made.get(below)
        if exp is None or total is None or (exp.op_type, total.op_type) != ("Exp", "ReduceSum") or total.input[0] != above:
            return None
        less = self.made.get(exp.input[0])
        if less is None or less.op_type != "Sub":
            return None
        most = self.made.get(less.input[1])
        while most is not None and most.op_type in ("Identity", "Reshape", "Max"):
            most = next((self.made[i] for i in reversed(most.input) if i in self.made and self.made[i].op_type != "Constant"), None)
        if most is None or most.op_type != "ReduceMax" or most.input[0] != less.input[0]:
            return None
        shape = self.shapes[above]
        kept = [i for i, n in enumerate(self.kept.get(below, shape)) if n == 1 != shape[i]]
        return kept[0] if len(kept) == 1 else None

    def moved(self, x, order):
        return x if list(order) == sorted(order) else self.node("Transpose", [x], perm=list(order))

    # Of one primitive each: inputs are names, variables have shapes.

    def dot_general(self, e, x, w):
        (cx, cw), (bx, bw) = e.params["dimension_numbers"]
        left, right = e.invars[0].aval.ndim, e.invars[1].aval.ndim
        if not bx and right == 2 and len(cw) == 1 and tuple(cx) == (left - 1,):  # a layer
            return self.node("MatMul", [x, self.moved(w, (0, 1) if cw[0] == 0 else (1, 0))])
        if not bx and w in self.trained and tuple(cw) == tuple(range(len(cw))) and tuple(cx) == tuple(range(left - len(cx), left)):
            # A layer whose inputs or outputs have several axes, such as heads: a matrix.
            before, after = e.invars[0].aval.shape[:left - len(cx)], e.invars[1].aval.shape[len(cw):]
            inner = math.prod(e.invars[1].aval.shape[:len(cw)])
            if len(cx) > 1:
                x = self.shaped("Reshape", x, (*before, inner))
            y = self.node("MatMul", [x, self.shaped("Reshape", w, (inner, math.prod(after)))])
            return y if len(after) == 1 else self.shaped("Reshape", y, (*before, *after))
        letters = iter(string.ascii_letters)
        a, b = [next(letters) for _ in range(left)], [""] * right
        for i, j in list(zip(cx, cw)) + list(zip(bx, bw)):
            b[j] = a[i]
        b = [c or next(letters) for c in b]
        out = [a[i] for i in bx] + [a[i] for i in range(left) if i not in (*cx, *bx)] + [b[j] for j in range(right) if j not in (*cw, *bw)]
        return self.node("Einsum", [x, w], equation=f"{''.join(a)},{''.join(b)}->{''.join(out)}")

    def conv_general_dilated(self, e, x, w):
        p, numbers = e.params, e.params["dimension_numbers"]
        if p["batch_group_count"] != 1 or any(d != 1 for d in p["lhs_dilation"]):
            self.refuse("convolutions that are transposed or of groups of samples are not exported")
        y = self.node("Conv", [self.moved(x, numbers.lhs_spec), self.moved(w, numbers.rhs_spec)], strides=list(p["window_strides"]),
                      dilations=list(p["rhs_dilation"]), group=p["feature_group_count"], pads=[a for a, _ in p["padding"]] + [b for _, b in p["padding"]])
        back = [0] * len(numbers.out_spec)
        for i, axis in enumerate(numbers.out_spec):
            back[axis] = i
        return self.moved(y, back)

    def broadcast_in_dim(self, e, x):
        shape, dims, before = e.params["shape"], e.params["broadcast_dimensions"], e.invars[0].aval.shape
        with_ones = [1] * len(shape)
        for axis, extent in zip(dims, before):
            with_ones[axis] = extent
        if with_ones != list(before):
            x = self.with_axes(x, with_ones)
        return x if with_ones == list(shape) else self.shaped("Expand", x, shape)

    def gather(self, e, table, index):
        d, sizes, shape = e.params["dimension_numbers"], e.params["slice_sizes"], e.invars[0].aval.shape
        rows = (tuple(d.start_index_map) == (0,) and tuple(d.collapsed_slice_dims) == (0,) and not d.operand_batching_dims and
                tuple(sizes) == (1, *shape[1:]) and e.invars[1].aval.shape[-1] == 1)
        lead = e.invars[1].aval.ndim - 1
        if not rows or tuple(d.offset_dims) != tuple(range(lead, lead + len(shape) - 1)):
            self.refuse("a gather that does not look up rows of a table is not exported")
        shape, n = tuple(e.invars[1].aval.shape[:-1]), self.made.get(index)
        before = n.input[0] if n is not None and n.op_type == "Reshape" else None
        index = before if before and self.shapes.get(before) == shape else self.shaped("Reshape", index, shape)
        return self.node("Gather", [table, index], axis=0)

    def select_n(self, e, which, no, *more):
        if len(more) != 1:
            self.refuse("select_n of more than two cases is not exported")
        less = self.made.get(which)
        if less is not None and less.op_type == "Less" and less.input[0] == no and str(e.outvars[0].aval.dtype).startswith(("int", "uint")):
            return no  # indices below 0 count from the end: none are
        return self.node("Where", [which, more[0], no])

    def iota(self, e):
        shape, axis = e.params["shape"], e.params["dimension"]
        row = self.constant(numpy.arange(shape[axis]).astype(str(e.params["dtype"])).reshape([-1 if i == axis else 1 for i in range(len(shape))]))
        return row if math.prod(shape) == shape[axis] else self.shaped("Expand", row, shape)

    def slice(self, e, x):
        p, rank = e.params, e.invars[0].aval.ndim
        lists = [p["start_indices"], p["limit_indices"], range(rank), p["strides"] or [1] * rank]
        return self.node("Slice", [x, *(self.constant(numpy.array(list(v), numpy.int64)) for v in lists)])

    def split(self, e, x):
        sizes = self.constant(numpy.array(e.params["sizes"], numpy.int64))
        return self.node("Split", [x, sizes], axis=e.params["axis"], outputs=len(e.params["sizes"]))

    def top_k(self, e, x):
        k = e.params.get("k", e.outvars[0].aval.shape[-1])
        return self.node("TopK", [x, self.constant(numpy.array([k], numpy.int64))], axis=-1, outputs=2)

    def pad(self, e, x, value):
        config = e.params["padding_config"]
        if any(inner for _, _, inner in config):
            self.refuse("padding between elements is not exported")
        return self.node("Pad", [x, self.constant(numpy.array([a for a, _, _ in config] + [b for _, b, _ in config], numpy.int64)), value])

    def one(self, e, inputs):
        kind, p, out = e.primitive.name, e.params, e.outvars[0].aval
        if kind in ("and", "or", "xor") and str(out.dtype) != "bool":
            self.refuse(f"{kind} of integers is not exported")
        if UNARY.get(kind):
            return self.node(UNARY[kind], inputs)
        if kind == "div" and (axis := self.softmax_axis(*inputs)) is not None:
            return self.node("Softmax", self.made[self.made[inputs[0]].input[0]].input[:1], axis=axis)
        if kind == "div" and inputs[1] in self.numbers and self.sizes.get(inputs[0]) == self.numbers[inputs[1]]:
            n = self.made[inputs[0]]
            return self.node("ReduceMean", n.input, keepdims=next(a.i for a in n.attribute if a.name == "keepdims"))
        if kind in BINARY:
            return self.node(BINARY[kind], inputs)
        if kind in REDUCTIONS:
            shape = e.invars[0].aval.shape
            made = self.node(REDUCTIONS[kind], [inputs[0], self.constant(numpy.array(p["axes"], numpy.int64))], keepdims=0)
            self.kept[made] = [1 if i in p["axes"] else n for i, n in enumerate(shape)]
            return self.counted(made, kind, math.prod(shape[i] for i in p["axes"]))
        if kind in ("argmax", "argmin"):
            return self.node("ArgMax" if kind == "argmax" else "ArgMin", inputs, axis=p["axes"][0], keepdims=0)
        if kind in ("reshape", "squeeze", "expand_dims"):
            return self.shaped("Reshape", inputs[0], out.shape)
        if kind == "transpose":
            return self.node("Transpose", inputs, perm=list(p["permutation"]))
        if kind == "concatenate":
            return self.node("Concat", inputs, axis=p["dimension"])
        if kind == "convert_element_type":
            return self.node("Cast", inputs, to=onnx_type(p["new_dtype"]))
        number = lambda v: self.constant(numpy.array(v, str(out.dtype) if str(out.dtype) != "bfloat16" else "float32"))  # noqa: E731
        if kind == "integer_pow":
            return self.node("Pow", [inputs[0], number(p["y"])])
        if kind == "square":
            return self.node("Mul", [inputs[0], inputs[0]])
        if kind == "rsqrt":
            return self.node("Reciprocal", [self.node("Sqrt", inputs)])
        if kind == "log1p":
            return self.node("Log", [self.node("Add", [inputs[0], number(1)])])
        if kind == "ne":
            return self.node("Not", [self.node("Equal", inputs)])
        if kind == "cumsum":
            return self.node("CumSum", [inputs[0], self.constant(numpy.array(p["axis"], numpy.int64))])
        if kind in ("dot_general", "conv_general_dilated", "broadcast_in_dim", "gather", "select_n", "iota", "slice", "split", "top_k", "pad"):
            return getattr(self, kind)(e, *inputs)
        return self.refuse(f"primitive '{kind}' is not exported{': layers are to be written out' if kind in ('scan', 'while') else ''}")

    def known_call(self, e, name, inner, inputs):
        """Functions of jax.nn that are one operator of ONNX; None for others."""
        along = {k.primitive.name: k.params["axes"] for k in flat(inner) if k.primitive.name in ("reduce_max", "reduce_sum")}
        axes = along.get("reduce_max")
        if name in ("_softmax", "softmax", "log_softmax") and axes and len(axes) == 1:
            return self.node("LogSoftmax" if name == "log_softmax" else "Softmax", inputs[:1], axis=axes[0])
        if name == "relu":
            return self.node("Relu", inputs)
        return None

    def walk(self, jaxpr, inputs, outer):
        """Writes the equations of a jaxpr, and answers the names of what it answers."""
        names = dict(zip(jaxpr.invars, inputs))
        names.update(zip(jaxpr.constvars, outer))
        self.shapes.update((name, tuple(v.aval.shape)) for v, name in names.items())

        def read(v):
            if isinstance(v, jax.extend.core.Literal):
                value = numpy.asarray(v.val, str(v.aval.dtype) if str(v.aval.dtype) != "bfloat16" else "float32")
                return self.constant(value)
            return names[v]

        for e in jaxpr.eqns:
            before = self.scope
            stack = str(e.source_info.name_stack).split("/")
            self.scope = "/".join(s for s in (before, *stack) if s and "->" not in s)  # jnp.einsum names scopes after equations
            given, kind = [read(v) for v in e.invars], e.primitive.name
            if kind in CALLS:
                closed = e.params.get("jaxpr", e.params.get("call_jaxpr", e.params.get("fun_jaxpr")))
                inner, consts = (closed.jaxpr, closed.consts) if hasattr(closed, "consts") else (closed, [])
                info = getattr(inner, "debug_info", None)
                name = e.params.get("name") or str(getattr(info, "func_src_info", "")).split(" ")[0]
                made = self.known_call(e, name, inner, given)
                results = [made] if made else self.walk(inner, given, [self.constant(c) for c in consts])
            else:
                made = self.one(e, given)
                results = made if isinstance(made, list) else [made]
            names.update(zip(e.outvars, results))
            self.shapes.update((name, tuple(v.aval.shape)) for name, v in zip(results, e.outvars))
            self.scope = before
        return [read(v) for v in jaxpr.outvars]


def flat(jaxpr):
    """The equations of a jaxpr and of those that it calls."""
    for e in jaxpr.eqns:
        yield e
        for v in e.params.values():
            inner = getattr(v, "jaxpr", v)
            if hasattr(inner, "eqns"):
                yield from flat(inner)


def save(function, parameters, inputs, file):
    """Writes `function(parameters, *inputs)` as `file`. Arrays may be `jax.ShapeDtypeStruct`s. Contents of parameters would be in a file `weights`, which
    is not written. Throws ValueError, naming the scope, on primitives that are not exported."""
    closed = jax.make_jaxpr(function)(parameters, *inputs)
    trained = [(place(path), leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(parameters)[0]]
    data = [(place(path) if len(inputs) > 1 or len(path) > 1 else "x", leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(inputs)[0]]
    data = [("x" + name if name.isdigit() else name, leaf) for name, leaf in data]
    writer = Writer({name for name, _ in trained})
    results = writer.walk(closed.jaxpr, [name for name, _ in trained + data], [writer.constant(c) for c in closed.consts])
    initialisers = []
    for name, leaf in trained:
        tensor = TensorProto(name=name, data_type=onnx_type(leaf.dtype), dims=leaf.shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="weights")
        initialisers.append(tensor)
    live, nodes = set(results), []
    for node in reversed(writer.nodes):
        if live.intersection(node.output):
            live.update(node.input)
            nodes.insert(0, node)
    ports = [helper.make_tensor_value_info(name, onnx_type(leaf.dtype), leaf.shape) for name, leaf in data]
    wanted = [helper.make_tensor_value_info(name, onnx_type(v.aval.dtype), v.aval.shape) for name, v in zip(results, closed.jaxpr.outvars)]
    graph = helper.make_graph(nodes, getattr(function, "__name__", "function"), ports, wanted, initialisers)
    onnx.save(helper.make_model(graph, producer_name="from_jax.py", opset_imports=[helper.make_opsetid("", OPSET)]), file)
