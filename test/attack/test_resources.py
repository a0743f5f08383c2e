"""Runs that are too large for their time, their memory or the patience of who presses Ctrl-C."""

import os
import resource
import signal
import subprocess
import time
import unittest

import attack

GIB = 1 << 30
# On a slow or busy machine, or in a build without optimisation, what must be done at least takes longer.
PATIENCE = float(os.environ.get("PARSEARCH_ATTACK_PATIENCE", "1"))
LARGE = ("--model", "zoo:gpt,batch=4096", "--cluster", "64x8xh100", "--replicas", "1")


def only_all(test):
    return unittest.skipUnless(os.environ.get("PARSEARCH_ATTACK") == "all", "long: PARSEARCH_ATTACK=all")(test)


class Resources(attack.Case):
    def timed(self, *arguments, **limits):
        began = time.monotonic()
        result = self.plan(*arguments, **limits)
        return result, time.monotonic() - began

    def interrupted(self, *arguments, after):
        """Ctrl-C `after` seconds: the exit code, the output, and how long the end took."""
        run = subprocess.Popen([os.environ["PARSEARCH_PLAN"], *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(after)
            began = time.monotonic()
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
        return attack.Result(run.returncode, out, err), time.monotonic() - began

    def test_experts_honour_the_time(self):
        # One weird trick alone took most of a minute and 10 GB.
        result, seconds = self.timed(*LARGE, "--time", "1ms", seconds=60 * PATIENCE)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("data parallel", result.out)
        self.assertIn("found by portfolio", result.out)
        self.assertIn("left out: ", result.err)
        self.assertIn("--time", result.err)
        self.assertLess(seconds, 20 * PATIENCE)

    def test_ctrl_c_ends_experts(self):
        result, seconds = self.interrupted(*LARGE, "--time", "1h", "--out", "plan", after=6 * PATIENCE)
        self.assertEqual(result.code, 130, result.err)
        self.assertIn("found by portfolio", result.out)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "plan", "plan.json")))
        self.assertLess(seconds, 15 * PATIENCE)

    def test_a_start_honours_the_time(self):
        result, seconds = self.timed(*LARGE, "--time", "1ms", "--start", "one_weird_trick", seconds=60 * PATIENCE)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("left out: ", result.err)
        self.assertLess(seconds, 20 * PATIENCE)

    def test_ctrl_c_ends_a_start(self):
        result, seconds = self.interrupted(*LARGE, "--search", "none", "--start", "one_weird_trick", "--compare", "none", "--out", "plan",
                                           after=6 * PATIENCE)
        self.assertEqual(result.code, 130, result.err)
        self.assertIn("chosen: data parallel", result.out)
        self.assertLess(seconds, 8 * PATIENCE)

    def test_memory_leaves_out_what_takes_more(self):
        result = self.plan("--model", "zoo:gpt,layers=4,batch=512", "--cluster", "16x8xh100", "--time", "30s", "--search", "greedy", "--evaluations",
                           "1", "--space.pipelines", "false", "--memory", "200MB", seconds=60 * PATIENCE)
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.err, r"left out: [a-z ]+ takes more memory than 19[01][.\d]* MiB: --memory allows more")
        self.assertIn("data parallel", result.out)

    def test_memory_that_does_not_suffice_is_an_error_of_plan(self):
        result = self.plan("--model", "zoo:mlp,hidden=64*20000", "--cluster", "8x8xh100", "--memory", "100MB", "--time", "1s", seconds=60 * PATIENCE)
        self.assertEqual(result.code, 1)
        self.assertIn("plan: out of memory: this takes more than 95.4 MiB; --memory sets another limit", result.err)
        self.assertNotIn("internal error", result.err)

    def test_the_systems_own_limit_too(self):
        result = self.plan("--model", "zoo:mlp,hidden=64*20000", "--cluster", "8x8xh100", "--time", "1s", seconds=60 * PATIENCE, memory=GIB // 4)
        self.assertEqual(result.code, 1)
        self.assertIn("plan: out of memory: this takes more than 256 MiB, which is the limit of the system (ulimit)", result.err)

    def test_deep_networks_plan_in_bounded_memory(self):
        result, seconds = self.timed("--model", "zoo:mlp,hidden=64*2000,batch=64", "--cluster", "2x8xh100", "--time", "1s", "--memory", "1GB",
                                     seconds=60 * PATIENCE)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("fits", result.out)
        self.assertLess(seconds, 30 * PATIENCE)

    @only_all
    def test_ten_thousand_layers_plan_or_are_refused_with_the_figure(self):
        result = self.plan("--model", "zoo:mlp,hidden=64*10000,batch=64", "--cluster", "2x8xh100", "--time", "2s", "--memory", "8GB",
                           seconds=120 * PATIENCE)
        self.assertIn(result.code, (0, 1), result.err)
        if result.code: self.assertIn("plan: out of memory: this takes more than 7.5 GiB", result.err)

    def test_memory_is_read(self):
        for wrong in ("0GB", "x", "5", "-1GB", "99999999999TB", "1.5GB"):
            result = self.plan("--model", "zoo:mlp", "--cluster", "1x2xh100", "--memory", wrong)
            self.assertEqual(result.code, 2, wrong)
            self.assertIn(f"--memory is '{wrong}': must be a positive integer and B, MB, GB", result.err)

    def test_searches_honour_the_time_while_they_make_starts(self):
        for search in ("mcmc", "tempering"):
            with self.subTest(search):
                result, seconds = self.timed("--model", "zoo:mlp", "--cluster", "1x4xh100", "--search", search, f"--{search}.random_starts",
                                             "1000000000", "--time", "500ms", seconds=30 * PATIENCE)
                self.assertEqual(result.code, 0, result.err)
                self.assertLess(seconds, 8 * PATIENCE)
                self.assertIn("ended by time budget", result.out)

    def test_ctrl_c_while_starts_are_made(self):
        result, seconds = self.interrupted("--model", "zoo:mlp", "--cluster", "1x4xh100", "--search", "mcmc", "--mcmc.random_starts", "1000000000",
                                           "--time", "1h", after=3 * PATIENCE)
        self.assertEqual(result.code, 130, result.err)
        self.assertLess(seconds, 5 * PATIENCE)

    @only_all
    def test_a_thousand_devices_in_a_second(self):
        result, seconds = self.timed("--model", "zoo:gpt,batch=8192", "--cluster", "128x8xh100", "--replicas", "1", "--time", "1ms", seconds=120 * PATIENCE,
                                     memory=12 * GIB)
        self.assertEqual(result.code, 0, result.err)
        self.assertLess(seconds, 60 * PATIENCE)

    @only_all
    def test_a_bound_on_a_thousand_devices(self):
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        result = self.plan("--model", "zoo:mlp,batch=8192", "--cluster", "128x8xh100", "--replicas", "1", "--time", "1s", "--compare", "none", "--memory", "2GB",
                           seconds=120 * PATIENCE)
        self.assertEqual(result.code, 0, result.err)
        self.assertLess(max(began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss), 2.5 * GIB / 1024)


if __name__ == "__main__":
    unittest.main()
