#!/usr/bin/env python3
"""Measures, validates and plans on the cores that are there.

    check_program.py --profile <parsearch-profile> --plan <plan> --cluster <file> [--mpirun <program>]

Times are held to wide limits: other programs may run beside.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

QUICK = ["--kernel-time", "5ms", "--warm-up", "1ms", "--from-idle", "0ms", "--quiet"]
MLP = "zoo:mlp,features=256,hidden=256*2,classes=16,batch=64"
LENET = "zoo:lenet,batch=32"
GPT = "zoo:gpt,layers=1,hidden=64,heads=4,sequence=32,vocabulary=500,batch=4"


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def run_profile(self, *arguments, processes=1):
        mpi = [ASKED.mpirun, "-n", str(processes)] if processes > 1 else []
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        command = [*mpi, ASKED.profile, "--device", "cpu", "--cluster", ASKED.cluster, *arguments]
        # In a session of its own: no signal of mpirun's, for one that ended with an error, can reach ctest.
        return subprocess.run(command, env=os.environ | root, capture_output=True, text=True, timeout=300, check=False, start_new_session=True)

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def test_kernels_are_measured_and_a_plan_rests_on_them(self):
        table = self.folder / "t.json"
        done = self.run_profile("--model", MLP, "--degrees", "1,2", "--kernels-only", "--out", table, *QUICK)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        written = self.read("t.json")
        self.assertNotIn("failures", written)
        self.assertIn("CPU core", written["measured"]["device"])
        self.assertIn("onednn", written["measured"]["libraries"])
        self.assertGreater(len(written["kernels"]), 10)
        for kernel in written["kernels"]:
            self.assertEqual(kernel["device"], "cpu")
            self.assertGreater(kernel["time_ps"], 0)
        # A thirty-second of the arithmetic is not slower, whatever runs beside.
        products = {tuple(e for _, e in k["dims"]): k["time_ps"] for k in written["kernels"] if k["op"] == "linear" and k["pass"] == "forward"}
        self.assertLess(products[(32, 16, 256)], products[(64, 256, 256)])
        planned = subprocess.run(
            [ASKED.plan, "--model", MLP, "--cluster", ASKED.cluster, "--profile", table, "--search", "none"],
            capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(planned.returncode, 0, planned.stdout + planned.stderr)
        self.assertRegex(planned.stdout, r"compute time: 100% measured")

    def test_whole_iterations_beside_their_predictions(self):
        processes = 2 if ASKED.mpirun and len(os.sched_getaffinity(0)) > 1 else 1
        table, report = self.folder / "t.json", self.folder / "v.json"
        models = [a for m in (MLP, LENET, GPT) for a in ("--model", m)]
        parallel = ["--data-parallel"] if processes > 1 else []
        done = self.run_profile(*models, "--validate", *parallel, "--profile", table, "--out", report, "--iterations", "10", "--within", "1", *QUICK,
                                processes=processes)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        rows = self.read("v.json")["models"]
        self.assertEqual([r["devices"] for r in rows], [1, 2] * 3 if processes > 1 else [1] * 3)
        for row in rows:
            self.assertNotIn("failure", row)
            self.assertEqual(row["left_out"], [])
            self.assertAlmostEqual(row["share"]["exact"], 1)
            self.assertEqual(len(row["iterations_ps"]), 10)
            # Processes that wait for each other suffer most from what runs beside.
            measured, factor = (row["measured_ps"], 8) if row["devices"] == 1 else (min(row["iterations_ps"]), 20)
            self.assertGreater(measured * factor, row["predicted_ps"], row)
            self.assertLess(measured, row["predicted_ps"] * factor, row)
            self.assertEqual(row["reducing_ps"] > 0, row["devices"] == 2)
        if processes == 1:
            return
        written = self.read("t.json")
        self.assertEqual({l["kind"] for l in written["links"]}, {"local", "peer"})
        reduced = next(c for c in written["collectives"] if c["kind"] == "all_reduce")
        self.assertEqual(reduced["size"], 2)
        self.assertLess(reduced["points"][0][1], reduced["points"][-1][1])

    def test_what_cannot_be_is_said(self):
        refused = self.run_profile("--model", MLP, "--validate", "--data-parallel", "--profile", self.folder / "t.json", *QUICK)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("--data-parallel is given with 1 devices and a cluster of 2: must be as many, two or more", refused.stderr)
        refused = self.run_profile("--device", "gpu", "--model", MLP, "--out", self.folder / "t.json", *QUICK)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("this parsearch-profile measures a cpu: must be that of cuda_profiler/", refused.stderr)
        # Of other types each kernel fails with its reason.
        done = self.run_profile("--model", MLP, "--types", "bf16", "--degrees", "1", "--passes", "forward", "--kernels-only", "--out",
                                self.folder / "b.json", *QUICK)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = self.read("b.json")
        self.assertEqual(written["kernels"], [])
        self.assertTrue(all("f32" in f["reason"] for f in written["failures"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("profile", "plan", "cluster"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--mpirun")
    ASKED, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
