"""Streams that cannot be written, signals, full disks, two writers: what is lost, and what is left in the folder."""

import fcntl
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import termios
import time

import attack

SMALL = ("--model", "zoo:mlp,batch=64", "--cluster", "1x2xp100", "--evaluations", "50", "--quiet")
LONG = ("--model", "zoo:gpt,layers=4,batch=64", "--cluster", "1x4xv100", "--time", "60s")


class Files(attack.Case):
    def shell(self, redirection, *arguments, seconds=60):
        """plan with arguments, behind it `redirection`, in a shell that answers plan's exit code."""
        script = f'"$PARSEARCH_PLAN" "$@" {redirection}; exit ${{PIPESTATUS[0]}}'
        return subprocess.run(["bash", "-c", script, "bash", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=seconds).returncode

    def assert_whole(self, folder):
        """run.json is there and names all other files as they are."""
        folder = pathlib.Path(self.folder, folder)
        run = json.loads((folder / "run.json").read_text())
        self.assertIn("plan.json", [f["name"] for f in run["files"]])
        for f in run["files"]:
            self.assertEqual(attack.hash_of(folder / f["name"]), f["hash"], f["name"])

    def names(self, folder):
        return sorted(os.listdir(pathlib.Path(self.folder, folder)))

    def test_output_that_cannot_be_written_loses_no_file(self):
        for number, (redirection, code) in enumerate(((">/dev/full", 1), (">&-", 1), ("2>/dev/full", 0), ("2>&-", 0), ("| true", None), ("<&- >&- 2>&-", 1))):
            with self.subTest(redirection):
                out = f"out{number}"
                found = self.shell(redirection, *SMALL[:-1], "--out", out)
                if code is None: self.assertIn(found, (0, 1)) # `true` may end before or behind the last line
                else: self.assertEqual(found, code)
                self.assert_whole(out)
                self.assertFalse([n for n in self.names(out) if n.startswith(".")])

    def test_signals_end_the_search_and_keep_the_plan(self):
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            with self.subTest(name):
                run = subprocess.Popen([os.environ["PARSEARCH_PLAN"], *LONG, "--out", name],
                                       cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) # a test under nohup has it ignored
                time.sleep(1.5)
                run.send_signal(getattr(signal, name))
                run.communicate(timeout=60)
                self.assertEqual(run.returncode, 130)
                self.assert_whole(name)

    def test_a_terminal_that_is_closed_interrupts_and_loses_no_file(self):
        ours, its = os.openpty()

        def take_terminal():
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        run = subprocess.Popen([os.environ["PARSEARCH_PLAN"], *LONG, "--out", "out"], cwd=self.folder, stdin=its, stdout=its,
                               stderr=its, start_new_session=True, preexec_fn=take_terminal)
        os.close(its)
        time.sleep(1.5)
        os.close(ours)
        self.assertEqual(run.wait(timeout=60), 130)
        self.assert_whole("out")

    def test_a_program_that_is_killed_leaves_the_files_of_one_run_or_says_so(self):
        draw = random.Random(18)
        self.plan(*SMALL, "--out", "out")
        for seed in range(12):
            run = subprocess.Popen([os.environ["PARSEARCH_PLAN"], *SMALL, "--seed", str(seed), "--out", "out"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0, 0.15))
            run.kill()
            run.wait()
            for name in self.names("out"):
                if not name.startswith("."): self.assertGreater(pathlib.Path(self.folder, "out", name).stat().st_size, 0, name)
        self.assertEqual(self.plan(*SMALL, "--out", "out").code, 0)
        self.assert_whole("out")

    def test_two_writers_leave_whole_files(self):
        runs = [subprocess.Popen([os.environ["PARSEARCH_PLAN"], *SMALL, "--seed", str(seed), "--out", "out"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE) for seed in range(6)]
        for run in runs: self.assertEqual(run.wait(60), 0, run.communicate()[1])
        for name in self.names("out"):
            if name.endswith(".json"): json.loads(pathlib.Path(self.folder, "out", name).read_text())
        self.assertFalse([n for n in self.names("out") if n.startswith(".")])

    def test_a_file_that_cannot_be_written_leaves_those_of_the_run_before(self):
        self.assertEqual(self.plan(*SMALL, "--out", "out").code, 0)
        limit = 20_000 # some files are larger
        done = subprocess.run([os.environ["PARSEARCH_PLAN"], *SMALL, "--seed", "7", "--out", "out"], cwd=self.folder, capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written", done.stderr)
        self.assertIn("found by", done.stdout)
        self.assert_whole("out")
        self.assertFalse([n for n in self.names("out") if n.startswith(".")])

    def test_what_is_not_of_a_run_is_left(self):
        out = pathlib.Path(self.folder, "out")
        out.mkdir()
        victim = pathlib.Path(self.folder, "victim")
        victim.write_text("mine")
        for name in (".probe", ".plan.json.part", ".report.html.part"): (out / name).symlink_to(victim)
        (out / "strategy.flexflow").write_text("mine")
        done = self.plan(*SMALL[:-1], "--simulation.optimizer", "adam", "--out", "out")  # a plan that FlexFlow cannot say
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("strategy.flexflow is not of this run", done.err)
        self.assertEqual(victim.read_text(), "mine")
        self.assertEqual((out / "strategy.flexflow").read_text(), "mine")
        self.assertTrue((out / ".probe").is_symlink())
        self.assert_whole("out")

    def test_what_an_earlier_run_wrote_and_this_one_does_not_is_removed(self):
        self.assertEqual(self.plan(*SMALL, "--space.pipelines", "false", "--out", "out").code, 0)
        self.assertIn("strategy.flexflow", self.names("out"))
        # As an earlier release would have written it.
        out = pathlib.Path(self.folder, "out")
        (out / "pipeline.json").write_text("{}")
        run = json.loads((out / "run.json").read_text())
        run["files"].append({"name": "pipeline.json", "hash": attack.hash_of(out / "pipeline.json")})
        (out / "run.json").write_text(json.dumps(run))
        self.assertEqual(self.plan(*SMALL, "--simulation.optimizer", "adam", "--out", "out").code, 0)
        self.assertFalse({"strategy.flexflow", "pipeline.json"} & set(self.names("out")))
        self.assert_whole("out")

    def test_what_is_read_is_not_overwritten(self):
        self.assertEqual(self.plan(*SMALL, "--out", "out").code, 0)
        before = attack.hash_of(pathlib.Path(self.folder, "out", "plan.json"))
        done = self.plan(*SMALL[:4], "--import", "out/plan.json", "--out", "out")
        self.assertEqual(done.code, 2)
        self.assertIn("out/plan.json is read and would be overwritten", done.err)
        self.assertEqual(attack.hash_of(pathlib.Path(self.folder, "out", "plan.json")), before)
        self.assertEqual(self.plan(*SMALL[:4], "--import", "out/plan.json", "--out", "again").code, 0)
        self.assertEqual(self.plan("--rerun", "again/run.json", "--out", "third").code, 0)

    def test_a_folder_in_the_place_of_a_file_is_refused_before_the_search(self):
        pathlib.Path(self.folder, "out", "report.html").mkdir(parents=True)
        done = self.plan(*SMALL, "--out", "out")
        self.assertEqual(done.code, 2)
        self.assertIn("report.html is a folder", done.err)
