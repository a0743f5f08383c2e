#!/usr/bin/env python3
"""Exports functions by examples/export/from_jax.py: files compute what the functions do, and plan reads them. Exit code 77 without jax and onnx.

    check_from_jax.py <from_jax.py> <plan>

EXPORT_PYTHON names the python3 that has jax and onnx, where another has not.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
try:
    import jax
    import jax.numpy as jnp
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator
except ImportError:
    other = os.environ.get("EXPORT_PYTHON", "")
    if os.path.exists(other) and other != sys.executable:
        os.execv(other, [other, *sys.argv])
    print("skipped: no jax or no onnx")
    sys.exit(77)

SCRIPT, PLAN = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(SCRIPT.parent))
from from_jax import save  # noqa: E402

HEADS, SIZE, FEATURES, WORDS = 4, 8, 48, 64
WIDTH = HEADS * SIZE


def normal(*shape):
    normal.key, key = jax.random.split(getattr(normal, "key", jax.random.key(1)))
    return jax.random.normal(key, shape) / shape[0] ** 0.5


def layer():
    return {"norm1": normal(WIDTH) + 1, "wq": normal(WIDTH, HEADS, SIZE), "wk": normal(WIDTH, HEADS, SIZE), "wv": normal(WIDTH, HEADS, SIZE),
            "wo": normal(HEADS, SIZE, WIDTH), "norm2": normal(WIDTH) + 1, "gate": normal(WIDTH, FEATURES), "up": normal(WIDTH, FEATURES),
            "down": normal(FEATURES, WIDTH)}


def rms_norm(x, w):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-5) * w


def transformer(p, tokens):
    x, n = p["words"][tokens], tokens.shape[1]
    for i, l in enumerate(p["layers"]):
        with jax.named_scope(f"layers.{i}"):
            with jax.named_scope("attention"):
                y = rms_norm(x, l["norm1"])
                q, k, v = (jnp.einsum("bld,dhk->blhk", y, l[w]) for w in ("wq", "wk", "wv"))
                scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), jnp.einsum("bqhk,bvhk->bhqv", q, k) / SIZE ** 0.5, -1e30)
                x = x + jnp.einsum("bqhk,hkd->bqd", jnp.einsum("bhqv,bvhk->bqhk", jax.nn.softmax(scores), v), l["wo"])
            with jax.named_scope("mlp"):
                y = rms_norm(x, l["norm2"])
                x = x + (jax.nn.silu(y @ l["gate"]) * (y @ l["up"])) @ l["down"]
    return rms_norm(x, p["norm"]) @ p["head"]


def convolutions(p, images):
    x = jax.lax.conv_general_dilated(images, p["conv"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.gelu(x + p["bias"]).mean((1, 2))
    return jax.nn.log_softmax(jax.nn.relu(x) @ p["out"].T)


def assorted(p, x):
    y = jnp.concatenate([jnp.tanh(x), jax.nn.sigmoid(x)], axis=1) @ p["w"]
    top, places = jax.lax.top_k(y, 3)
    y = y[:, 1:5] - y.max(-1, keepdims=True) + jnp.exp(-jnp.abs(y[:, ::2])) ** 3 + jnp.sum(top, -1, keepdims=True)
    return jnp.pad(y, ((0, 0), (1, 1))) + jnp.cumsum(jnp.ones(6)) + places.sum() + jnp.where(jnp.arange(6) != 2, y.min(), 1.0)


class Functions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "f.onnx")

    def exported(self, function, parameters, *inputs):
        """Writes a file, and holds what it computes with the parameters against the function."""
        shapes = jax.eval_shape(lambda p: p, parameters)
        save(function, shapes, inputs, self.file)
        model = onnx.load(self.file, load_external_data=False)
        leaves = jax.tree_util.tree_leaves(parameters)
        self.assertEqual(len(leaves), len(model.graph.initializer))
        for tensor, leaf in zip(model.graph.initializer, leaves):
            self.assertEqual(tensor.data_location, onnx.TensorProto.EXTERNAL)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.asarray(leaf), tensor.name))
        onnx.checker.check_model(model)
        got, = ReferenceEvaluator(model).run(None, {i.name: numpy.asarray(x) for i, x in zip(model.graph.input, inputs)})
        numpy.testing.assert_allclose(got, function(parameters, *inputs), rtol=2e-4, atol=2e-5)
        return model

    def test_transformer(self):
        parameters = {"words": normal(WORDS, WIDTH), "layers": [layer(), layer()], "norm": normal(WIDTH) + 1, "head": normal(WIDTH, WORDS)}
        self.exported(transformer, parameters, jnp.arange(24).reshape(2, 12) % WORDS)
        done = subprocess.run([PLAN, "--model", f"{self.file},batch=16", "--cluster", "1x4xh100", "--search", "none", "--start", "tensor_parallel_2"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout + done.stderr
        for what in ("2 x attention (4 heads, causal)", "5 x RMS norm", "2 x SiLU", "layers.{0,1}/mlp/MatMul", "layers.{0,1}.wq", "layers.{0,1}.down"):
            self.assertIn(what, said)
        for what in ("reshape", "transpose", "reduce_sum", "einsum"):
            self.assertNotIn(what, said)

    def test_convolutions(self):
        model = self.exported(convolutions, {"conv": normal(3, 3, 3, 8), "bias": normal(8), "out": normal(10, 8)}, normal(2, 8, 8, 3))
        self.assertTrue({"Conv", "ReduceMean", "Relu", "LogSoftmax"} <= {n.op_type for n in model.graph.node})

    def test_assorted(self):
        self.exported(assorted, {"w": normal(10, 8)}, normal(4, 5))

    def test_refusals(self):
        def looped(p, x):
            with jax.named_scope("layers"):
                return jax.lax.scan(lambda c, w: (c @ w, None), x, p)[0]

        with self.assertRaisesRegex(ValueError, "scope 'layers': primitive 'scan' is not exported: layers are to be written out"):
            save(looped, normal(3, 4, 4), (normal(2, 4),), self.file)
        with self.assertRaisesRegex(ValueError, "the function: primitive 'sort' is not exported"):
            save(lambda p, x: jnp.sort(x @ p), normal(4, 4), (normal(2, 4),), self.file)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
