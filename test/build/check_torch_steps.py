#!/usr/bin/env python3
"""Runs cuda_profiler/torch_steps.py on the processor, with small networks. Exit code 77 where python3 has no PyTorch.

    check_torch_steps.py <torch_steps.py>
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv[1]).resolve()
SMALL = "gpt2,layers=1,hidden=32,heads=2,sequence=16,vocabulary=50,batch=2"
BERT = "bert_large,layers=2,hidden=32,heads=4,sequence=8,vocabulary=60,batch=2"


class Steps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name, "torch.json")

    def run_script(self, *arguments):
        command = [sys.executable, SCRIPT, "--out", self.out, "--device", "cpu", "--steps", "3", "--warm-up", "1", *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500, check=False)

    def steps(self):
        return json.loads(self.out.read_text())["steps"]

    def test_steps_and_predictions(self):
        validation = pathlib.Path(self.folder.name, "validation.json")
        model = f"zoo:{SMALL},type=f32"
        validation.write_text(json.dumps({"models": [{"model": model, "predicted_ps": 1000, "measured_ps": 900}]}))
        done = self.run_script("--networks", SMALL, BERT, "--modes", "eager", "--validation", validation)
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = self.steps()
        self.assertEqual([(s["model"], s["mode"]) for s in steps], [(f"zoo:{n},type={t}", "eager") for n in (SMALL, BERT) for t in ("bf16", "f32")])
        for step in steps:
            self.assertNotIn("failure", step)
            self.assertEqual(len(step["steps_ps"]), 3)
            self.assertEqual(step["measured_ps"], sorted(step["steps_ps"])[1])
        known = steps[1]
        self.assertEqual((known["model"], known["predicted_ps"], known["iteration_ps"]), (model, 1000, 900))
        self.assertAlmostEqual(known["error"], (1000 - known["measured_ps"]) / known["measured_ps"])
        self.assertNotIn("error", steps[0])
        # What is there is not timed again, and predictions are for the modes that are asked for.
        document = json.loads(self.out.read_text())
        document["steps"].append({"model": model, "mode": "compiled", "measured_ps": 5, "steps_ps": [5]})
        self.out.write_text(json.dumps(document))
        self.assertEqual(self.run_script("--networks", SMALL, BERT, "--modes", "eager", "--validation", validation).returncode, 0)
        self.assertEqual(self.steps(), document["steps"])

    def test_what_fails_is_in_the_file_and_the_rest_goes_on(self):
        done = self.run_script("--networks", "gpt2,layers=1,hidden=33,heads=2,sequence=4,vocabulary=9,batch=1", SMALL, "--types", "f32", "--modes", "eager")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = self.steps()
        self.assertIn("RuntimeError: ", first["failure"])
        self.assertGreater(second["measured_ps"], 0)

    def test_time_limit_and_wrong_calls(self):
        self.assertEqual(self.run_script("--networks", SMALL, "--time-limit", "0").returncode, 4)
        self.assertFalse(self.out.exists())
        for arguments, said in [
            (("--networks", "alexnet"), "network 'alexnet': must be one of resnet50, inception_v3, bert_large, gpt2"),
            (("--networks", "gpt2,layers=x"), "option 'layers=x' must be NAME=NUMBER"),
            (("--types", "f64"), "invalid choice: 'f64'"),
            (("--steps", "0"), "--steps is 0"),
        ]:
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(said, done.stderr)

    def test_parameters_are_those_of_the_zoo(self):
        import torch

        spec = importlib.util.spec_from_file_location("torch_steps", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        counts = {"gpt2": 124_439_808, "bert_large": 335_174_458, "resnet50": 25_557_032, "inception_v3": 23_834_568}
        for name, count in counts.items():
            with torch.device("meta"):
                try:
                    model = module.NETWORKS[name][0]()
                except ImportError:
                    continue
            self.assertEqual(sum(p.numel() for p in model.parameters()), count, name)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: python3 has no PyTorch")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
