#!/usr/bin/env python3
"""Rehearses cuda_profiler/on_gpu on a fake device: the same script, with the same steps in the same order.

    check_on_gpu.py <on_gpu> <folder of the programs parsearch-profile and test_cuda>
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT, PACK = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
CASES = ["a matmul", "streaming", "a device: facts, copies, an iteration"]
OWN = ["own: initcheck: streaming", "own: memcheck: streaming", "own: racecheck: streaming"]
CHECKS = sorted([f"checks: {case}" for case in CASES] + OWN)
MEASURED = ["iteration", "links", "eager", "graphed", "samples", "fused", "compiled", "parameters", "zoo", "all"]
STEPS = ["device", *CHECKS, *MEASURED, *sorted(f"launches: memcheck: {case}" for case in CASES)]
# Small networks, and no time for warming up.
FAST = {"NETWORKS": "mlp,batch=64 lenet,batch=64", "ZOO": "ncf,batch=64", "OPTIONS": "--kernel-time 1ms --warm-up 0ms --from-idle 0ms"}


def in_order(parts):
    """The parts, with what runs beside others (checks) by name."""
    alone = [part for part in parts if ": " not in part]
    checks, memchecks = (sorted(part for part in parts if ": " in part and part.startswith("launches: ") == late) for late in (False, True))
    first = alone[:1] == ["device"]
    return alone[:first] + checks + alone[first:] + memchecks


class OnGpu(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = self.folder / "out"
        self.pack = self.folder / "pack"
        shutil.copytree(PACK, self.pack, ignore=lambda folder, names: [n for n in names if n not in ("parsearch-profile", "test_cuda")])
        shutil.copy(SCRIPT.parent / "torch_steps.py", self.pack)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        # It is called as the real one is, and runs the tests.
        self.tool(
            "compute-sanitizer",
            'echo "$@" >>"$SANITIZED"; while [[ $1 == --* ]]; do shift 2; done; exec "$@"',
        )

        # PyTorch on a GPU is not what is rehearsed: whether the script is called, and how.
        self.tool(
            "python3",
            f"""[[ $1 == -c ]] && exit ${{FAKE_TORCH:-0}}
