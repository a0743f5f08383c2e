#!/usr/bin/env python3
"""Tests plan_mpi: what plan finds, over ranks; checkpoints, stops and going on; wrong calls.

    check_plan_mpi.py --program plan_mpi --plan plan --mpirun mpirun
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

parser = argparse.ArgumentParser()
for name in ("--program", "--plan", "--mpirun"):
    parser.add_argument(name, required=True)
asked = parser.parse_args()
SMALL = ["--model", "zoo:rnnlm,steps=4,batch=16", "--cluster", "1x4xp100", "--space.max_stages", "1"]


class PlanMpi(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def over(self, ranks, *arguments):
        return [asked.mpirun, "-n", str(ranks), asked.program, *map(str, arguments)]

    def run_it(self, command):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=240, check=False)

    def found(self, name):
        """The plan and what was searched, without times."""
        plan = json.loads((self.folder / name / "plan.json").read_text())
        run = json.loads((self.folder / name / "run.json").read_text())
        return plan, {key: run["result"][key] for key in ("cost_ps", "evaluations", "improved", "trajectory", "reason")}

    def test_two_and_three_ranks_find_what_plan_finds(self):
        for search in ("tempering", "portfolio"):
            how = [*SMALL, "--search", search, "--evaluations", "600", "--time", "none"]
            alone = self.run_it([asked.plan, *how, "--out", "alone-" + search])
            self.assertEqual(alone.returncode, 0, alone.stderr)
            for ranks in (2, 3):
                name = f"{search}-{ranks}"
                done = self.run_it(self.over(ranks, *how, "--out", name))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.found(name), self.found("alone-" + search))
                # Rank 0 alone speaks.
                self.assertEqual(done.stdout.count("\nplan "), 1, done.stdout)

    def test_what_is_interrupted_goes_on_to_the_same_plan(self):
        how = [*SMALL, "--search", "tempering", "--evaluations", "160000", "--time", "none"]
        kept = ["--checkpoint", "run.ck", "--every", "0"]
        command = self.over(2, *how, *kept, "--out", "cut")
        # mpirun hands a stop on after so many seconds, and kills as many later: one unless told.
        environment = os.environ | {"OMPI_MCA_odls_base_sigkill_timeout": "2"}
        with subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            end = time.monotonic() + 60
            while not (self.folder / "run.ck").exists() and running.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            self.assertIsNone(running.poll(), "it ended before it was stopped")
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=60)
            self.assertNotEqual(running.returncode, 0)
        # The best so far is written, as is what to go on from.
        self.assertEqual(self.found("cut")[1]["reason"], "stop requested")
        self.assertTrue((self.folder / "run.ck").exists())
        done = self.run_it(self.over(3, *how, *kept, "--resume", "--out", "whole"))
        self.assertEqual(done.returncode, 0, done.stderr)
        # Another seed is another search.
        other = self.run_it(self.over(2, *how, *kept, "--resume", "--seed", "7", "--out", "other"))
        self.assertEqual(other.stderr.count("is of another search"), 1, other.stderr)
        undisturbed = self.run_it(self.over(1, *how, "--out", "undisturbed"))
        self.assertEqual(undisturbed.returncode, 0, undisturbed.stderr)
        self.assertEqual(self.found("whole"), self.found("undisturbed"))

    def test_wrong_calls_name_what_is_wrong(self):
        for more, said in [
            (["--resume"], "--resume is given without --checkpoint FILE"),
            (["--checkpoint", "run.ck", "--every", "often"], "--every is 'often': must be seconds"),
            (["--search", "mcmc"], "search 'mcmc' does not run over ranks: must be exact, portfolio or tempering"),
        ]:
            done = self.run_it(self.over(2, *SMALL, *more, "--out", "wrong"))
            self.assertNotEqual(done.returncode, 0, more)
            self.assertEqual(done.stderr.count(said), 1, done.stderr)
            self.assertFalse((self.folder / "wrong").exists())
        # What a helping rank alone finds wrong, it says.
        script = self.folder / "other_than_rank_0"
        script.write_text('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || set -- --model missing.onnx --cluster 1x4xp100\nexec "$PROGRAM" "$@"\n')
        script.chmod(0o755)
        done = self.run_it([asked.mpirun, "-x", f"PROGRAM={asked.program}", "-n", "2", script, *SMALL, "--search", "tempering", "--time", "5s"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 1: plan: ", done.stderr)
        self.assertIn("missing.onnx", done.stderr)
        done = self.run_it(self.over(1, *SMALL, "--search", "tempering", "--evaluations", "9", "--checkpoint", "none.ck", "--resume", "--out", "anew"))
        self.assertIn("there is no 'none.ck' yet: the search begins anew", done.stderr)
        self.assertIn("--every SECONDS", self.run_it(self.over(1, "--help")).stdout)
        done = self.run_it(self.over(2, *SMALL, "--checkpoint"))
        self.assertIn("--checkpoint wants a value", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
