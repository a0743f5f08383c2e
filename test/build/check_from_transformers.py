#!/usr/bin/env python3
"""Exports small models by examples/export/from_transformers.py and plans them. Exit code 77 where python3 has no PyTorch or no transformers.

    check_from_transformers.py <from_transformers.py> <plan>           --write: writes test/io/onnx/files/mixtral.onnx, too

EXPORT_PYTHON names another python3, of an environment with examples/export/requirements.txt.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT, PLAN = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PYTHON = os.environ.get("EXPORT_PYTHON", sys.executable)
SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 96}
TEXT = {**SMALL, "num_key_value_heads": 4, "vocab_size": 256, "max_position_embeddings": 64}
FILE = SCRIPT.parents[2] / "test/io/onnx/files/mixtral.onnx"


def has_libraries():
    return subprocess.run([PYTHON, "-c", "import torch, transformers, onnxscript"], capture_output=True, check=False).returncode == 0


class Exports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def planned(self, name, values, options=""):
        """The export for PyTorch, and what was printed."""
        file = self.folder / f"{name}.onnx"
        self.run_it(PYTHON, SCRIPT, name, file, *(a for k, v in values.items() for a in ("--set", f"{k}={v}")))
        self.assertFalse((self.folder / "weights").exists())
        said = self.run_it(PLAN, "--model", f"{file}{options},batch=16", "--cluster", "1x8xh100", "--search", "none", "--start", "tensor_parallel_2",
                           "--out", self.folder / "plan", "--export", "pytorch")
        return json.loads((self.folder / "plan" / "pytorch.json").read_text()), said

    def test_llama(self):
        plan, said = self.planned("llama_8b", TEXT, ",sequence=32")
        self.assertIn("recognised 2 x attention (8 heads, 4 of keys and values, causal)", said)
        self.assertIn("recognised 5 x RMS norm", said)
        self.assertIn("recognised 4 x rotary embedding", said)
        styles = {s["module"]: s["style"] for s in plan["parallelize_module"]}
        for layer in range(2):
            for module, style in (("self_attn.q_proj", "Colwise"), ("self_attn.o_proj", "Rowwise"), ("mlp.up_proj", "Colwise"), ("mlp.down_proj", "Rowwise")):
                self.assertEqual(styles[f"model.layers.{layer}.{module}"], style + "Parallel")

    def test_mixtral(self):
        plan, said = self.planned("mixtral_8x7b", TEXT, ",sequence=32")
        self.assertIn("recognised 2 x gate of experts", said)
        self.assertIn("moe_dispatch", said)
        self.assertIn("model.layers.1.mlp.experts.down_proj", {p["name"] for p in plan["parameters"]})
        if "--write" in sys.argv:
            shutil.copy(self.folder / "mixtral_8x7b.onnx", FILE)

    def test_vision_transformer(self):
        plan, said = self.planned("vit_l_16", {**SMALL, "image_size": 32, "patch_size": 8, "num_labels": 16})
        self.assertIn("recognised 2 x attention (8 heads)", said)
        self.assertEqual({p["name"] for p in plan["parameters"] if "layers.1.attention.q_proj" in p["name"]},
                         {f"vit.layers.1.attention.q_proj.{w}" for w in ("weight", "bias")})

    def test_refusals(self):
        for argument, why in (("layers", "must be KEY=VALUE"), ("nothing=3", "LlamaConfig has no 'nothing'")):
            done = subprocess.run([PYTHON, SCRIPT, "llama_8b", "--set", argument], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    if not has_libraries():
        print("skipped: no PyTorch, transformers or onnxscript")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
