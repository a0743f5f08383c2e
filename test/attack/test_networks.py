"""Networks that are unusual."""

import os
import re

import attack


class Networks(attack.Case):
    def attacked(self, name):
        data = os.environ.get("PARSEARCH_EXTERNAL_DATA")
        if not data:
            self.skipTest("PARSEARCH_EXTERNAL_DATA is not set")
        return os.path.join(data, "attack", name)

    def test_joint_search_folds_what_only_weights_decide(self):
        model = self.attacked("j_expand.onnx")
        done = self.plan("--model", model, "--cluster", "1x2xp100", "--search", "joint", "--simulation.training", "false", "--evaluations", "50")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("found by joint", done.out)

    def test_attention_of_operator_set_23_takes_in_its_transposes(self):
        done = self.plan("--model", self.attacked("tf_dyn23.onnx"), "--cluster", "1x2xp100", "--evaluations", "20")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("recognised 2 x attention (4 heads, causal)", done.err)
        self.assertNotIn("transpose", done.out)
        self.assertNotIn("reshape", done.out)

    def test_parameters_are_listed(self):
        for pattern, listed in (("b.0.mask", True), ("*.mask", False)):
            done = self.plan("--model", self.attacked("buf_add_static.onnx"), "--constants", pattern, "--cluster", "1x2xp100", "--evaluations", "20")
            self.assertEqual(done.code, 0, done.err)
            names = [line.split() for line in done.out.split(" parameters ")[-1].splitlines()]
            self.assertEqual(any("mask" in " ".join(words) for words in names), listed)

    def test_masks_in_buffers_are_not_trained(self):
        for name, masks in (("buf_add_static.onnx", "b.0.mask' and 3 others"), ("tf_dyn_static.onnx", "val_51' and 1 other")):
            with self.subTest(name):
                done = self.plan("--model", self.attacked(name), "--cluster", "1x2xp100", "--evaluations", "20")
                self.assertEqual(done.code, 0, done.err)
                self.assertIn(masks, done.err)
        done = self.plan("--model", self.attacked("buf_add_static.onnx"), "--cluster", "1x2xp100", "--evaluations", "20", "--out", "out")
        self.assertIn("1.047 M", next(line for line in done.out.splitlines() if line.startswith("model")))
        self.assertEqual(self.plan("--rerun", "out/run.json").code, 0)

    def test_a_table_that_is_constant_is_still_looked_up_by_token(self):
        done = self.plan("--model", self.attacked("buf_add_static.onnx"), "--constants", "e.weight", "--cluster", "1x2xp100", "--evaluations", "20")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("2048 tokens per iteration", done.out)

    def test_the_user_says_what_is_constant(self):
        model = self.attacked("buf_add_static.onnx")
        parameters = {}
        for pattern in ("*.mask", "b.0.mask"):
            done = self.plan("--model", model, "--constants", pattern, "--cluster", "1x2xp100", "--evaluations", "20")
            self.assertEqual(done.code, 0, done.err)
            parameters[pattern] = re.search(r"([\d.]+) M parameters", done.out).group(1)
        self.assertLess(float(parameters["*.mask"]), 1.1)
        self.assertGreater(float(parameters["b.0.mask"]), 4)
        done = self.plan("--model", model, "--constants", "nothing*", "--cluster", "1x2xp100")
        self.assertEqual(done.code, 2)
        self.assertIn("constants=nothing* is the name of no initialiser", done.err)