[[ $1 == */torch_steps.py ]] || exec {sys.executable} "$@"
echo "$@" >>"$SANITIZED.torch"
while [[ $1 != --out ]]; do shift; done
echo '{{}}' >"$2"
""",
        )

    def tool(self, name, body):
        path = self.tools / name
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)

    def run_script(self, *arguments, **environment):
        variables = {k: v for k, v in os.environ.items() if k not in ("CLUSTER", "MACHINE", "CUDA_LIBRARIES")} | FAST
        variables |= {"PATH": f"{self.tools}:{os.environ['PATH']}", "SANITIZED": str(self.folder / "sanitized")} | environment
        return subprocess.run([SCRIPT, *map(str, arguments)], env=variables, capture_output=True, text=True, timeout=300, check=False)

    def slice(self, seconds=300, **environment):
        return self.run_script("run", self.pack, self.out, seconds, **environment)

    def another_pack(self):
        with open(self.pack / "test_cuda", "ab") as program:
            program.write(b"\n")

    def state(self):
        lines = [tuple(line.split(" ", 2)) for line in (self.out / "state").read_text().splitlines()]
        return [line for line in lines if line[0] != "begun"]

    def table(self):
        return json.loads((self.out / "profile.json").read_text())

    def test_all_steps_in_their_order(self):
        done = self.slice()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Nothing is left to do", done.stdout)
        self.assertRegex(done.stdout, r"profile.json: [0-9]+ kernels, 0 of them not in the preferred form, 0 that failed")
        self.assertRegex(done.stdout, r"iteration of zoo:lenet,batch=64,type=f32: error [+-]0\.0%, left out 0\.0%")
        state = self.state()
        self.assertEqual(in_order([part for _, _, part in state]), STEPS)
        self.assertEqual({result for result, _, _ in state}, {"passed"})
        table = self.table()
        self.assertEqual({k["device"] for k in table["kernels"]}, {"h100_sxm"})
        self.assertGreater(len(table["kernels"]), 300)
        self.assertEqual([link["kind"] for link in table["links"]], ["host_to_device", "device_to_host", "local"])
        validation = json.loads((self.out / "validation.json").read_text())
        self.assertEqual([m["model"] for m in validation["models"]], [f"zoo:{n},type={t}" for n in FAST["NETWORKS"].split() for t in ("bf16", "f32")])
        fused = json.loads((self.out / "validation_fused.json").read_text())
        self.assertEqual([m["model"] for m in fused["models"]], [m["model"] for m in validation["models"]])
        self.assertLess(fused["models"][0]["kernels"], validation["models"][0]["kernels"])
        self.assertRegex(done.stdout, r"fused iteration of zoo:lenet,batch=64,type=f32: error [+-]0\.0%, left out 0\.0%")
        log = (self.out / "log.txt").read_text()
        self.assertIn("peer copies and collectives are not measured: one device is used", log)
        sanitized = (self.folder / "sanitized").read_text().splitlines()
        self.assertEqual(sorted(line.split()[1] for line in sanitized), ["initcheck"] + 4 * ["memcheck"] + ["racecheck"])
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["log.txt", "profile.json", "state", "torch.json", "validation.json", "validation_fused.json"])
        for line, mode in zip((self.folder / "sanitized.torch").read_text().splitlines(), ("eager", "graphed", "compiled"), strict=True):
            called = line.split()
            self.assertEqual(called[called.index("--networks") + 1 :][:2], FAST["NETWORKS"].split())
            self.assertEqual(called[called.index("--modes") + 1], mode)
            self.assertTrue(called[called.index("--validation") + 1].endswith("validation_fused.json" if mode == "compiled" else "validation.json"))
        # Again: nothing is done twice.
        again = self.slice()
        self.assertEqual(again.returncode, 0)
        self.assertEqual(self.state(), state)
        self.assertEqual(self.table(), table)

    def test_slices_make_what_one_call_makes(self):
        self.assertEqual(self.slice().returncode, 0)
        whole, parts = self.table(), [part for _, _, part in self.state()]
        shutil.rmtree(self.out)
        calls = 0
        while True:
            begin = time.monotonic()
            # The program ends five seconds before its slice.
            done = self.slice(8, FAKE_SLEEP_US="300")
            calls += 1
            self.assertLess(time.monotonic() - begin, 60)
            self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)
            if done.returncode == 0 or calls == 40:
                break
            self.assertIn("More is left to do", done.stdout)
        self.assertEqual(done.returncode, 0)
        self.assertGreater(calls, 1)
        self.assertEqual(in_order([part for _, _, part in self.state()]), in_order(parts))
        of = lambda table: sorted(json.dumps([k["op"], k["pass"], k["dims"], k.get("operands")]) for k in table["kernels"])
        self.assertEqual(of(self.table()), of(whole))

    def test_what_fails_is_recorded_and_done_again_by_another_pack(self):
        for broken in ("check", "crash"):
            with self.subTest(broken):
                shutil.rmtree(self.out, ignore_errors=True)
                done = self.slice(FAKE_BROKEN=broken)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                failed = [part for result, _, part in self.state() if result == "failed"]
                self.assertIn("checks: streaming", failed)
                self.assertIn("own: memcheck: streaming", failed)
                # Each other check is known to pass, and the steps behind are done.
                passed = [part for result, _, part in self.state() if result == "passed"]
                self.assertIn("checks: a device: facts, copies, an iteration", passed)
                self.assertIn("all", passed)
                before = self.state()
                self.assertEqual(self.slice().returncode, 1)
                self.assertEqual(self.state(), before)
                self.another_pack()
                mended = self.slice()
                self.assertEqual(mended.returncode, 0, mended.stdout + mended.stderr)
                again = [part for _, _, part in self.state()[len(before) :]]
                # What failed, and the table.
                wanted = [part for part in STEPS if part in failed or part in MEASURED and part not in ("eager", "graphed", "compiled")]
                self.assertEqual(in_order(again), wanted)

    def test_kernels_that_fail_are_in_the_table_and_are_tried_again_by_another_pack(self):
        done = self.slice(FAKE_REFUSE="softmax")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({f["reason"] for f in self.table()["failures"]}, {"no engine"})
        self.assertRegex(done.stdout, "[0-9]+ failed: no engine")
        before = self.table()
        self.assertEqual(self.slice().returncode, 0)
        self.assertEqual(self.table(), before)
        self.another_pack()
        mended = self.slice()
        self.assertEqual(mended.returncode, 0, mended.stdout + mended.stderr)
        self.assertNotIn("failures", self.table())
        self.assertEqual(len(self.table()["kernels"]), len(before["kernels"]) + len(before["failures"]))

    def test_a_kernel_that_breaks_the_device_ends_no_step(self):
        # LeNet has two such kernels, in the first step that has any.
        done = self.slice(FAKE_BREAK="pooling")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = [part for result, _, part in self.state() if result == "failed"]
        self.assertEqual(failed[:2], ["iteration", "iteration again"])
        table = self.table()
        self.assertEqual({f["reason"] for f in table["failures"]}, {"the device broke down: an illegal address"})
        self.assertGreater(len(table["kernels"]), 300)
        self.assertIn("all", [part for _, _, part in self.state()])

    def test_some_steps_alone(self):
        done = self.slice(STEPS="device links own")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([part for _, _, part in self.state()][:2], ["device", "links"])
        self.assertEqual(sorted(part for _, _, part in self.state())[2:], OWN)

    def test_without_tools_their_steps_are_left_out(self):
        (self.tools / "compute-sanitizer").unlink()
        if shutil.which("compute-sanitizer"):
            self.skipTest("compute-sanitizer is installed")
        done = self.slice(FAKE_TORCH="1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("own: left-out (compute-sanitizer is not found)", done.stdout)
        for step in ("eager", "graphed", "compiled"):
            self.assertIn(f"{step}: left-out (python3 has no PyTorch that sees a GPU)", done.stdout)

    def test_no_gpu_and_no_library(self):
        none = self.slice(FAKE_GPU="none")
        self.assertEqual(none.returncode, 3, none.stdout + none.stderr)
        self.assertIn("GPU 0 was asked for: there are 0", none.stderr)
        self.tool("ldd", 'echo "  libcudnn.so.9 => not found"')
        missing = self.slice(CUDA_LIBRARIES="/nowhere")
        self.assertEqual(missing.returncode, 3)
        self.assertIn("missing libraries: libcudnn.so.9 (looked for", missing.stderr)

    def test_calls_that_are_wrong(self):
        for arguments, said in [
            ((), "on_gpu run PACK OUT"),
            (("run", self.pack), "on_gpu run PACK OUT"),
            (("walk", self.pack, self.out), "on_gpu run PACK OUT"),
            (("run", self.folder / "nothing", self.out), "there is no program"),
            (("run", self.pack, self.out, "0"), "SECONDS is '0': must be a whole number from 1"),
            (("run", self.pack, self.out, "ten"), "SECONDS is 'ten': must be a whole number from 1"),
            (("run", self.pack, self.out), "STEPS has 'walk': must be some of device checks own"),
        ]:
            done = self.run_script(*arguments, **({"STEPS": "device walk"} if "STEPS" in said else {}))
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(said, done.stderr)
        self.assertFalse(self.out.exists())

    def test_list(self):
        done = self.run_script("list", self.pack, FAKE_GPU="none")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([row[0] for row in rows], ["step", "iteration", "samples", "parameters", "zoo", "all"])
        kernels = [int(row[1]) for row in rows[1:]]
        self.assertEqual(kernels, sorted(kernels))
        self.assertLess(kernels[0], kernels[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
