#!/usr/bin/env python3
"""Runs the program plan as its users do: files, reruns, imports, exit codes, messages, interruption.

    check_plan.py <program> [--models <folder of .onnx files>] [--schemas <folder>]
"""

import argparse
import collections
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True

FILES = {"plan.json", "strategy.flexflow", "topology.json", "timeline.json", "graph.dot", "report.html", "run.json"}
# Two layers whose activations can be fused into them.
LAYERS = "zoo:mlp,features=256,hidden=256x256,classes=256,batch=64"


def rule(name, source, target):
    """A rule of Unity's format whose operators are (type, [inputs], {parameters}); the last of both sides are mapped."""
    def operators(side):
        return [{"_t": "Operator", "type": kind, "input": [{"_t": "Tensor", "opId": i, "tsId": 0} for i in inputs],
                 "para": [{"_t": "Parameter", "key": k, "value": v} for k, v in parameters.items()]} for kind, inputs, parameters in side]
    return {"_t": "Rule", "name": name, "srcOp": operators(source), "dstOp": operators(target),
            "mappedOutput": [{"_t": "MapOutput", "srcOpId": len(source) - 1, "srcTsId": 0, "dstOpId": len(target) - 1, "dstTsId": 0}]}


SPLIT = {"PM_PARALLEL_DIM": 1, "PM_PARALLEL_DEGREE": 2}
RULES = {"_t": "RuleCollection", "rule": [
    rule("relu twice", [("OP_RELU", [-1], {})], [("OP_RELU", [-1], {}), ("OP_RELU", [0], {})]),
    rule("sums are products", [("OP_EW_ADD", [-1, -2], {})], [("OP_EW_MUL", [-1, -2], {})]),
    rule("relu of a part", [("OP_PARTITION", [-1], SPLIT), ("OP_RELU", [0], {})], [("OP_RELU", [-1], {}), ("OP_PARTITION", [0], SPLIT)]),
    rule("sums of copies", [("OP_REPLICATE", [-1], {**SPLIT, "PM_PARALLEL_DIM": 0}), ("OP_REDUCE", [0], {**SPLIT, "PM_PARALLEL_DIM": 0})],
         [("OP_RELU", [-1], {})])]}
GPT = "zoo:gpt,layers=2,hidden=64,heads=4,sequence=32,vocabulary=1000,batch=16"


def plan(*arguments, code=0, cwd=None, pipelines=False):
    """stdout and stderr of a run that must end with `code`; without `pipelines` one that searches none."""
    arguments = list(map(str, arguments))
    if not pipelines and "--model" in arguments and "--rerun" not in arguments:
        arguments += ["--space.pipelines", "false"]
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, cwd=cwd)
    if code is not None and done.returncode != code:
        raise AssertionError(f"plan {' '.join(map(str, arguments))}: exit code {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def built_with_onnx():
    with tempfile.NamedTemporaryFile(suffix=".onnx") as empty:
        _, said = plan("--model", empty.name, "--cluster", "1x1xh100", code=2)
    return "built without ONNX" not in said


def row(table, name):
    """The cells of the line of `table` that begins with `name`."""
    lines = [line.strip() for line in table.splitlines() if line.strip().startswith(name + "  ")]
    if len(lines) != 1:
        raise AssertionError(f"{len(lines)} lines begin with '{name}':\n{table}")
    return re.split(r"\s{2,}", lines[0])


def picoseconds(shown):
    number, unit = shown.split()
    return float(number) * {"ps": 1, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}[unit]


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def load(self, folder, name):
        return json.loads((self.path / folder / name).read_text(encoding="utf-8"))

    def operators(self, folder):
        """Those of plan.json, of all stages."""
        return [o for s in self.load(folder, "plan.json")["stages"] for o in s["operators"]]

    def check_folder(self, folder, files=FILES):
        if "rewritten_by" in self.load(folder, "plan.json"):
            files = files | {"operators.json"}
        self.assertEqual({f.name for f in (self.path / folder).iterdir()}, files)
        for name in files:
            self.assertGreater((self.path / folder / name).stat().st_size, 50, name)
        run, made, timeline = (self.load(folder, f"{name}.json") for name in ("run", "plan", "timeline"))
        self.assertEqual((run["format"], run["version"]), ("parsearch.run", 1))
        self.assertEqual((made["format"], made["version"]), ("parsearch.plan", 1))
        self.assertEqual(self.load(folder, "topology.json")["format"], "parsearch.topology")
        found = run["strategies"][-1]
        self.assertEqual(made["predicted_ps"], found["time_ps"])
        ends = [e["ts"] + e["dur"] for e in timeline["traceEvents"] if e["ph"] == "X"]
        self.assertAlmostEqual(max(ends) * 1e6, found["time_ps"], delta=2)
        self.assertTrue((self.path / folder / "graph.dot").read_text().startswith("digraph"))
        return run


class Plans(Folder):
    def test_zoo_model(self):
        out, _ = plan("--model", GPT, "--cluster", "2x4xv100", "--evaluations", 600, "--out", self.path / "a")
        run = self.check_folder("a")
        # What was printed is what was written.
        for s in run["strategies"]:
            cells = row(out, s["strategy"])
            self.assertAlmostEqual(picoseconds(cells[1]) / s["time_ps"], 1, delta=2e-3)
            self.assertAlmostEqual(float(cells[2][:-1]), s["speed_up"], delta=0.0051)
            self.assertIn("yes" if s["fits"] else "NO", cells[-3:]) # the cost with memory may follow
        self.assertEqual(run["result"]["evaluations"], 600)
        self.assertEqual(run["result"]["reason"], "evaluation budget")
        self.assertLessEqual(run["result"]["cost_ps"], min(s["time_ps"] for s in run["strategies"]))
        self.assertGreater(run["lower_bound_ps"], 0)
        self.assertLessEqual(run["lower_bound_ps"], run["result"]["cost_ps"])
        said = re.search(r"no strategy of these operators costs less than (.*) \(([0-9.]+)% less\)", out)
        self.assertAlmostEqual(picoseconds(said[1]) / run["lower_bound_ps"], 1, delta=2e-3)
        self.assertAlmostEqual(float(said[2]), 100 * (1 - run["lower_bound_ps"] / run["result"]["cost_ps"]), delta=0.051)
        self.assertIn("2 x  block{1,2}.attention  ", plan("--model", GPT, "--cluster", "2x4xv100", "--search", "none")[0])
        self.assertIn("2x4xv100: 8 devices on 2 nodes", out)
        self.assertIn("512 tokens per iteration", out)
        operators = {o["name"] for o in self.operators("a")}
        self.assertIn("block2.mlp.1", operators)
        self.assertIn(str(self.path / "a" / "report.html"), out)

    def test_rerun_finds_the_same(self):
        for search in (["--search", "mcmc", "--evaluations", "500"], ["--search", "mcmc", "--time", "300ms"], ["--search", "greedy", "--time", "300ms"],
                       ["--time", "300ms"], ["--search", "tempering", "--time", "300ms"], ["--portfolio.concurrent", "true", "--portfolio.threads", 2, "--evaluations", 700],
                       ["--portfolio.concurrent", "true", "--portfolio.threads", 2, "--time", "300ms"],
                       ["--search", "greedy", "--evaluations", "400", "--greedy.order", "shuffled", "--seed", "18446744073709551615"],
                       ["--search", "none"]):
            with self.subTest(search=search):
                plan("--model", GPT, "--cluster", "1x4xp100", *search, "--simulation.optimizer", "adam", "--space.min_shard", 2, "--quiet", "--out", self.path / "a")
                _, notes = plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b")
                first, second = self.load("a", "run.json"), self.load("b", "run.json")
                for same in ("cost_ps", "trajectory", "evaluations", "start"):
                    self.assertEqual(first["result"][same], second["result"][same], same)
                for name in ("plan.json", "strategy.flexflow", "topology.json", "timeline.json", "graph.dot"):
                    self.assertEqual((self.path / "a" / name).read_bytes(), (self.path / "b" / name).read_bytes(), name)
                self.assertEqual(first["strategies"], second["strategies"])
                self.assertEqual(second["simulation"]["optimizer"], "adam")
                self.assertIn("the rerun found the same", notes)

    def write_measures(self, **changes):
        """A file of FlexNet's with one dense layer of 256 x 256 at 1 to 8 parts of 4096 samples."""
        measures = []
        for degree in (1, 2, 4, 8):
            samples = 4096 // degree
            measures.append({"name": "Dense_256_256", "pc_str": f"2-1-{degree}", "fw_time": 0.5 / degree, "bw_time": 1 / degree,
                             "mem_req": 8 * (samples * 256 * 2 + 256 * 257)})
        (self.path / "measures.json").write_text(json.dumps({"batch_size": 4096, "ngpus": 8, "measurements": measures, **changes}))
        return self.path / "measures.json"

    def test_profile(self):
        model = "zoo:mlp,features=256,hidden=256*3,classes=256,batch=4096"
        asked = ["--model", model, "--cluster", "1x8xv100", "--search", "greedy", "--evaluations", 100]
        profile = self.write_measures()
        out, _ = plan(*asked, "--profile", profile, "--out", self.path / "a")
        run = self.check_folder("a")
        self.assertEqual(run["profile"]["given"], str(profile))
        self.assertAlmostEqual(sum(run["compute"].values()), 1, delta=1e-9)
        self.assertGreater(run["compute"]["exact"], 0.1)
        self.assertIn("8 measured kernels", out)
        self.assertRegex(out, r"(?m)^compute time: [0-9]+% measured, ")
        self.assertIn("compute time", (self.path / "a" / "report.html").read_text())
        without, _ = plan(*asked, "--out", self.path / "b")
        self.assertRegex(without, r"(?m)^compute time: [0-9]+% at rates of published runs, [0-9]+% at rates that no published run tells$")
        self.assertRegex(without, r"(?m)^expected error: not known: ")
        self.assertAlmostEqual(sum(self.load("b", "run.json")["compute"].values()), 1, delta=1e-9)
        self.assertNotIn("profile", self.load("b", "run.json"))
        self.assertNotEqual(run["result"]["cost_ps"], self.load("b", "run.json")["result"]["cost_ps"])
        _, notes = plan("--rerun", self.path / "a" / "run.json")
        self.assertIn("the rerun found the same", notes)
        moved = self.path / "moved.json"
        moved.write_bytes(profile.read_bytes())
        profile.write_text("{}")
        self.assertIn(f"{profile}: format is missing", plan("--rerun", self.path / "a" / "run.json", code=2)[1])
        self.write_measures(ngpus=4)
        self.assertIn("--rerun: profile", plan("--rerun", self.path / "a" / "run.json", code=2)[1])
        plan("--rerun", self.path / "a" / "run.json", "--profile", moved)

    def test_profile_messages(self):
        asked = ["--model", "zoo:mlp", "--cluster", "1x2xv100", "--search", "none"]
        _, said = plan(*asked, "--profile", "abacus", code=2)
        self.assertIn("profile 'abacus': must be a file, or the name of a profile that comes with the library", said)
        (self.path / "x.json").write_text("[]")
        self.assertIn("x.json: the document is an array of 0: must be an object", plan(*asked, "--profile", self.path / "x.json", code=2)[1])
        (self.path / "x.json").write_text("{}")
        self.assertIn("x.json: format is missing", plan(*asked, "--profile", self.path / "x.json", code=2)[1])
        self.assertIn("gpus: unknown member", plan(*asked, "--profile", self.write_measures(gpus=1), code=2)[1])
        other = {"format": "parsearch.profile", "version": 1,
                 "kernels": [{"device": "abacus", "op": "linear", "pass": "forward", "dims": [["s", 1]], "time_ps": 1}]}
        (self.path / "x.json").write_text(json.dumps(other))
        self.assertIn("the profile has 1 kernels on 'abacus'", plan(*asked, "--profile", self.path / "x.json", code=2)[1])

    def test_rerun_that_finds_something_else_says_so(self):
        plan("--model", GPT, "--cluster", "1x4xv100", "--evaluations", 20, "--quiet", "--out", self.path / "a")
        run = self.load("a", "run.json")
        run["result"]["cost_ps"] += 1
        (self.path / "other.json").write_text(json.dumps(run))
        _, notes = plan("--rerun", self.path / "other.json", "--quiet", code=4)
        self.assertIn("the rerun found something else", notes)

    def test_blocks_are_planned_alike(self):
        # One operator at a time, so that blocks differ unless they are made alike.
        asked = ["--cluster", "1x4xp100", "--search", "greedy", "--greedy.coarse", "false", "--evaluations", 3000]
        model = "zoo:gpt,layers=6,hidden=256,heads=8,vocabulary=1000,sequence=64,batch=16"

        def kinds(folder):
            """Of each operator of a block, how many configurations it has in all of them."""
            found = {}
            for o in self.operators(folder):
                if o["name"].startswith("block"):
                    found.setdefault(o["name"].split(".", 1)[1], set()).add(json.dumps({key: value for key, value in o.items() if key != "name"}))
            return {len(s) for s in found.values()}

        plan("--model", model, *asked, "--out", self.path / "a")
        self.assertEqual(kinds("a"), {1})
        _, notes = plan("--model", model, *asked, "--regular", "none", "--out", self.path / "b")
        self.assertNotIn("blocks that repeat", notes)
        self.assertNotEqual(kinds("b"), {1})
        alike, free = (self.load(f, "plan.json")["predicted_ps"] for f in "ab")
        self.assertLessEqual(alike, 1.05 * free)
        manifest = self.load("a", "run.json")
        self.assertEqual(manifest["regular"]["share"], 0.05)
        self.assertGreater(manifest["regular"]["evaluations"], 0)
        self.assertNotIn("regular", self.load("b", "run.json"))
        for folder in "ab":
            _, notes = plan("--rerun", self.path / folder / "run.json", "--out", self.path / (folder + "again"))
            self.assertIn("the rerun found the same", notes)
            self.assertEqual(self.operators(folder), self.operators(folder + "again"))
        # Layers that pay to differ: split by outputs, then by inputs.
        wide = ["--model", "zoo:mlp,batch=64", "--cluster", "1x4xp100", "--evaluations", 2000]
        _, notes = plan(*wide, "--regular", "0", "--out", self.path / "c")
        self.assertRegex(notes, r"blocks that repeat differ: else a plan takes [0-9.]+% longer \(--regular 0\.[0-9]+\)")
        _, notes = plan(*wide, "--regular", "1", "--out", self.path / "d")
        self.assertRegex(notes, r"blocks that repeat are planned alike, which takes [0-9.]+% longer than the best found \(--regular none\)")
        self.assertGreater(self.load("d", "plan.json")["predicted_ps"], self.load("c", "plan.json")["predicted_ps"])
        for bad in ("-1", "nan", "often"):
            _, error = plan(*wide, "--regular", bad, code=2)
            self.assertIn("regular", error)
        rows = [s["strategy"] for s in self.load("d", "run.json")["strategies"]]
        self.assertEqual(rows[-2:], ["found by portfolio", "found by portfolio, blocks alike"])
        # A start in which they differ may be the plan, and is said to be.
        small = ["--model", "zoo:mlp,batch=64,features=64,hidden=64*3,classes=8", "--cluster", "1x2xp100", "--search", "exact", "--time", "5s"]
        out, notes = plan(*small, "--out", self.path / "e")
        self.assertIn("ended by proved optimal", out)
        self.assertRegex(notes, r"the start is taken|blocks that repeat (are planned alike|differ)")
        if "the start is taken" in notes:
            self.assertRegex(self.load("e", "run.json")["strategies"][-1]["strategy"], "^chosen: ")
        _, error = plan("--model", "zoo:dlrm,batch=64", "--fabric", "topoopt", "--servers", "4", "--regular", "0.1", code=2)
        self.assertIn("--regular is given, but fabric topoopt is wired", error)
        _, error = plan(*wide, "--regular", "0.1", "--search", "none", code=2)
        self.assertIn("--regular is given, but nothing is searched", error)

    def test_rerun_starts_where_the_run_did(self):
        model = "zoo:mlp,features=4096,hidden=4096*4,batch=16"
        starts = set()
        for compared in ("none", "all"):
            plan("--model", model, "--cluster", "1x4xv100", "--compare", compared, "--evaluations", 50, "--quiet", "--out", self.path / "a")
            _, notes = plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b")
            self.assertIn("the rerun found the same", notes)
            starts.add(self.load("b", "run.json")["result"]["start"])
        self.assertEqual(len(starts), 2)

    def test_nodes_are_counted(self):
        plan("--model", GPT, "--cluster", "2x1xv100", "--evaluations", 5, "--quiet", "--out", self.path / "a")
        topology = self.path / "a" / "topology.json"
        topology.write_text(topology.read_text().replace('"node": 1', '"node": 4294967295'))
        self.assertIn("2 devices on 2 nodes", plan("--model", GPT, "--cluster", topology, "--evaluations", 5)[0])

    def test_uneven_batch_is_noted(self):
        _, notes = plan("--model", "zoo:mlp,batch=12", "--cluster", "1x8xv100", "--evaluations", 5)
        self.assertIn("the batch is 12, so data parallelism splits it over 6 of 8 devices", notes)

    def test_rings_without_attention_are_noted(self):
        for model, noted in ("zoo:mlp,batch=16", True), (GPT, False):
            _, notes = plan("--model", model, "--cluster", "1x4xp100", "--kernels.ring_attention", "true", "--evaluations", 5)
            self.assertEqual("--kernels.ring_attention changes nothing" in notes, noted, model)

    def test_imports_cost_the_same(self):
        plan("--model", GPT, "--cluster", "1x4xp100", "--search", "greedy", "--space.reduction", "false", "--start", "data_parallel", "--compare", "none",
             "--out", self.path / "a")
        cost = self.load("a", "run.json")["result"]["cost_ps"]
        for name in ("plan.json", "strategy.flexflow"):
            plan("--model", GPT, "--cluster", self.path / "a" / "topology.json", "--import", self.path / "a" / name, "--out", self.path / "b")
            run = self.check_folder("b")
            self.assertEqual(run["result"]["cost_ps"], cost)
            self.assertEqual(run["search"]["name"], "none")
            self.assertTrue(run["start"]["hash"].startswith("fnv1a64:"))
        plan("--rerun", self.path / "b" / "run.json", "--out", self.path / "c")
        self.assertEqual(self.load("c", "run.json")["result"]["cost_ps"], cost)

    def test_what_flexflow_cannot_say(self):
        _, notes = plan("--model", "zoo:mlp,features=4096,hidden=8192x8192,batch=16", "--cluster", "1x4xp100", "--search", "none", "--start", "tensor_parallel_4",
                        "--out", self.path / "a")
        self.assertIn("strategy.flexflow says less than plan.json", notes)

    def test_differences(self):
        asked = ["--model", GPT, "--cluster", "1x4xp100"]
        out, _ = plan(*asked, "--search", "none", "--start", "tensor_parallel_2", "--compare", "none", "--diff", "data_parallel", "--quiet", "--out", self.path / "a")
        lines = out[out.index("differs in"):out.index("\nreport ")].splitlines()[1:]
        self.assertTrue(any(re.search(r"  block\{1,2\}\.mlp\.1 +linear +s2 o2 @0\+2,1 +s4 @0\+1$", line) for line in lines), out)
        self.assertEqual([s["strategy"] for s in self.load("a", "run.json")["strategies"]], ["data parallel", "chosen: tensor parallel 2"])
        # Two files; the plan of a file is that of the same file.
        plan(*asked, "--search", "none", "--start", "data_parallel", "--quiet", "--out", self.path / "b")
        files = [str(self.path / f / "plan.json") for f in "ab"]
        out, _ = plan(*asked, "--import", files[0], "--diff", files[1], "--quiet")
        self.assertEqual([line.split()[-5:] for line in out[out.index("differs in"):].splitlines()[1:]], [line.split()[-5:] for line in lines])
        self.assertEqual(row(out, files[1])[1], row(out, "data parallel")[1])
        self.assertIn(f"The plan is that of {files[0]}.", plan(*asked, "--import", files[0], "--diff", files[0], "--quiet")[0])
        _, error = plan(*asked, "--diff", "nobody", code=2)
        self.assertIn("--diff 'nobody': must be data_parallel, ", error)
        # With micro-batches.
        out, _ = plan(*Pipeline.LARGE, "--space.max_stages", "1", "--diff", "data_parallel", "--quiet", pipelines=True)
        self.assertRegex(out, r"(?m)^ +shared by replicas +optimizer, gradients(, parameters)? +nothing$")

    def explained(self, out):
        """Of each explanation that was printed its title, its rows by configuration, the plan's first, and the lines below."""
        parts = []
        for part in re.split(r"(?m)^why {6}", out)[1:]:
            title, *lines = part.split("\n\n")[0].splitlines()
            heads = 2 if "alike" in title else 1 + ("shard" in lines[0])
            rows = [re.split(r"\s{2,}", line.strip()) for line in lines[heads:] if re.search(r"  (yes|NO)( |$)", line)]
            parts.append((title, {r[0]: r[1:] for r in rows}, [line.strip() for line in lines[heads + len(rows):]]))
        return parts

    def check_change(self, folder, names, configuration, asked, before, difference):
        """The plan of a folder costs so much more with another configuration of these operators."""
        made = self.load(folder, "plan.json")
        for o in (o for s in made["stages"] for o in s["operators"] if o["name"] in names):
            o.update(configuration)
        changed = self.path / "changed.json"
        changed.write_text(json.dumps(made), encoding="utf-8")
        cost = picoseconds(row(plan(*asked, "--import", changed)[0], "changed.json")[1])
        self.assertAlmostEqual((picoseconds(before) + picoseconds(difference.removeprefix("+"))) / cost, 1, delta=2e-3)

    def test_explanations(self):
        asked = ["--model", GPT, "--cluster", "1x4xp100", "--compare", "none", "--quiet"]
        chosen = [*asked, "--search", "none", "--start", "tensor_parallel_2"]
        out, _ = plan(*chosen, "--explain", "block2.mlp.1", "--explain", "logits", "--out", self.path / "a")
        (title, rows, said), (other, _, _) = self.explained(out)
        self.assertEqual(title, "block2.mlp.1, linear, one of 2 alike: s2 o2 @0+2,1")
        self.assertEqual(other, "logits, linear: s2 o2 @0+2,1")
        self.assertEqual(len(rows), 13)
        self.assertEqual((next(iter(rows)), rows["s2 o2 @0+2,1"][:2]), ("s2 o2 @0+2,1", [row(out, "chosen: tensor parallel 2")[1], "the plan"]))
        self.assertRegex(said[0], r"^Of 29 other configurations (none costs|1 costs|\d+ cost) less")
        self.assertEqual(said[-1], "Listed are the cheapest 12 of 14 splits, each on the devices where it costs least.")
        # What is told of a change is what a plan with it costs: of one operator, and of all alike.
        for names, cell in [({"block2.mlp.1"}, 1), ({"block1.mlp.1", "block2.mlp.1"}, 2)]:
            self.check_change("a", names, {"degrees": {"o": 4}, "start": 0, "strides": {"o": 1}}, asked, rows["s2 o2 @0+2,1"][0], rows["o4 @0+1"][cell])
        # A line of the listing.
        out, _ = plan(*chosen, "--explain", "block{1,2}.mlp.{1,2}")
        self.assertEqual([t.split(",")[0] for t, _, _ in self.explained(out)], ["block1.mlp.1", "block1.mlp.2"])
        # In forward alone; on one device.
        out, _ = plan(*chosen, "--simulation.training", "false", "--explain", "loss")
        self.assertNotIn("backward", out)
        out, _ = plan("--model", GPT, "--cluster", "1x1xp100", "--evaluations", 1, "--explain", "logits")
        self.assertIn("\n  It can have no other configuration.\n", out)
        # A rerun explains other operators.
        plan(*asked, "--evaluations", 50, "--out", self.path / "b")
        out, _ = plan("--rerun", self.path / "b" / "run.json", "--explain", "logits")
        self.assertEqual(len(self.explained(out)), 1)
        for wrong, message in [("block1.atention", "--explain 'block1.atention' is none of the 26 operators; the nearest names are block{1,2}.attention, "),
                               ("block{3..9}.attention", "--explain 'block{3..9}.attention' is none of"), ("", "--explain is empty: must be OPERATOR")]:
            out, error = plan(*asked, "--explain", wrong, code=2)
            self.assertIn(message, error)
            self.assertNotIn("strategy or plan", out)

    def test_explanations_in_little_time(self):
        out, notes = plan("--model", GPT, "--cluster", "2x8xp100", "--search", "none", "--compare", "none", "--time", "1ms", "--explain", "logits", "--explain", "loss")
        self.assertLess(len(self.explained(out)), 3)
        for _, _, said in self.explained(out):
            self.assertRegex(said[-1], r"^\d+ of \d+ configurations were priced, the likely ones first\.$")
        self.assertEqual(len(self.explained(out)) + notes.count("left out: the explanation of"), 2)

    def test_explanations_of_a_pipeline(self):
        asked = [*Pipeline.LARGE[:-2], "--compare", "none", "--quiet"]
        out, _ = plan(*asked, "--evaluations", 50, "--space.sharded_optimizer", "false", "--space.max_stages", 2, "--explain", "block3.attention", "--out", self.path / "a", pipelines=True)
        (title, rows, said), = self.explained(out)
        stages = self.load("a", "plan.json")["stages"]
        stage = next(i for i, s in enumerate(stages) if any(o["name"] == "block3.attention" for o in s["operators"]))
        self.assertRegex(title, rf"^block3\.attention, multi_head_attention, one of \d alike, stage {stage}: ")
        self.assertRegex(said[0], r"^Of \d+ other configurations on the devices of its stage ")
        self.assertTrue(all(re.search(r" @[01]", c) for c in rows), rows)
        now = next(iter(rows))
        self.check_change("a", {"block3.attention"}, {"degrees": {"heads": 2}, "start": 0, "strides": {"heads": 1}}, asked, rows[now][0], rows["heads2 @0+1"][1])

    def test_explanations_of_rewritten_operators(self):
        out, notes = plan("--model", LAYERS, "--cluster", "1x4xp100", "--search", "joint", "--evaluations", 50, "--explain", "nobody", "--explain", "loss")
        self.assertEqual(len(self.explained(out)), 1)
        self.assertIn("--explain 'nobody' is none of the ", notes)

    def test_pins(self):
        asked = ["--model", LAYERS, "--cluster", "1x4xp100", "--evaluations", 200]
        pins = ["--pin", "fc{1..2}=o4", "--forbid", "fc3=s4", "--forbid", "fc3=whole"]
        for pipelines in (False, True):
            out, _ = plan(*asked, *pins, "--out", self.path / "a", pipelines=pipelines)
            found = {op["name"]: op.get("degrees", {}) for op in self.operators("a")}
            self.assertEqual((found["fc1"], found["fc2"]), ({"o": 4}, {"o": 4}))
            self.assertNotIn(found["fc3"], ({"s": 4}, {}))
            self.assertRegex(out, r"fc\{1,2\} +linear .* o4 @0")
        _, notes = plan("--rerun", self.path / "a" / "run.json", pipelines=True)
        self.assertIn("the rerun found the same", notes)
        self.assertIn("--pin 'fc{1..2}=o4' is of 2 operators", notes)
        out, _ = plan(*asked, *pins, "--explain", "fc1", "--quiet")
        self.assertIn("It can have no other configuration: --pin and --forbid leave none.", out)
        # A start that breaks a pin is none.
        plan(*asked, "--simulation.optimizer", "adam", "--space.max_stages", 1, "--rewriting", "none", "--out", self.path / "c", pipelines=True)
        for pipelines in (False, True):
            plan(*asked, *pins, "--start", self.path / "c" / "plan.json", "--out", self.path / "d", pipelines=pipelines)
            self.assertEqual([op["degrees"] for op in self.operators("d") if op["name"] in ("fc1", "fc2")], [{"o": 4}, {"o": 4}])

        def refused(*more):
            return plan("--model", LAYERS, "--cluster", "1x4xp100", *more, code=2)[1]

        for wrong, why in (("fc1", "must be OPERATOR=SPLIT"), ("nobody=s2", "'nobody' is none of the "), ("fc1=s65", "s65: the degree must be from 1 to the extent, 64"),
                           ("fc1=z2", "z2 is no dim and degree; "), ("fc1=s2 s2", "dim s is named twice")):
            for option in ("--pin", "--forbid"):
                message = refused(option, wrong)
                self.assertIn(f"{option} '{wrong}': ", message)
                self.assertIn(why, message)
        self.assertIn("pin of 'fc1': s3 @0+0: degrees must divide the extents, unless the space option uneven is true", refused("--pin", "fc1=s3"))
        for wrong in (["--pin", "fc1=s2", "--forbid", "fc1=s2"], ["--pin", "fc1=s8"], ["--pin", "fc1=k2", "--space.reduction", "false"]):
            self.assertRegex(refused(*wrong), r"--pin, --forbid: no split of fc1 is left: of those that --space allows there are \d+, each of at most as many shards as there are devices, 4")
        out, _ = plan(*asked, "--space.copies", 2, "--pin", "fc1=o2 copies2", "--quiet", "--out", self.path / "b")
        self.assertIn({"o": 2, "copies": 2}, [op.get("degrees") for op in self.operators("b")])
        self.assertIn("nothing is searched", refused("--pin", "fc1=s2", "--search", "none"))
        self.assertIn("search joint makes other operators", refused("--forbid", "fc1=s2", "--search", "joint"))

    def test_kernels_and_switches(self):
        asked = ["--model", "zoo:llama,layers=2,hidden=1024,heads=8,kv_heads=8,feed_forward=4096,sequence=1024,vocabulary=1000,batch=16,type=bf16",
                 "--search", "none", "--start", "tensor_parallel_8", "--simulation.optimizer", "adam"]

        def times(*more, cluster="1x8xh100"):
            plan(*asked, "--cluster", cluster, *more, "--quiet", "--out", self.path / "a")
            of = {s["strategy"]: s["time_ps"] for s in self.load("a", "run.json")["strategies"]}
            return of["data parallel"], of["tensor parallel 8"]

        plain = times()
        self.assertNotIn("kernels", self.load("a", "run.json"))
        self.assertEqual(times("--kernels.fusion", "none"), plain)
        for now, before in zip(times("--kernels.fusion", "compiled"), plain):
            self.assertLess(now, before)
        self.assertLess(times("--kernels.f8_products", "true")[0], plain[0])
        self.assertLess(times(cluster="1x8xh100,nvls=true")[1], plain[1]) # all-reduces of activations
        # Each device runs 36 operators forward, and as many backward.
        self.assertGreater(times("--kernels.host_time", "1ms")[0], 72 * 10**9)
        all_of_them = times("--kernels.fusion", "compiled", "--kernels.f8_products", "true", "--kernels.host_time", "2us")
        self.assertEqual(self.load("a", "run.json")["kernels"], {"fusion": "compiled", "f8_products": True, "host_time": "2us", "ring_attention": False})
        plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b")
        self.assertEqual(self.load("b", "run.json")["strategies"][-1]["time_ps"], self.load("a", "run.json")["strategies"][-1]["time_ps"])
        self.assertLess(all_of_them[0], plain[0])
        # Positions over all devices, as heads of keys are not to be split: keys and values come while attention computes, a part of them is kept.
        long = ["--model", asked[1].replace("kv_heads=8", "kv_heads=1").replace("sequence=1024", "sequence=16384").replace("batch=16", "batch=1"),
                "--cluster", "1x8xh100", "--simulation.optimizer", "adam", "--evaluations", 60, "--quiet", "--out", self.path / "a"]
        gathered, passed_on = ((plan(*long, *more, pipelines=True), self.load("a", "plan.json"))[1] for more in ([], ["--kernels.ring_attention", "true"]))
        self.assertEqual((gathered["context_parallel"], passed_on["context_parallel"]), (8, 8))
        self.assertLess(passed_on["predicted_ps"], gathered["predicted_ps"])
        # What the runtime holds beside a tenth.
        held = "--simulation.context_memory"
        self.assertIn("80.0 GiB each, 10% of it kept free, 2.00 GiB of the runtime", plan(*asked, "--cluster", "1x8xh100", held, 2 << 30)[0])
        plan(*asked, "--cluster", "1x8xh100", held, 72 << 30, code=3)

    def test_inference(self):
        step = "zoo:llama,layers=2,hidden=256,heads=8,kv_heads=4,feed_forward=512,vocabulary=1024,type=bf16,sequence=1,cached=255,batch=16"
        out, _ = plan("--model", step, "--cluster", "1x4xh100", "--inference", "--evaluations", 200, "--out", self.path / "a", pipelines=True)
        run = self.load("a", "run.json")
        self.assertIs(run["simulation"]["training"], False)
        self.assertIn("inference=true", run["model"]["given"])
        self.assertIn(" and 4.00 MiB of cache", out) # keys and values of 256 tokens, 4 heads of 32, of 2 layers and 16 samples, 2 bytes each
        _, notes = plan("--rerun", self.path / "a" / "run.json")
        self.assertIn("the rerun found the same", notes)
        # What has no such option runs forward as it is.
        plan("--model", "zoo:resnet50,batch=8", "--cluster", "1x2xv100", "--inference", "--evaluations", 50)

    def test_latency_limit(self):
        model = "zoo:gpt,layers=2,hidden=512,heads=8,vocabulary=2048,type=bf16,sequence=1,cached=1023,batch=8"
        asked = ("--model", model, "--cluster", "1x2xh100", "--latency-limit")
        out, _ = plan(*asked, "200us", "--inference", "--evaluations", 400, "--out", self.path / "a")
        cells = [re.split(r"\s{2,}", line.strip()) for line in out[out.index("batches within"):out.index("\nmodel ")].splitlines()]
        tried = {int(c[0]): c[1:] for c in cells if c[0].isdigit()}
        chosen = [b for b, cells in tried.items() if cells[-1] == "chosen"]
        self.assertEqual(len(chosen), 1, out)
        self.assertLessEqual(picoseconds(tried[chosen[0]][0]), 200e6)
        self.assertTrue(any(cells[-1] == "beyond the limit" and picoseconds(cells[0]) > 200e6 for cells in tried.values()), out)
        self.assertTrue(self.check_folder("a")["model"]["given"].endswith(f"batch={chosen[0]}"))
        self.assertIn("training has none: say --inference", plan(*asked, "1ms", code=2)[1])
        self.assertIn("no batch of", plan(*asked, "1ns", "--inference", "--evaluations", 20, code=2)[1])
        self.assertIn("nothing is searched", plan(*asked, "1ms", "--inference", "--search", "none", code=2)[1])
        self.assertIn("one of them says what to plan", plan(*asked[:4], "--inference", "--simulation.training", "true", code=2)[1])

    def test_replicas(self):
        # One of four replicas takes as long as all, with the same plan on all devices.
        asked = ("--model", GPT.replace("batch=16", "batch=64"), "--cluster", "8x2xh100", "--search", "none", "--start", "tensor_parallel_2")
        shown, _ = plan(*asked, "--out", self.path / "all")
        told, notes = plan(*asked, "--replicas", 4, "--out", self.path / "part", "--export", "pytorch")
        self.assertIn("one of 4 replicas was planned, on 4 of 16 devices", notes)
        for name in ("data parallel", "chosen: tensor parallel 2"):
            self.assertEqual(row(shown, name), row(told, name))
        for name in ("plan.json", "strategy.flexflow", "topology.json", "graph.dot"):
            self.assertEqual((self.path / "all" / name).read_bytes(), (self.path / "part" / name).read_bytes(), name)
        self.check_folder("part", FILES | {"pytorch.json"})
        self.assertEqual(self.load("part", "pytorch.json")["world_size"], 16)
        self.assertEqual(self.load("part", "run.json")["replicas"], 4)
        again, _ = plan("--rerun", self.path / "part" / "run.json", "--out", self.path / "again")
        self.assertEqual(told.splitlines()[:-1], again.splitlines()[:-1]) # the last names the folder
        # More than 256 devices are told by a part; a search too.
        large = ("--model", GPT.replace("batch=16", "batch=512"), "--cluster", "64x8xh100", "--evaluations", 20, "--quiet")
        automatic, every = (plan(*large, *more, "--out", self.path / "search", pipelines=True)[0] for more in ((), ("--replicas", 2)))
        self.assertEqual(self.load("search", "run.json")["replicas"], 2)
        self.assertEqual([l for l in automatic.splitlines() if l.startswith("plan ")], [l for l in every.splitlines() if l.startswith("plan ")])
        refused = lambda *more: plan(*asked[:-1], "data_parallel", *more, code=2)[1]
        self.assertIn("--replicas is 3: 3 replicas on 8 nodes: must divide them", refused("--replicas", 3))
        for bad in (0, "x", -2):
            self.assertIn(f"--replicas is '{bad}': must be auto, or an integer of at least 1", refused("--replicas", bad))
        self.assertIn("all/plan.json is of all devices: must be 1", plan(*asked[:4], "--import", self.path / "all" / "plan.json", "--replicas", 4, code=2)[1])

    def test_balanced(self):
        cluster = self.path / "mixed.json"
        nodes = [{"kind": kind, "node": node, "count": 2} for node, kind in enumerate(("h100_sxm", "a100_sxm"))]
        links = [{"from": {"device": 2 * n + i}, "to": {"switch": f"host {n}"}, "bytes_per_second": 2e11, "latency_ps": 1000000, "duplex": True}
                 for n in range(2) for i in range(2)]
        links.append({"from": {"switch": "host 0"}, "to": {"switch": "host 1"}, "bytes_per_second": 5e10, "latency_ps": 2000000, "duplex": True})
        kinds = {k: {"preset": k} for k in ("h100_sxm", "a100_sxm")}
        cluster.write_text(json.dumps({"format": "parsearch.topology", "version": 1, "kinds": kinds, "devices": nodes,
                                       "switches": ["host 0", "host 1"], "links": links}), encoding="utf-8")
        asked = ("--model", "zoo:mlp,features=4096,hidden=4096,classes=4096,batch=4096", "--cluster", cluster)
        start = ("--search", "none", "--start", "data_parallel")
        equal, balanced = (picoseconds(row(plan(*asked, *start, "--simulation.balanced", b)[0], "data parallel")[1]) for b in ("false", "true"))
        self.assertLess(balanced, 0.9 * equal)
        asked += ("--simulation.balanced", "true")
        self.assertIn("is divided as devices are fast", plan(*asked, *start, "--out", self.path / "b", "--export", "jax", code=1)[1])
        self.assertIn("divide samples evenly", plan(*asked, *start, "--space.max_stages", 2, code=2, pipelines=True)[1])
        plan(*asked, "--evaluations", 100, pipelines=True)
        self.assertIn("option 'balanced' of the simulation is true", plan(*asked, "--evaluations", 20, "--search", "joint", code=2)[1])

    def test_compare_and_quiet(self):
        out, _ = plan("--model", GPT, "--cluster", "1x4xp100", "--evaluations", 50, "--compare", "tensor_parallel_2,one_weird_trick", "--quiet")
        self.assertEqual([line.split("  ")[1] for line in out.splitlines() if line.endswith("yes")],
                         ["data parallel", "tensor parallel 2", "one weird trick", "found by portfolio"])
        self.assertNotIn("block", out)

    def test_a_graph_as_json(self):
        if not SCHEMAS:
            self.skipTest("no --schemas")
        page = (SCHEMAS.parent / "formats.md").read_text(encoding="utf-8")
        graph = next(block for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if '"parsearch.graph"' in block)
        file = self.path / "graph.json"
        file.write_text(graph, encoding="utf-8")
        asked = ("--cluster", "1x2xp100", "--evaluations", 20)
        out, _ = plan("--model", file, *asked, "--out", self.path / "made")
        self.assertIn("fc1", out)
        self.assertEqual(self.load("made", "plan.json")["model"]["operators"], 2)
        self.assertTrue(self.load("made", "run.json")["model"]["hash"].startswith("fnv1a64:"))
        self.assertIn("has no option 'batch'", plan("--model", f"{file},batch=4", *asked, code=2)[1])
        file.write_text(graph.replace('"of": "x"', '"of": "y"'), encoding="utf-8")
        self.assertIn('operators[1].inputs[0].of is "y": must be the name of an operator', plan("--model", file, *asked, code=2)[1])

    def test_schema_knows_every_member(self):
        if not SCHEMAS:
            self.skipTest("no --schemas")
        asked = ["--model", "zoo:mlp,features=256,hidden=256", "--cluster", "1x2xp100", "--evaluations", 20, "--quiet"]
        rules = self.path / "rules.json"
        rules.write_text(json.dumps(RULES))
        plan("--model", LAYERS, "--cluster", "1x2xp100", "--search", "joint", "--rules", rules, "--profile", self.write_measures(), "--simulation.optimizer", "adam",
             "--kernels.host_time", "1us", "--quiet", "--out", self.path / "a", pipelines=True)
        plan(*asked, "--out", self.path / "b")
        schema = json.loads((SCHEMAS / "run.schema.json").read_text(encoding="utf-8"))

        left_out = {"run": {"pin", "forbid", "regular", "replicas", "failures", "runtime", "rewiring"}, "run.rewriting": {"first"}}

        def check(value, rule, place):
            rule = schema["$defs"][rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else rule
            if isinstance(value, dict) and "properties" in rule:
                self.assertEqual(set(value) | left_out.get(place, set()), set(rule["properties"]), place)
                for name, member in value.items():
                    check(member, rule["properties"][name], f"{place}.{name}")
            if isinstance(value, list):
                for i, element in enumerate(value):
                    check(element, rule["prefixItems"][i] if "prefixItems" in rule else rule["items"], f"{place}[{i}]")

        check(self.load("a", "run.json"), schema, "run")
        plan("--model", LAYERS, "--cluster", "1x2xp100", "--evaluations", 300, "--rewriting", 0, "--quiet", "--out", self.path / "e", pipelines=True)
        left_out = {}
        check(self.load("e", "run.json")["rewriting"], schema["properties"]["rewriting"], "run.rewriting")
        fabric = ("--fabric", "topoopt", "--servers", 4, "--degree", 2, "--reconfiguration", "0s")
        plan("--model", "zoo:mlp,features=256,hidden=256", *fabric, "--evaluations", 20, "--quiet", "--out", self.path / "f")
        check(self.load("f", "run.json")["rewiring"], schema["properties"]["rewiring"], "run.rewiring")
        self.assertEqual(set(self.load("b", "run.json")), set(schema["required"]) | {"lower_bound_ps", "compute", "regular"})
        plan(*asked, "--search", "none", "--out", self.path / "c")
        self.assertEqual(set(self.load("c", "run.json")), set(schema["required"]) | {"compute"})
        plan(*asked, "--pin", "fc1=whole", "--forbid", "fc2=s2", "--out", self.path / "d")
        pinned = self.load("d", "run.json")
        self.assertEqual(set(pinned), set(schema["required"]) | {"lower_bound_ps", "compute", "regular", "pin", "forbid"})
        self.assertEqual((pinned["pin"], pinned["forbid"]), (["fc1=whole"], ["fc2=s2"]))


def data_of(page):
    """What a report was given to draw."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)[1])


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def protobuf(data):
    """{number of field: [values]} of a message of protocol buffers: numbers, and bytes."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        elif key & 7 != 0:
            raise ValueError(f"a field of wire type {key & 7}")
        fields.setdefault(key >> 3, []).append(value)
    if at != len(data):
        raise ValueError("a message ends in the middle of a field")
    return fields


def chakra_nodes(path):
    """The nodes of a trace, by the numbers that fields have in et_def.proto, attributes by name."""
    data, at, messages = path.read_bytes(), 0, []
    while at < len(data):
        size, at = varint(data, at)
        messages.append(protobuf(data[at:at + size]))
        at += size
    nodes = []
    for m in messages[1:]:
        attributes = {}
        for a in map(protobuf, m.get(10, [])):
            (field,) = set(a) - {1}
            attributes[a[1][0].decode()] = a[field][0]
        before, at, packed = [], 0, b"".join(m.get(5, []))
        while at < len(packed):
            number, at = varint(packed, at)
            before.append(number)
        nodes.append({"id": m[1][0], "name": m[2][0].decode(), "type": m[3][0], "before": before, "micros": m[7][0], **attributes})
    return messages[0], nodes


class Exports(Folder):
    ASKED = ("--model", GPT, "--cluster", "1x4xv100", "--search", "none", "--quiet")

    def test_files(self):
        every = {"jax": "jax.json", "pytorch": "pytorch.json", "megatron": "megatron.flags", "torchtitan": "torchtitan.flags", "deepspeed": "ds.json"}
        exports = [a for name, file in every.items() for a in ("--export", f"{name}={file}" if name == "deepspeed" else name)]
        plan(*self.ASKED, "--start", "data_parallel", *exports, "--out", self.path / "a")
        run = self.check_folder("a", FILES | set(every.values()))
        self.assertLess(set(every.values()), {f["name"] for f in run["files"]})
        jax = self.load("a", "jax.json")
        self.assertEqual([(a["name"], a["size"]) for a in jax["stages"][0]["mesh"]], [("data", 4)])
        self.assertEqual({o["name"] for o in jax["operators"]}, {o["name"] for o in self.operators("a")})
        # What is predicted is what the run tells.
        moved = {"activation": 0, "gradient": 0, "partial_sum": 0, "weight_gradient": 0}
        for m in jax["predicted"]["moves"]:
            self.assertEqual(m["kind"], "all_reduce")
            moved[m["traffic"]] += 2 * (m["devices"] - 1) * m["bytes"] * m["times"]
        found = run["strategies"][-1]
        self.assertEqual(moved, {kind: found[f"{kind}_bytes"] for kind in moved})
        self.assertEqual(self.load("a", "ds.json")["train_batch_size"], 16)
        self.assertIn("--global-batch-size 16\n", (self.path / "a" / "megatron.flags").read_text())
        # A run without exports removes them; a rerun may write them again.
        plan(*self.ASKED, "--start", "data_parallel", "--out", self.path / "a")
        self.check_folder("a")
        plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b", "--export", "jax", "--quiet")
        self.assertEqual(self.load("b", "jax.json"), jax)

    def test_what_a_runtime_cannot_say(self):
        out, err = plan(*self.ASKED, "--start", "tensor_parallel_2", "--export", "deepspeed", "--export", "megatron", "--out", self.path / "a", code=1)
        self.assertEqual(err, "plan: deepspeed.json is not written: DeepSpeed takes no such plan: tensor parallelism is 2: its configuration says replicas "
                              "alone, must be 1\n")
        self.assertIn("chosen: tensor parallel 2", out)
        self.check_folder("a", FILES | {"megatron.flags"})

    def test_what_a_runtime_can_say(self):
        """--for finds other plans where the best one cannot be said, and never faster ones."""
        asked = [*Pipeline.LARGE, "--rewriting", "none", "--space.offload", "false", "--quiet"]
        plan(*asked, "--out", self.path / "a", pipelines=True)
        free = self.load("a", "run.json")["pipelines"]["cost_ps"]
        some_refused = False
        for runtime, file in (("megatron", "megatron.flags"), ("deepspeed", "deepspeed.json"), ("jax", "jax.json")):
            out, notes = plan(*(a for a in asked if a != "--quiet"), "--for", runtime, "--out", self.path / runtime, pipelines=True)
            self.assertTrue((self.path / runtime / file).is_file(), notes)
            run = self.load(runtime, "run.json")
            self.assertEqual(run["runtime"], runtime)
            self.assertGreaterEqual(run["pipelines"]["cost_ps"], free)
            # Not behind what needs no other orders than the runtime has, nor behind the strategies compared.
            plan(*asked, "--space.zero_bubble", "false", "--for", runtime, "--out", self.path / "d", pipelines=True)
            self.assertLessEqual(run["pipelines"]["cost_ps"], 1.02 * self.load("d", "run.json")["pipelines"]["cost_ps"])
            self.assertNotIn("found by", out)
            if said := re.search(rf"{runtime} can not say (\d+) of the (\d+) plans tried; of the first: ", notes):
                some_refused = True
                self.assertLessEqual(int(said[2]), run["pipelines"]["evaluations"])
                self.assertLess(int(said[1]), int(said[2]))
            # The plan as it is can be exported, and is found again.
            plan(*Pipeline.LARGE[:-2], "--import", self.path / runtime / "plan.json", "--quiet", "--export", runtime, "--out", self.path / "b", pipelines=True)
            self.assertEqual((self.path / "b" / file).read_text(), (self.path / runtime / file).read_text())
            out, notes = plan("--rerun", self.path / runtime / "run.json", "--out", self.path / "c")
            self.assertIn("the rerun found the same", notes)
        self.assertTrue(some_refused)
        # Replicas alone.
        self.assertEqual([s["tensor_parallel"] for s in self.load("deepspeed", "plan.json")["stages"]], [1])

    def test_chakra(self):
        """Traces of a plan with stages, of one split by samples and features, of sharded parameters: what they send is what the run tells."""
        COMPUTES, SENDS, RECEIVES, COLLECTIVE = 4, 5, 6, 7
        ring = {0: 2, 1: 1, 2: 1, 5: 1, 7: 1}  # times that n - 1 of n devices send all of it: all-reduce, reduce, all-gather, broadcast, reduce-scatter
        # Adam of a network that does not fit without: stages or shared states.
        large = ["--model", "zoo:mlp,features=8192,hidden=8192*15,classes=8192,batch=64", "--cluster", "2x4xv100", "--simulation.optimizer", "adam",
                 "--evaluations", "40"]
        for arguments, pipelines in (([*self.ASKED, "--start", "tensor_parallel_2"], False), ([*large, "--quiet"], True),
                                     ([*large, "--space.max_stages", "1", "--quiet"], True)):
            plan(*arguments, "--export", "chakra", "--out", self.path / "a", pipelines=pipelines)
            run, groups = self.load("a", "run.json"), self.load("a", "chakra.groups.json")
            traces = {}
            for path in (self.path / "a").glob("chakra.*.et"):
                head, traces[int(path.suffixes[0][1:])] = chakra_nodes(path)
                self.assertEqual(head, {1: [b"0.0.4"]})
            self.assertEqual(set(traces), set(range(len(traces))))
            sent, received, rounds, moved, messages = {}, {}, {}, 0, 0
            for device, nodes in traces.items():
                known = set()
                for n in nodes:
                    self.assertLessEqual(set(n["before"]), known, n)
                    self.assertNotIn(n["id"], known)
                    known.add(n["id"])
                    self.assertLessEqual(abs(n["micros"] * 1000000 - n["duration_ps"]), 500000)
                    if n["type"] in (SENDS, RECEIVES):
                        mine = sent if n["type"] == SENDS else received
                        self.assertEqual(n["comm_src" if n["type"] == SENDS else "comm_dst"], device)
                        self.assertNotIn(n["comm_tag"], mine)
                        mine[n["comm_tag"]] = (n["comm_src"], n["comm_dst"], n["comm_size"])
                    elif n["type"] == COLLECTIVE:
                        self.assertIn(device, groups[n["pg_name"].decode()])
                        rounds.setdefault((n["id"], n["comm_type"], n["comm_size"], n["pg_name"]), []).append(device)
                    else:
                        self.assertEqual(n["type"], COMPUTES)
            self.assertEqual(sent, received)
            moved = sum(size for _, _, size in sent.values())
            for (_, kind, size, group), devices in rounds.items():
                self.assertEqual(sorted(devices), groups[group.decode()])
                moved += (ring[kind] if kind != 6 else 1 / len(devices)) * (len(devices) - 1) * size  # 6: all-to-all
            found = run["strategies"][-1]
            told = sum(found[f"{kind}_bytes"] for kind in ("activation", "gradient", "partial_sum", "weight_gradient"))
            self.assertAlmostEqual(moved / told, 1, delta=1e-3)

    def test_refusals(self):
        for arguments, said in ((["--export", "jax"], "--export jax is given without --out"),
                                (["--export", "mxnet", "--out", "a"], "--export is 'mxnet': must be one of jax, "),
                                (["--export", "jax=a/b", "--out", "a"], "--export jax=a/b: the file is 'a/b': must be a name in the folder"),
                                (["--export", "jax=plan.json", "--out", "a"], "the file is 'plan.json': another file of the plan has this name"),
                                (["--export", "jax=x", "--export", "megatron=x", "--out", "a"], "another file of the plan has this name")):
            _, err = plan(*self.ASKED, *arguments, code=2, cwd=self.path)
            self.assertIn(said, err)
            self.assertEqual(list(self.path.iterdir()), [])
        searched = self.ASKED[:4]
        for arguments, said in ((["--for", "chakra"], "--for is 'chakra': must be one of jax, "),
                                (["--for", "jax", "--search", "none"], "--for jax is given, but --search none evaluates one strategy"),
                                (["--for", "jax", "--import", "plan.json"], "--for jax is given, but --import evaluates one plan"),
                                (["--for", "jax", "--search", "joint"], "--for jax is given, but search joint makes other operators"),
                                (["--for", "jax", "--space.pipelines", "false"], "but plans with micro-batches and stages are left out"),
                                (["--for", "jax", "--rewriting", "0.05"], "but --rewriting makes other operators"),
                                (["--for", "vllm"], "--for vllm is given, but the runtime serves"),
                                (["--for", "megatron", "--inference"], "--for megatron is given, but the runtime trains")):
            _, err = plan(*searched, *arguments, code=2, cwd=self.path, pipelines=True)
            self.assertIn(said, err)
            self.assertEqual(list(self.path.iterdir()), [])
        _, err = plan("--model", GPT + ",type=f16", *searched[2:], "--for", "torchtitan", "--time", "1s", code=2, cwd=self.path, pipelines=True)
        self.assertIn("torchtitan can say none of the ", err)


class Fabrics(Folder):
    """Servers on a network, in the place of a cluster."""
    SERVERS = ["--servers", 8, "--gpus-per-server", 2, "--degree", 2, "--device", "v100"]
    FABRICS = {"ideal_switch": 8, "fat_tree": 24, "oversubscribed": 12, "random_regular": 8, "torus": 8, "circulant": 8, "topoopt": 8}

    def check(self, folder, out, fabric, links):
        """The files of a plan on a fabric; answers its manifest and the network that the report draws."""
        run = self.check_folder(folder)
        self.assertTrue(run["cluster"]["given"].startswith(f"fabric:{fabric},servers=8,gpus_per_server=2,degree=2,"), run["cluster"])
        self.assertEqual(run["cluster"]["hash"], "")
        network = data_of(self.path / folder / "report.html")["network"]
        self.assertEqual((network["servers"], len(network["links"])), (8, links))
        for by_direction in ("messages", "collectives", "utilisation"):
            self.assertEqual(len(network[by_direction]), 2 * links)
        self.assertAlmostEqual(sum(network["messages"]) + sum(network["collectives"]), network["carried"], delta=4 * links)
        self.assertLessEqual(max(network["utilisation"]), 1)
        line = next(line for line in out.splitlines() if line.startswith("network  "))
        self.assertIn(f"{network['pairHops'][0]:.2f} hops between servers, at most {network['pairHops'][1]}; bandwidth tax {network['tax']:.2f}; busiest link ", line)
        self.assertTrue(line.endswith(f"; {network['price']:.0f} $"), line)
        return run, network

    def test_every_fabric(self):
        for fabric, links in self.FABRICS.items():
            with self.subTest(fabric=fabric):
                out, _ = plan("--model", GPT, "--fabric", fabric, *self.SERVERS, "--interface", "25Gbps", "--evaluations", 60, "--quiet", "--out", self.path / "a")
                run, network = self.check("a", out, fabric, links)
                self.assertIn("16 devices on 8 nodes, v100_sxm", out)
                rate = 25e9 / 8 * (2 if network["switches"] else 1)
                self.assertEqual({rate for a, _, rate, _ in network["links"] if a < 8}, {rate})
                _, notes = plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b")
                self.assertIn("the rerun found the same", notes)
                for name in FILES - {"run.json", "report.html"}:
                    self.assertEqual((self.path / "a" / name).read_bytes(), (self.path / "b" / name).read_bytes(), name)
                # The topology is the fabric's: the plan costs the same there.
                plan("--model", GPT, "--cluster", self.path / "a" / "topology.json", "--import", self.path / "a" / "plan.json", "--quiet", "--out", self.path / "c")
                self.assertEqual(self.load("c", "run.json")["result"]["cost_ps"], run["result"]["cost_ps"])
                self.assertIsNone(data_of(self.path / "c" / "report.html")["network"])

    def test_as_a_cluster(self):
        asked = ["--model", GPT, "--search", "none", "--quiet"]
        plan(*asked, "--fabric", "torus", "--servers", 6, "--extents", "2x3", "--routing", "k_shortest", "--paths", 2, "--out", self.path / "a")
        given = self.load("a", "run.json")["cluster"]["given"]
        self.assertEqual(given, "fabric:torus,servers=6,routing=k_shortest,paths=2,extents=2x3")
        plan(*asked, "--cluster", given, "--out", self.path / "b")
        self.assertEqual((self.path / "a" / "report.html").read_bytes(), (self.path / "b" / "report.html").read_bytes())

    def test_interfaces_without_links(self):
        out, _ = plan("--model", GPT, "--fabric", "torus", "--servers", 8, "--extents", "2x4", "--degree", 6, "--search", "none", "--quiet", "--out", self.path / "a")
        self.assertIn("network  torus 2 x 4: 1.71 hops between servers, at most 3; 3 of 6 interfaces used; bandwidth tax ", out)

    def test_task_graphs_of_flexnet(self):
        asked = ["--model", GPT, "--search", "none", "--quiet", "--out", self.path / "a"]
        if "built without FlatBuffers" in plan(*asked, "--cluster", "1x2xp100", "--export", "flexnet", code=None)[1]:
            self.skipTest("plan was built without FlatBuffers")
        sizes = []
        for where in (["--cluster", "4x2xv100"], ["--fabric", "torus", *self.SERVERS], ["--fabric", "fat_tree", *self.SERVERS, "--routing", "k_shortest"]):
            plan(*asked, *where, "--export", "flexnet=iteration.fbuf")
            self.check_folder("a", FILES | {"iteration.fbuf"})
            written = (self.path / "a" / "iteration.fbuf").read_bytes()
            sizes.append(len(written))
            plan("--rerun", self.path / "a" / "run.json", "--export", "flexnet", "--out", self.path / "b")
            self.assertEqual((self.path / "b" / "taskgraph.fbuf").read_bytes(), written)
        self.assertEqual(len(set(sizes)), 3)
        _, error = plan(*asked, "--cluster", "1x2xp100", "--export", "flexflow", code=2)
        self.assertIn("--export is 'flexflow': must be one of jax, megatron, torchtitan, pytorch, deepspeed, vllm, chakra, flexnet", error)
        _, error = plan(*Pipeline.LARGE, "--export", "flexnet", "--quiet", "--out", self.path / "a", code=1, pipelines=True)
        self.assertIn("taskgraph.fbuf is not written: FlexNet knows no micro-batches, stages or shared states: --space.pipelines false plans without", error)
        self.assertFalse((self.path / "a" / "taskgraph.fbuf").exists())

    def test_measures_for_flexnet(self):
        """Times of every operator with a name, at every split; read again they are those that were planned with."""
        model = "zoo:mlp,features=256,hidden=256*3,classes=256,batch=4096"
        asked = ["--model", model, "--cluster", "1x8xv100", "--search", "none"]
        file = self.path / "measures.json"
        _, notes = plan(*asked, "--measures", file)
        self.assertIn("measures.json: ", notes)
        self.assertEqual([f.name for f in self.path.iterdir()], ["measures.json"])
        written = json.loads(file.read_text())
        self.assertEqual((written["batch_size"], written["ngpus"]), (4096, 8))
        said = {(m["name"], m["pc_str"]): m for m in written["measurements"]}
        self.assertEqual(len(said), len(written["measurements"]))
        for degree in (1, 2, 4, 8):
            self.assertEqual(said["Dense_256_256", f"2-1-{degree}"]["mem_req"], 8 * (4096 // degree * 512 + 256 * 257))
            self.assertIn(("Dense_256_256", f"2-{degree}-1"), said)
        # A plan with these times costs the same, but for what they do not say.
        plan(*asked, "--quiet", "--out", self.path / "a", "--measures", self.path / "a" / "m.json")
        self.check_folder("a", FILES | {"m.json"})
        self.assertEqual((self.path / "a" / "m.json").read_bytes(), file.read_bytes())
        self.assertNotIn("m.json", {f["name"] for f in self.load("a", "run.json")["files"]})
        plan(*asked, "--quiet", "--out", self.path / "b", "--profile", file)
        first, second = self.load("a", "run.json"), self.load("b", "run.json")
        self.assertGreater(second["compute"]["exact"], 0.4)
        self.assertAlmostEqual(second["result"]["cost_ps"] / first["result"]["cost_ps"], 1, delta=0.1)
        plan("--rerun", self.path / "a" / "run.json", "--measures", self.path / "again.json")
        self.assertEqual((self.path / "again.json").read_bytes(), file.read_bytes())
        # Convolutions of one name, and operators without.
        _, notes = plan("--model", "zoo:vgg,batch=64", "--cluster", "1x2xv100", "--search", "none", "--measures", file)
        self.assertRegex(notes, r'measures.json: Conv2D_3_3_64 has the times of operator "[^"]+": operator "[^"]+" has this name, too, and other times')
        for given, said in ((["--measures", ""], "--measures is empty: must be FILE"),
                            (["--measures", self.path], "is a folder: must be a file"),
                            (["--measures", self.path / "a" / "run.json" / "m.json"], "cannot be made"),
                            (["--out", self.path / "a", "--measures", self.path / "a" / "plan.json"], "another file of the plan has this name"),
                            (["--profile", file, "--measures", file], "is read and would be overwritten"),
                            (["--inference", "--measures", file], "is given, but inference is planned: FlexNet measures forward and backward")):
            with self.subTest(given=given):
                self.assertIn(said, plan(*asked, *given, code=2)[1])

    def test_failures(self):
        asked = ["--model", GPT, *self.SERVERS, "--interface", "25Gbps", "--failures", "--quiet", "--out", self.path / "a"]
        for fabric, pipelines in (("torus", False), ("random_regular", True), ("topoopt", False)):
            with self.subTest(fabric=fabric):
                out, _ = plan(*asked, "--fabric", fabric, "--evaluations", 60, pipelines=pipelines)
                said = re.search(r"(?m)^failures any one of (\d+) links loses a wire: (\S+) times as long in the mean, (\S+) at worst, server \d+ - server \d+$", out)
                self.assertIsNotNone(said, out)
                failures = self.load("a", "run.json")["failures"]
                self.assertEqual((failures["links"], failures["tried"], failures["cut_off"]), (int(said[1]), int(said[1]), 0))
                self.assertAlmostEqual(failures["mean"], float(said[2]), delta=6e-4)
                self.assertAlmostEqual(failures["worst"], float(said[3]), delta=6e-4)
                self.assertGreaterEqual(failures["worst"], failures["mean"])
                self.assertIn(" at worst, " + failures["where"] + "\n", out)
        # One interface each: all are cut off.
        out, _ = plan("--model", GPT, "--fabric", "ideal_switch", "--servers", 8, "--degree", 1, "--search", "none", "--failures", "--out", self.path / "a")
        self.assertIn("\nfailures any one of 8 links loses a wire: all cut servers off\n", out)
        self.assertEqual(self.load("a", "run.json")["failures"], {"links": 8, "tried": 8, "cut_off": 8, "mean": "none", "worst": "none", "where": ""})
        plan(*asked[:2], "--fabric", "circulant", *self.SERVERS, "--routing", "coin_change", "--search", "none", "--out", self.path / "b")
        self.assertNotIn("failures", self.load("b", "run.json"))
        _, error = plan("--model", GPT, "--cluster", "1x2xp100", "--failures", code=2)
        self.assertIn("--failures is given, but cluster 1x2xp100 is no fabric, whose wires may fail: say --fabric", error)
        _, notes = plan("--rerun", self.path / "b" / "run.json", "--failures", "--out", self.path / "c")
        self.assertIn("shortest paths", notes)
        self.assertIn("failures", self.load("c", "run.json"))

    def test_reconfiguration(self):
        asked = ["--model", GPT, *self.SERVERS, "--evaluations", 60, "--quiet", "--out", self.path / "a"]
        for fabric in ("topoopt", "ideal_switch"):
            with self.subTest(fabric=fabric):
                times = {}
                for delay in ("0s", "1s"):
                    out, _ = plan(*asked, "--fabric", fabric, "--reconfiguration", delay)
                    said = re.search(r"(?m)^rewiring (none|\d+) within the iteration, of (\S+) each: (?:(\S+) [mu]s, )?the best of \d+ wirings takes (\S+) [mu]s(; after .*)?$", out)
                    self.assertIsNotNone(said, out)
                    self.assertEqual(said[2], delay)
                    self.assertEqual(said[1] == "none", said[3] is None)
                    times[delay] = float(said[3] or said[4])
                    self.assertLessEqual(times[delay], float(said[4]))
                    rewiring = self.load("a", "run.json")["rewiring"]
                    self.assertEqual(rewiring["rewirings"], 0 if said[1] == "none" else int(said[1]))
                    self.assertLessEqual(rewiring["cost_ps"], rewiring["one_wiring_ps"])
                    for phase in rewiring["phases"]:  # all interfaces of every server at most
                        used = collections.Counter()
                        for a, b, wires in phase["links"]:
                            used.update({a: wires, b: wires})
                        self.assertLessEqual(max(used.values()), 2)
                self.assertEqual(said[1], "none")  # a second
                self.assertLessEqual(times["0s"], times["1s"])
        for given, said in ((["--cluster", "1x2xp100", "--reconfiguration", "1us"], "--reconfiguration is given, but cluster 1x2xp100 is no fabric, which is wired: say --fabric"),
                            (["--fabric", "torus", "--reconfiguration", "-1us"], "reconfiguration")):
            with self.subTest(given=given):
                self.assertIn(said, plan("--model", GPT, *given, code=2)[1])

    def test_a_fabric_without_interfaces(self):
        for fabric in ("topoopt", "ideal_switch"):
            said = plan("--model", GPT, "--fabric", fabric, "--degree", 0, code=2)[1]
            self.assertIn(f"fabric {fabric}: degree is 0: must be at least 1", said)

    def test_rates_without_a_price(self):
        out, _ = plan("--model", GPT, "--fabric", "ideal_switch", "--servers", 4, "--interface", "400Gbps", "--search", "none", "--quiet", "--out", self.path / "a")
        self.assertNotIn("$", out)
        self.assertIsNone(data_of(self.path / "a" / "report.html")["network"]["price"])

    def test_rounds(self):
        asked = ["--model", GPT, "--fabric", "topoopt", *self.SERVERS, "--interface", "10Gbps"]
        out, _ = plan(*asked, "--evaluations", 600, "--rounds", 2, "--compare", "all", "--out", self.path / "a")
        run = self.load("a", "run.json")
        rounds = re.findall(r"(?m)^  (wired for data parallelism|ideal switch|random, degree 2|fat tree, k = \d+|wired for what was found|the same|the best of these) +(\d+)  .*?(the plan)?$", out)
        self.assertEqual([r[:2] for r in rounds[:2]], [("ideal switch", "1"), ("wired for data parallelism", "1")])
        self.assertTrue(all(int(number) <= (3 if name == "the best of these" else 2) for name, number, _ in rounds))
        self.assertNotIn("the best of these", [name for name, _, _ in rounds[:-1]])
        self.assertEqual([r[2] for r in rounds].count("the plan"), 1)
        self.assertIn(f"portfolio in {len(rounds)} rounds: {run['result']['evaluations']} evaluations in ", out)
        self.assertLessEqual(run["result"]["evaluations"], 700)
        self.assertLessEqual(run["result"]["cost_ps"], min(s["time_ps"] for s in run["strategies"] if s["fits"]))
        shown = data_of(self.path / "a" / "report.html")["network"]["rounds"]
        self.assertEqual([(name, str(number), "the plan" if chosen else "") for name, number, _, _, _, chosen in shown], rounds)
        self.assertEqual([after for _, _, _, after, _, chosen in shown if chosen], [run["result"]["cost_ps"]])
        # Each of two interfaces of a server has a link at most, or one is joined with a switch.
        network = data_of(self.path / "a" / "report.html")["network"]
        ends = [v for a, b, *_ in network["links"] for v in (a, b) if v < 8]
        self.assertLessEqual(max(ends.count(v) for v in ends), 1 if "fat tree" in network["name"] else 2)
        plan(*asked, "--time", "200ms", "--quiet", "--out", self.path / "t")
        said = plan("--rerun", self.path / "t" / "run.json", code=2)[1]
        self.assertIn("--rerun: fabric topoopt was wired in rounds that a clock or a signal ended", said)

    def test_joint_and_pipeline(self):
        out, _ = plan("--model", LAYERS, "--fabric", "circulant", *self.SERVERS, "--search", "joint", "--time", "none", "--quiet", "--out", self.path / "a", pipelines=True)
        self.assertIn("network  circulant, steps 1: ", out)
        self.assertEqual(len(data_of(self.path / "a" / "report.html")["network"]["links"]), 8)


class Joint(Folder):
    """Operators and strategy together."""
    FILES = FILES - {"strategy.flexflow"}

    def check(self, folder, out, notes):
        """The files of a plan of rewritten operators; answers its manifest."""
        run = self.check_folder(folder, self.FILES)
        applied = run["rewriting"]["applied"]
        self.assertGreater(len(applied), 0)
        self.assertIn("strategy.flexflow is not written: rules have changed the operators", notes)
        before, after = run["strategies"][-2:]
        self.assertEqual([before["strategy"], after["strategy"]], ["found without rules", "found by joint"])
        self.assertEqual(run["rewriting"]["plain_cost_ps"], before["time_ps"])
        self.assertLessEqual(after["time_ps"], before["time_ps"])
        if run["result"]["reason"] == "exhausted":
            self.assertLessEqual(run["lower_bound_ps"], after["time_ps"])
        self.assertIn("Rules applied:\n  " + applied[0], out)
        # Every file is of the same operators, which are not the model's.
        self.assertEqual(self.load(folder, "plan.json")["rewritten_by"], applied)
        names = {o["name"] for o in self.operators(folder)}
        self.assertEqual(len(names), len(self.operators(folder)))
        dot = (self.path / folder / "graph.dot").read_text()
        timeline = (self.path / folder / "timeline.json").read_text()
        for name in names:
            self.assertIn(json.dumps(name, ensure_ascii=False)[1:-1], dot)
        data = data_of(self.path / folder / "report.html")
        self.assertEqual(data["rewriting"]["applied"], applied)
        self.assertEqual(len(data["operators"]), run["rewriting"]["operators"])
        self.assertEqual(len(data["rewriting"]["operators"]), run["rewriting"]["plain_operators"])
        self.assertEqual({o["name"] for o in data["operators"] if o["class"] >= 0}, names)
        self.assertNotEqual({o["name"] for o in data["rewriting"]["operators"] if o["class"] >= 0}, names)
        self.assertTrue(any(name in timeline for name in names - {o["name"] for o in data["rewriting"]["operators"]}))
        return run

    def check_rerun(self, folder):
        _, notes = plan("--rerun", self.path / folder / "run.json", "--out", self.path / "again")
        self.assertIn("the rerun found the same", notes)
        for name in self.FILES - {"run.json", "report.html"}:
            self.assertEqual((self.path / folder / name).read_bytes(), (self.path / "again" / name).read_bytes(), name)
        first, second = self.load(folder, "run.json"), self.load("again", "run.json")
        for same in ("strategies", "rewriting"):
            self.assertEqual(first[same], second[same])
        self.assertEqual(first["result"]["evaluations"], second["result"]["evaluations"])

    def test_zoo_model(self):
        out, notes = plan("--model", LAYERS, "--cluster", "1x4xp100", "--search", "joint", "--out", self.path / "a")
        run = self.check("a", out, notes)
        # What was not changed has the name that it had.
        self.assertEqual({o["name"] for o in self.operators("a")}, {"fc1+relu", "fc2+relu", "fc3", "loss"})
        self.assertEqual(run["search"]["name"], "joint")
        self.assertLess(run["rewriting"]["operators"], run["rewriting"]["plain_operators"])
        self.check_rerun("a")
        # A plan is read with the operators that it is of, and without these not at all.
        _, said = plan("--model", LAYERS, "--cluster", "1x4xp100", "--import", self.path / "a" / "plan.json")
        self.assertIn("operators.json are planned", said)
        (self.path / "a" / "operators.json").unlink()
        _, said = plan("--model", LAYERS, "--cluster", "1x4xp100", "--import", self.path / "a" / "plan.json", code=2)
        self.assertIn("the operators are those that", said)
        # A manifest of other rules is another result.
        run["rewriting"]["applied"] = run["rewriting"]["applied"][1:]
        (self.path / "other.json").write_text(json.dumps(run))
        self.assertIn("the rerun found", plan("--rerun", self.path / "other.json", "--quiet", code=4)[1])

    def test_budgets_and_refinement(self):
        for asked in (["--evaluations", 7], ["--time", "300ms"], ["--time", "400ms", "--joint.refinement", 1000000], ["--joint.refinement", 300, "--time", "none"]):
            with self.subTest(asked=asked):
                plan("--model", "zoo:inception_v3,batch=64", "--cluster", "1x2xp100", "--search", "joint", "--joint.candidates", 8, *asked, "--quiet", "--out", self.path / "a")
                run = self.load("a", "run.json")
                if "--evaluations" in asked:
                    self.assertLessEqual(run["result"]["evaluations"], 7)
                _, notes = plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "again")
                self.assertIn("the rerun found the same", notes)
                self.assertEqual((self.path / "a" / "plan.json").read_bytes(), (self.path / "again" / "plan.json").read_bytes())
                self.assertEqual(run["strategies"], self.load("again", "run.json")["strategies"])

    def test_nothing_to_rewrite(self):
        # One segment and a budget that ends before anything else is priced: the model's own operators, whose strategy can be imported.
        _, notes = plan("--model", LAYERS, "--cluster", "1x2xp100", "--search", "joint", "--evaluations", 1, "--out", self.path / "a")
        self.assertIn("no other operators than the model's were found to be faster", notes)
        run = self.check_folder("a")
        self.assertEqual(run["rewriting"]["applied"], [])
        self.assertNotIn("rewritten_by", self.load("a", "plan.json"))
        plan("--model", LAYERS, "--cluster", "1x2xp100", "--import", self.path / "a" / "plan.json", "--out", self.path / "b")
        self.assertEqual(self.load("b", "run.json")["result"]["cost_ps"], run["result"]["cost_ps"])

    def test_rules_of_a_file(self):
        rules = self.path / "rules.json"
        rules.write_text(json.dumps(RULES))
        out, notes = plan("--model", LAYERS, "--cluster", "1x2xp100", "--search", "joint", "--rules", rules, "--out", self.path / "a")
        self.assertIn("rules.json: 4 rules, 3 in terms of parallel tensors, 2 of these without splits, 1 of these refuted; 1 of the other 1 match the model", out)
        run = self.check("a", out, notes)
        self.assertEqual(run["rules"]["given"], str(rules))
        self.check_rerun("a")
        rules.write_text(json.dumps({**RULES, "rule": RULES["rule"][:1]}))
        self.assertIn("--rerun: rules", plan("--rerun", self.path / "a" / "run.json", code=2)[1])
        rules.write_text("{}")
        self.assertIn("rules.json", plan("--model", LAYERS, "--cluster", "1x2xp100", "--search", "joint", "--rules", rules, code=2)[1])

    def test_onnx_model(self):
        if not MODELS or not built_with_onnx():
            self.skipTest("no --models, or the program was built without ONNX")
        out, notes = plan("--model", MODELS / "gpt2.onnx", "--cluster", "1x8xh100", "--search", "joint", "--time", "none", "--out", self.path / "a")
        self.check("a", out, notes)
        self.check_rerun("a")


class Pipeline(Folder):
    """Stages and micro-batches of the operators planned."""
    # Does not fit without stages or a sharded optimizer.
    LARGE = ["--model", "zoo:gpt,layers=8,hidden=4096,heads=32,sequence=256,vocabulary=5000,batch=16", "--cluster", "4x1xp100", "--simulation.optimizer", "adam",
             "--evaluations", 50]

    FILES = FILES - {"strategy.flexflow"}

    def check(self, folder, out):
        """The files of a plan with a pipeline, and what was printed of it; answers plan.json."""
        run = self.check_folder(folder, self.FILES)
        pipeline, trace = self.load(folder, "plan.json"), self.load(folder, "timeline.json")
        said = re.search(r'(?m)^plan     (\S+ \S+) an iteration, (.*); devices idle ([\d.]+)%; fullest device \d+: (\S+ \S+) of (\S+ \S+), (fits|does NOT fit)$', out)
        self.assertIsNotNone(said, out)
        time_ps = pipeline["predicted_ps"]
        self.assertAlmostEqual(picoseconds(said[1]) / time_ps, 1, delta=2e-3)
        # It is the last line of the table, and costs less than what was found without it.
        cells = row(out, said[2])
        self.assertEqual(cells[1], said[1])
        self.assertIn("yes" if said[6] == "fits" else "NO", cells[-3:])
        self.assertLess(run["pipelines"]["cost_ps"], run["result"]["cost_ps"])
        self.assertGreaterEqual(run["pipelines"]["cost_ps"], time_ps)
        bound = re.search(r"no plan of (?:these|the rewritten) operators costs less than (\S+ \S+) \(", out)
        self.assertAlmostEqual(picoseconds(bound[1]) / run["lower_bound_ps"], 1, delta=2e-3)
        self.assertLessEqual(run["lower_bound_ps"], time_ps)
        self.assertIn(f"search   pipelines: {run['pipelines']['evaluations']} simulated in ", out)
        # Each operator once, as in the report, in the stages that were printed.
        stages, micro_batches = pipeline["stages"], pipeline["micro_batches"]
        data = data_of(self.path / folder / "report.html")
        self.assertEqual(sorted(o["name"] for o in self.operators(folder)), sorted(o["name"] for o in data["operators"] if o["class"] >= 0))
        self.assertEqual((data["makespan"], data["strategies"][data["found"]]["time"], len(data["plan"])), (time_ps, time_ps, 1 + len(stages)))
        self.assertIn(f"\n  {len(stages)} stage{'s' if len(stages) > 1 else ''}, {micro_batches} micro-batch{'es' if micro_batches > 1 else ''}", out)
        self.assertEqual("sharded optimizer" in out[out.index("\nplan  "):], pipeline["sharded_optimizer"])
        for i, s in enumerate(stages):
            line = re.search(rf"(?m)^  stage {i}: .*, {len(s['operators'])} operators? on \d+ devices? from \d+(, tensor parallel (\d+))?(, computes again in \d+ segments?)?(, offloads (\d+ of )?\d+ segments?)?$", out)
            self.assertIsNotNone(line, out)
            self.assertEqual(line[2] and int(line[2]), s.get("tensor_parallel"))
            self.assertEqual(line[3] is not None, s.get("recompute", False))
            self.assertEqual(line[4] is not None, any(o.get("offloaded") for o in s["operators"]))
        tasks = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertAlmostEqual(max(e["ts"] + e["dur"] for e in tasks) * 1e6, time_ps, delta=2)
        self.assertEqual({e["args"]["micro_batch"] for e in tasks if e["cat"] in ("forward", "backward")}, set(range(micro_batches)))
        self.assertTrue(all("micro_batch" not in e["args"] for e in tasks if e["cat"] == "update"))
        return pipeline

    def test_zero_bubble(self):
        out, _ = plan(*self.LARGE, "--space.sharded_gradients", "false", "--space.sharded_parameters", "false", "--out", self.path / "a", pipelines=True)
        pipeline = self.check("a", out)
        self.assertRegex(pipeline["order"], "^zb-h[12]$")
        self.assertIn(pipeline["order"], out)
        names = {e["name"] for e in self.load("a", "timeline.json")["traceEvents"] if e["ph"] == "X"}
        self.assertTrue(any(" backward of weights" in name for name in names))
        again, _ = plan(*self.LARGE, "--import", self.path / "a" / "plan.json", "--out", self.path / "b", pipelines=True)
        self.assertEqual(self.load("b", "plan.json")["predicted_ps"], pipeline["predicted_ps"], again)
        plan(*self.LARGE, "--space.zero_bubble", "false", "--out", self.path / "c", pipelines=True)
        whole = self.load("c", "plan.json")
        self.assertNotIn("zb", whole["order"])
        self.assertGreaterEqual(whole["predicted_ps"], pipeline["predicted_ps"])

    def test_sharded_parameters(self):
        out, _ = plan(*self.LARGE, "--space.sharded_gradients", "false", "--space.max_stages", "1", "--out", self.path / "a", pipelines=True)
        pipeline = self.check("a", out)
        self.assertTrue(pipeline["sharded_parameters"])
        self.assertEqual({type(o["block"]) for s in pipeline["stages"] for o in s["operators"]}, {int})
        self.assertIn(", fully sharded", out)
        again, _ = plan(*self.LARGE, "--import", self.path / "a" / "plan.json", "--out", self.path / "b", pipelines=True)
        self.assertEqual(self.load("b", "plan.json")["predicted_ps"], pipeline["predicted_ps"], again)

    def test_pipeline_of_several_stages(self):
        out, notes = plan(*self.LARGE, "--space.sharded_parameters", "false", "--space.sharded_gradients", "false", "--out", self.path / "a",
                          pipelines=True)
        pipeline = self.check("a", out)
        self.assertGreater(pipeline["interleaved"], 1)
        self.assertIn(f", interleaved {pipeline['interleaved']}, ", out)
        self.assertIn("the first plan that fits takes ", notes)
        # Beside it the best of each family of textbook plans.
        run = self.load("a", "run.json")
        names = [s["strategy"] for s in run["strategies"]]
        for family in ("data 4, ", "pipeline "):
            self.assertTrue(any(n.startswith(family) for n in names) or f"\n  {family}" in out, names)
        # What it is not allowed, and what is printed quietly.
        out, _ = plan(*self.LARGE, "--space.max_stages", 2, "--space.max_micro_batches", 4, "--space.recomputation", "false",
                      "--simulation.memory_kept_free", 0, "--space.sharded_optimizer", "false", "--quiet", "--out", self.path / "b", pipelines=True)
        pipeline = self.check("b", out)
        self.assertLessEqual(len(pipeline["stages"]), 2)
        self.assertLessEqual(pipeline["micro_batches"], 4)
        self.assertFalse(pipeline["sharded_optimizer"] or any(s.get("recompute") for s in pipeline["stages"]))

    def test_rerun(self):
        for budget in (["--evaluations", 50], ["--time", "4s"]):
            with self.subTest(budget=budget):
                plan(*self.LARGE[:-2], *budget, "--out", self.path / "a", pipelines=True)
                second, notes = plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b")
                self.assertIn("the rerun found the same", notes)
                self.check("b", second)
                for name in self.FILES - {"run.json", "report.html"}:
                    self.assertEqual((self.path / "a" / name).read_bytes(), (self.path / "b" / name).read_bytes(), name)
        # The clock may end the estimates, too.
        for time in ("100ms", "300ms", "900ms"):
            with self.subTest(time=time):
                plan(*self.LARGE[:-2], "--time", time, "--quiet", "--out", self.path / "a", pipelines=True)
                _, notes = plan("--rerun", self.path / "a" / "run.json", "--out", self.path / "b")
                self.assertIn("the rerun found the same", notes)
                self.assertEqual(*((self.path / folder / "plan.json").read_bytes() for folder in "ab"))
        # Without a pipeline no earlier one is left.
        plan(*self.LARGE, "--quiet", "--out", self.path / "b", code=3)
        self.check_folder("b")

    def test_what_fits(self):
        # Experts do not fit, nor does anything without a sharded optimizer on two devices.
        asked = [*self.LARGE[:3], "2x1xp100", *self.LARGE[4:]]
        plan(*asked, "--quiet", code=3)
        out, _ = plan(*asked, "--space.max_stages", 1, "--space.max_micro_batches", 1, "--space.sharded_optimizer", "false",
                      "--space.recomputation", "false", "--quiet", code=3, pipelines=True)
        self.assertNotIn(", fits\n", out)
        out, _ = plan(*asked, pipelines=True)
        self.assertIn(", fits\n", out)

    def test_rewritten_operators(self):
        out, notes = plan("--model", LAYERS, "--cluster", "1x4xp100", "--search", "joint", "--simulation.optimizer", "adam", "--out", self.path / "a", pipelines=True)
        pipeline = self.check("a", out)
        self.assertEqual(pipeline["rewritten_by"], self.load("a", "run.json")["rewriting"]["applied"])
        self.assertIn("fc1+relu", {o["name"] for s in pipeline["stages"] for o in s["operators"]})
        self.assertEqual(data_of(self.path / "a" / "report.html")["rewriting"]["applied"], pipeline["rewritten_by"])

    def test_rewriting(self):
        asked = ["--model", LAYERS, "--cluster", "1x4xp100", "--simulation.optimizer", "adam", "--evaluations", 300]
        out, _ = plan(*asked, "--rewriting", "none", "--out", self.path / "own", pipelines=True)
        own = self.load("own", "run.json")
        self.assertNotIn("rewriting", own)
        # Other operators are chosen where the model's take longer than is asked, and everything is of them.
        out, _ = plan(*asked, "--out", self.path / "a", pipelines=True)
        made, run = self.load("a", "plan.json"), self.load("a", "run.json")
        self.assertEqual(run["rewriting"]["plain_cost_ps"], own["pipelines"]["cost_ps"])
        gain = run["rewriting"]["plain_cost_ps"] / made["predicted_ps"] - 1
        self.assertGreater(gain, 0.05)
        self.assertEqual(run["rewriting"]["first"]["share"], 0.05)
        self.assertEqual(made["rewritten_by"], run["rewriting"]["applied"])
        self.assertIn("fc1+relu", {o["name"] for s in made["stages"] for o in s["operators"]})
        self.assertRegex(out, r"(?m)^plan .* rewritten operators")
        self.assertIn("4 operators in the place of the model's 6", out)
        self.assertRegex(out, r"(?m)^search   other operators: \d+ graphs priced, \d+ pipelines simulated in ")
        data = data_of(self.path / "a" / "report.html")
        self.assertEqual(data["rewriting"]["applied"], made["rewritten_by"])
        self.assertEqual(data["strategies"][data["rewriting"]["before"]]["cost"], run["rewriting"]["plain_cost_ps"])
        # Where experts know the model's operators alone the search begins with others; a time-ended run is repeated, too.
        for budget in (["--evaluations", 200], ["--time", "2s"]):
            plan("--model", "zoo:ncf", "--cluster", "2x4xv100", *budget, "--rewriting", 0, "--out", self.path / "ncf", pipelines=True)
            if "--evaluations" in budget:
                self.assertIn("first", self.load("ncf", "run.json")["rewriting"])
            _, notes = plan("--rerun", self.path / "ncf" / "run.json")
            self.assertIn("the rerun found the same", notes)
        # Of one of several replicas.
        asked_replicas = ["--model", GPT, "--cluster", "4x1xp100", "--replicas", 2, "--evaluations", 100, "--rewriting", 0]
        plan(*asked_replicas, "--out", self.path / "replicas", pipelines=True)
        self.assertIn("first", self.load("replicas", "run.json")["rewriting"])
        _, notes = plan("--rerun", self.path / "replicas" / "run.json")
        self.assertIn("the rerun found the same", notes)
        # Else a note says by how much.
        _, notes = plan(*asked, "--rewriting", gain + 0.01, "--out", self.path / "b", pipelines=True)
        self.assertIn("% longer than one of other operators that compute the same (", notes)
        self.assertEqual(self.load("b", "plan.json")["predicted_ps"], self.load("own", "plan.json")["predicted_ps"])
        for folder in ("a", "b"):
            _, notes = plan("--rerun", self.path / folder / "run.json", "--out", self.path / "again")
            self.assertIn("the rerun found the same", notes)
            self.assertEqual(self.load("again", "plan.json"), self.load(folder, "plan.json"))
        # The operators are a model as others are.
        self.assertTrue((self.path / "a" / "operators.json").exists())
        self.assertFalse((self.path / "b" / "operators.json").exists())
        _, notes = plan("--model", self.path / "a" / "operators.json", *asked[2:-2], "--import", self.path / "a" / "plan.json", "--out", self.path / "c", "--export", "jax")
        self.assertEqual(self.load("c", "plan.json")["predicted_ps"], made["predicted_ps"])
        self.assertNotIn("operators.json are planned", notes)
        # Where a plan is read they are taken in the place of the model's.
        _, notes = plan(*asked[:-2], "--import", self.path / "a" / "plan.json", "--out", self.path / "d")
        self.assertIn("operators.json are planned", notes)
        self.assertEqual(self.load("d", "plan.json"), made)
        _, error = plan("--model", LAYERS.replace("batch=64", "batch=128"), *asked[2:-2], "--import", self.path / "a" / "plan.json", code=2)
        self.assertIn("the operators are those that", error) # of another model
        _, notes = plan("--rerun", self.path / "d" / "run.json")
        self.assertIn("the rerun found the same", notes)
        # Plans of different operators are held against each other, either way.
        for one, two in (("a", "own"), ("own", "a")):
            out, _ = plan(*asked[:-2], "--import", self.path / one / "plan.json", "--diff", self.path / two / "plan.json")
            time = self.load(two, "plan.json")["predicted_ps"]
            self.assertAlmostEqual(picoseconds(row(out, str(self.path / two / "plan.json"))[1]) / time, 1, delta=2e-3)
            self.assertRegex(out, r"(?m)^ .* fc1\+relu ")
        out, _ = plan(*asked, "--diff", self.path / "own" / "plan.json", pipelines=True)
        self.assertRegex(out, r"(?m)^plan .* rewritten operators")
        plan(*asked, "--start", self.path / "d" / "plan.json", "--out", self.path / "e", pipelines=True)
        self.assertLessEqual(self.load("e", "plan.json")["predicted_ps"], made["predicted_ps"])
        (self.path / "a" / "operators.json").unlink()
        _, error = plan(*asked[:-2], "--import", self.path / "a" / "plan.json", code=2)
        self.assertIn("operators.json", error)
        # Where the model's are asked for by name they stay, and a note says so.
        for more in (["--pin", "fc1=s4"], ["--explain", "fc1"], ["--out", self.path / "f", "--export", "jax"]):
            _, notes = plan(*asked, *more, pipelines=True)
            self.assertIn("operators stay as they are", notes)
        for more in (["--pin", "fc1=s4"], ["--explain", "fc1"], ["--search", "joint"], ["--search", "none"], ["--kernels.fusion", "compiled"], ["--space.pipelines", "false"]):
            _, error = plan(*asked[:-2], *more, "--rewriting", 0.1, code=2, pipelines=True)
            self.assertIn("--rewriting is given, but ", error)
        _, error = plan(*asked, "--rewriting", "-1", code=2, pipelines=True)
        self.assertIn("--rewriting is '-1': must be none, or a share such as 0.05, at least 0", error)

    def test_import(self):
        plan(*self.LARGE, "--quiet", "--out", self.path / "a", pipelines=True)
        file = self.path / "a" / "plan.json"
        found = self.load("a", "plan.json")
        out, notes = plan(*self.LARGE[:-2], "--import", file, "--out", self.path / "b")
        self.assertEqual(row(out, "plan.json")[1], re.search(r"(?m)^plan     (\S+ \S+) an iteration, plan.json;", out)[1])
        self.assertEqual({**self.load("b", "plan.json"), "model": 0}, {**found, "model": 0})
        self.assertNotIn("says that it is for", notes)
        _, notes = plan("--rerun", self.path / "b" / "run.json", "--out", self.path / "c")
        self.assertIn("the rerun found the same", notes)
        # A search that begins there is no worse, however short.
        plan(*self.LARGE[:-2], "--evaluations", 1, "--start", file, "--out", self.path / "d", pipelines=True)
        self.assertLessEqual(self.load("d", "plan.json")["predicted_ps"], found["predicted_ps"])
        _, error = plan("--model", GPT, "--cluster", "4x1xp100", "--import", file, code=2)
        self.assertIn("plan.json: ", error)
        _, error = plan(*self.LARGE[:-2], "--import", file, "--simulation.transfers", "fair_sharing", code=2)
        self.assertIn("is a pipeline, and --simulation.transfers is fair_sharing", error)

    def test_budget(self):
        out, _ = plan("--model", GPT, "--cluster", "1x2xp100", "--evaluations", 1, pipelines=True)
        self.assertIn("pipelines: 1 simulated", out)

    def test_other_transfers_are_left_out(self):
        out, notes = plan("--model", GPT, "--cluster", "1x2xp100", "--evaluations", 1, "--simulation.transfers", "fair_sharing", pipelines=True)
        self.assertIn("left out: pipelines: pipeline: option 'transfers' of the simulation is fair_sharing: pipelines are simulated with streaming", notes)
        self.assertNotIn("pipelines: ", out)

    def test_interrupted(self):
        # Long enough to be interrupted in; some pipeline has been found by then.
        running = subprocess.Popen([PROGRAM, "--model", "zoo:gpt,layers=48,hidden=8192,heads=64,batch=64,type=bf16", "--cluster", "4x8xh100",
                                    "--space.sharded_parameters", "false", "--time", "2min", "--compare", "none", "--simulation.optimizer", "adam"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(10)
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        out, error = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, error)
        self.assertRegex(out, r"(?m)^search   pipelines: \d+ simulated in .*, ended by stop requested$")

    def test_onnx_model(self):
        if not MODELS or not built_with_onnx():
            self.skipTest("no --models, or the program was built without ONNX")
        out, _ = plan("--model", f"{MODELS / 'gpt2.onnx'},batch=16", "--cluster", "4x1xp100", "--evaluations", 100, "--out", self.path / "a", pipelines=True)
        self.check("a", out)


class Refusals(Folder):
    def said(self, *arguments, code=2):
        out, error = plan(*arguments, code=code, pipelines=True)
        self.assertEqual(out, "")
        self.assertNotIn("terminate", error)
        self.assertTrue(error.startswith("plan: "), error)
        return error

    def test_bad_input(self):
        c, m = ["--cluster", "1x2xp100"], ["--model", GPT]
        for arguments, expected in [
            ([], "--model is missing"),
            (m, "--cluster is missing"),
            (["--model", "zoo:gtp", *c], "model 'gtp' is not in the zoo: must be one of alexnet, "),
            (["--model", "zoo:gpt,layer=3", *c], "option 'layer' is not known: must be one of batch, type, layers"),
            (["--model", "zoo:gpt,heads=5", *c], "must be a multiple of heads"),
            (["--model", "gpt", *c], "a model of the zoo is named zoo:gpt"),
            (["--model", "no/such.onnx", *c], "model 'no/such.onnx': there is no such file"),
            ([*m, "--cluster", "1x2xb300"], "'b300' is not a known device"),
            ([*m, "--cluster", "nowhere"], "is not NODESxGPUSxDEVICE such as 4x8xh100"),
            ([*m, *c, "--search", "anneal"], "search 'anneal' is not known: must be one of portfolio, mcmc, greedy, dominator_dp, exact, exhaustive, random, tempering, joint"),
            ([*m, *c, "--time", "10"], "option 'time' is '10': must be a time in ns, us, ms, s, min or h"),
            ([*m, *c, "--evaluations", "0"], "option 'evaluations' is 0: must be at least 1"),
            ([*m, *c, "--seed", "-1"], "option 'seed' is '-1': must be an integer from 0"),
            ([*m, *c, "--mcmc.temperature", "hot"], "option 'temperature' is 'hot': must be a finite number"),
            ([*m, *c, "--search", "mcmc", "--mcmc.patience", "2"], "option 'patience' is 2: must be between 0 and 1"),
            ([*m, *c, "--search", "joint", "--start", "data_parallel"], "--start data_parallel is given, but search joint begins with"),
            ([*m, *c, "--search", "joint", "--joint.alpha", "0.5"], "option 'alpha' is 0.5: must be from 1"),
            ([*m, *c, "--search", "joint", "--joint.candidates", "0"], "option candidates is 0: must be at least 1"),
            ([*m, *c, "--joint.beam", "5"], "--joint.beam is given, but the search is portfolio"),
            ([*m, *c, "--rules", "x"], "--rules is given, but the search is portfolio: say --search joint"),
            ([*m, *c, "--search", "joint", "--rules", "nowhere"], "rules 'nowhere': cannot be opened"),
            ([*m, *c, "--greedy.candidates", "5"], "--greedy.candidates is given, but the search is portfolio"),
            ([*m, *c, "--simulation.optimizer", "lion"], "must be one of sgd, momentum, adam"),
            ([*m, *c, "--space.min_shard", "0"], "min_shard is 0: must be at least 1"),
            ([*m, *c, "--start", "nowhere"], "must be cheapest, data_parallel, "),
            ([*m, *c, "--import", "nowhere"], "there is no such file"),
            ([*m, *c, "--import", "x", "--search", "mcmc"], "--search mcmc is given beside --import"),
            ([*m, *c, "--compare", "best"], "expert 'best' is not known: must be one of data_parallel"),
            ([*m, *c, "--compare", "tensor_parallel_8"], "must have as many"),
            ([*m, *c, "--frobnicate"], "--frobnicate"),
            ([*m, *c, "--rerun", "nowhere"], "cannot be opened"),
            (["--rerun", "nowhere", "--seed", "3"], "--seed is given beside --rerun"),
            ([*m, *c, "--space.max_stages", "2", "--space.pipelines", "false"], "--space.max_stages is given, and --space.pipelines is false"),
            (["--rerun", "nowhere", "--space.max_stages", "2"], "--space.max_stages is given beside --rerun"),
            ([*m, *c, "--space.max_stages", "0"], "partition: option 'max_stages' is 0: must be at least 1"),
            ([*m, *c, "--space.max_micro_batches", "many"], "option 'max_micro_batches' is 'many': must be an integer"),
            ([*m, *c, "--fabric", "torus"], "--fabric torus is given beside --cluster 1x2xp100"),
            ([*m, *c, "--servers", "4"], "--servers is given without --fabric"),
            ([*m, "--fabric", "ring"], "fabric 'ring' is not known: must be one of ideal_switch, fat_tree, "),
            ([*m, "--fabric", "torus", "--servers", "many"], "fabric: option 'servers' is 'many': must be an integer"),
            ([*m, "--fabric", "torus", "--interface", "100"], "option 'interface' is '100': must be a rate in bits or bytes per second"),
            ([*m, "--fabric", "torus", "--ratio", "3"], "fabric torus: option 'ratio' is one of other fabrics"),
            ([*m, "--fabric", "random_regular", "--servers", "5", "--degree", "3"], "servers * degree must be even"),
            ([*m, "--fabric", "random_regular", "--routing", "coin_change"], "its links make no circulant graph"),
            ([*m, "--fabric", "fully_connected"], "degree is 4: must be at least 15"),
            ([*m, "--fabric", "torus", "--device", "abacus"], "device is 'abacus': must be one of k80"),
            ([*m, "--fabric", "topoopt", "--search", "none"], "fabric topoopt: is wired for what a search finds"),
            ([*m, "--fabric", "topoopt", "--search", "joint"], "fabric topoopt: search joint changes operators"),
            ([*m, "--fabric", "topoopt", "--start", "data_parallel"], "fabric topoopt: start is data_parallel"),
            ([*m, "--fabric", "topoopt", "--degree", "1"], "fabric topoopt: topology of degree 1 for 16 servers"),
            ([*m, "--fabric", "topoopt", "--rounds", "0"], "option 'rounds' is 0: must be from 1"),
            (["--rerun", "nowhere", "--fabric", "torus"], "--fabric is given beside --rerun"),
            ([*m, *c, "--kernels.fusion", "all"], "option 'fusion' is 'all': must be one of none, dropout, compiled"),
            ([*m, *c, "--kernels.f8_products", "true"], "device 0 (p100_sxm) has no f8 peak: f8_products needs one"),
            ([*m, *c, "--kernels.host_time", "5"], "option 'host_time' is '5': must be a time in ns, us"),
            ([*m, *c, "--kernels.fusion", "compiled", "--search", "joint"], "--kernels.fusion is compiled, but search joint chooses what is fused"),
            ([*m, *c, "--kernels.fusion", "dropout", "--profile", "x"], "--kernels.fusion is dropout, but measured kernels are of single operators"),
            ([*m, *c, "--simulation.context_memory", "-1"], "simulation option context_memory is -1 bytes: must not be negative"),
            ([*m, "--cluster", "1x2xp100,nvls=true"], "nvls is true, and intra is not nvswitch"),
            (["--list", "nothing"], "--list nothing: must be models, clusters, "),
        ]:
            with self.subTest(arguments=arguments):
                self.assertIn(expected, self.said(*arguments))

    def test_unwritable_folder_is_said_before_the_search(self):
        (self.path / "file").write_text("x")
        begin = time.monotonic()
        for folder in (self.path / "file", self.path / "file" / "below", "/proc/plan"):
            self.assertIn("--out", self.said("--model", GPT, "--cluster", "1x2xp100", "--time", "60s", "--out", folder))
        self.assertLess(time.monotonic() - begin, 20)

    def test_bad_files(self):
        (self.path / "empty").write_text("")
        (self.path / "words").write_text("hello world")
        (self.path / "brace.json").write_text("{")
        for option, expected in (("empty", "is empty"), ("words", "words:1"), ("brace.json", "brace.json:1")):
            self.assertIn(expected, plan("--model", GPT, "--cluster", "1x2xp100", "--import", self.path / option, code=2)[1])
        plan("--model", GPT, "--cluster", "1x2xp100", "--evaluations", 20, "--quiet", "--out", self.path / "a")
        other = "zoo:mlp"
        self.assertIn("plan.json", plan("--model", other, "--cluster", "1x2xp100", "--import", self.path / "a" / "plan.json", code=2)[1])
        run = self.path / "a" / "run.json"
        good = run.read_text()
        for change, expected in ((('"version": 1', '"version": 9'), "version is 9: must be 1"), (('"seed"', '"seeds"'), "seeds: unknown member"),
                                 (('"optimizer": "sgd"', '"optimizer": 3'), "simulation.optimizer is 3: must be")):
            run.write_text(good.replace(*change))
            self.assertIn(expected, self.said("--rerun", run))

    def test_rerun_refuses_changed_files(self):
        plan("--model", GPT, "--cluster", "1x2xp100", "--evaluations", 20, "--quiet", "--out", self.path / "a")
        plan("--model", GPT, "--cluster", self.path / "a" / "topology.json", "--evaluations", 20, "--quiet", "--out", self.path / "b")
        topology = self.path / "a" / "topology.json"
        (self.path / "moved.json").write_text(topology.read_text())
        plan("--rerun", self.path / "b" / "run.json", "--cluster", self.path / "moved.json", "--quiet")
        self.assertIn("must be the same", self.said("--rerun", self.path / "b" / "run.json", "--model", "zoo:lenet"))
        topology.write_text(topology.read_text() + "\n")
        self.assertIn("has the hash", self.said("--rerun", self.path / "b" / "run.json"))


class Endings(Folder):
    def test_interrupted(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            folder = self.path / sent.name
            running = subprocess.Popen([PROGRAM, "--model", GPT, "--cluster", "2x4xv100", "--time", "100s", "--space.pipelines", "false", "--out", folder],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            # The search runs once data parallelism has been evaluated, which is soon after the cluster was printed.
            while not running.stdout.readline().startswith("cluster"):
                self.assertIsNone(running.poll())
            time.sleep(1)
            running.send_signal(sent)
            out, error = running.communicate(timeout=60)
            self.assertEqual(running.returncode, 130, error)
            self.assertIn("ended by stop requested", out)
            run = self.check_folder(sent.name, FILES - {"strategy.flexflow"} if "\nplan  " in out else FILES)
            self.assertGreater(run["result"]["evaluations"], 1)
            plan("--rerun", folder / "run.json", "--quiet", "--out", self.path / "again")
            self.assertEqual(self.load("again", "run.json")["result"]["trajectory"], run["result"]["trajectory"])

    def test_second_signal_kills(self):
        # The reading of a model of many operators is not interrupted: the second signal ends it.
        running = subprocess.Popen([PROGRAM, "--model", "zoo:gpt,layers=30000,batch=512,dropout=0", "--cluster", "16x8xh100", "--time", "100s"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.7)
        running.send_signal(signal.SIGINT)
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(timeout=10), -signal.SIGINT)

    def test_what_does_not_fit(self):
        out, notes = plan("--model", "zoo:mlp,features=65536,hidden=65536*4,batch=8", "--cluster", "1x1xp100", "--evaluations", 10, "--out", self.path / "a", code=3, pipelines=True)
        self.assertIn("NO", row(out, "found by portfolio")[-3:])
        self.assertIn("cost with", out)
        self.assertIn("the plan does not fit", notes)
        run = self.check_folder("a", FILES - {"strategy.flexflow"} if "\nplan  " in out else FILES)
        self.assertFalse(run["strategies"][-1]["fits"])

    def test_a_file_that_cannot_be_written(self):
        (self.path / "a" / "report.html").mkdir(parents=True)
        _, error = plan("--model", GPT, "--cluster", "1x2xp100", "--evaluations", 5, "--out", self.path / "a", code=2)
        self.assertIn("report.html is a folder: a file of that name is to be written", error)
        self.assertEqual([f.name for f in (self.path / "a").iterdir() if f.name.startswith(".")], [])

    def test_progress(self):
        _, error = plan("--model", GPT, "--cluster", "2x4xv100", "--time", "6s", "--regular", "none")
        self.assertRegex(error, r"(?m)^5\.\d s of 6\.0 s  \d+ evaluations, [\d.]+( k)?/s  best [\d.]+ us \([\d.]+x\)  current [\d.]+ us$")
        _, error = plan("--model", GPT, "--cluster", "2x4xv100", "--time", "6s", "--quiet")
        self.assertEqual(error, "")


class Help(unittest.TestCase):
    def test_help_mentions_everything(self):
        out, error = plan("--help")
        self.assertEqual(error, "")
        for word in ["--model", "--cluster", "--search", "--time", "--evaluations", "--seed", "--start", "--import", "--out", "--compare", "--quiet",
                     "--rerun", "--list", "--version", "--help", "--mcmc.temperature", "--mcmc.relative_temperature", "--mcmc.reheat_interval",
                     "--mcmc.reset_interval", "--mcmc.patience", "--mcmc.time_patience", "--mcmc.min_evaluations", "--mcmc.threads", "--mcmc.random_starts", "--mcmc.target_acceptance",
                     "--greedy.candidates", "--greedy.order", "--rules", "--joint.beam", "--joint.candidates", "--tempering.replicas", "--tempering.threads",
                     "--simulation.training", "--simulation.optimizer", "--simulation.memory", "--simulation.memory_penalty", "--simulation.movement",
                     "--simulation.synchronisation", "--simulation.overlap", "--simulation.discipline", "--simulation.context_memory", "--kernels.fusion",
                     "--kernels.f8_products", "--kernels.host_time", "--kernels.ring_attention", "--space.sample", "--space.attribute",
                     "--space.parameter", "--space.reduction", "--space.min_shard", "--space.max_shards", "--space.placements", "--space.all_orders",
                     "--fabric", "--servers", "--gpus-per-server", "--degree", "--interface", "--routing", "--rounds", "--explain", "--space.pipelines ", "--space.max_stages", "--space.max_micro_batches", "--space.max_interleaved", "--space.recomputation", "--space.sharded_optimizer",
                     "--space.context_parallel", "--space.zero_bubble", "--space.sharded_gradients", "--space.sharded_parameters", "--space.sharded_within_nodes",
                     "Examples:", "Exit codes:", "130", *FILES]:
            self.assertIn(word, out)
        self.assertLessEqual(max(len(line) for line in out.splitlines()), 120)
        # Every example that can run anywhere is a command line that the program takes: nothing is refused before the files are looked for.
        for line in out.splitlines():
            if line.startswith("  plan --model"):
                _, error = plan(*line.split()[1:], "--seed", "x", code=2)
                self.assertIn("seed", error, line)

    def test_lists(self):
        self.assertIn("resnet50", plan("--list", "models")[0])
        self.assertIn("NODESxGPUSxh100", plan("--list", "clusters")[0])
        self.assertIn("greedy", plan("--list", "searches")[0])
        self.assertIn("random_regular", plan("--list", "fabrics")[0])
        self.assertRegex(plan("--list", "oversubscribed")[0], r"(?s)interface=100Gbps.*ratio=2")
        self.assertNotIn("ratio", plan("--list", "torus")[0])
        self.assertIn("one_weird_trick", plan("--list", "experts")[0])
        self.assertIn("layers=24", plan("--list", "gpt2_medium")[0])
        self.assertIn("candidates=64", plan("--list", "greedy")[0])
        self.assertRegex(plan("--version")[0], r"^plan \d+\.\d+\.\d+\n$")


class Onnx(Folder):
    def setUp(self):
        super().setUp()
        if not MODELS:
            self.skipTest("no --models")
        if not built_with_onnx():
            self.skipTest("the program was built without ONNX")

    def test_every_model_without_help(self):
        for model in sorted(MODELS.glob("*.onnx")):
            for cluster in ("1x1xh100", "1x8xh100"):
                with self.subTest(model=model.name, cluster=cluster):
                    out, _ = plan("--model", model, "--cluster", cluster, "--evaluations", 3, "--out", self.path / "a")
                    self.assertIn("found by", out)
                    self.check_folder("a")

    def test_options_of_a_file(self):
        model = MODELS / "resnet50.onnx"
        plan("--model", f"{model},batch=32,type=bf16", "--cluster", "1x4xv100", "--evaluations", 30, "--out", self.path / "a")
        run = self.load("a", "run.json")
        self.assertTrue(run["model"]["hash"].startswith("fnv1a64:"))
        plan("--rerun", self.path / "a" / "run.json", "--quiet", "--out", self.path / "b")
        self.assertEqual((self.path / "a" / "plan.json").read_bytes(), (self.path / "b" / "plan.json").read_bytes())
        moved = self.path / "moved.onnx"
        moved.write_bytes(model.read_bytes())
        self.assertIn("with the same options", plan("--rerun", self.path / "a" / "run.json", "--model", moved, code=2)[1])
        plan("--rerun", self.path / "a" / "run.json", "--model", f"{moved},batch=32,type=bf16", "--quiet")
        _, notes = plan("--model", f"{model},batch=2", "--cluster", "1x4xv100", "--evaluations", 3)
        self.assertIn("the batch is 2, so data parallelism splits it over 2 of 4 devices", notes)
        for setting, expected in (("depth=3", "option 'depth' is not known and no symbolic dim of the file"), ("batch=many", "option 'batch' is 'many'"),
                                  ("type=fp8", "must be one of f64, f32"), ("batch=0", "batch")):
            self.assertIn(expected, plan("--model", f"{model},{setting}", "--cluster", "1x4xv100", code=2)[1])

    def test_broken_files(self):
        whole = (MODELS / "resnet50.onnx").read_bytes()
        for name, contents in (("empty.onnx", b""), ("cut.onnx", whole[: len(whole) // 2]), ("words.onnx", b"hello")):
            (self.path / name).write_bytes(contents)
            self.assertIn(name, plan("--model", self.path / name, "--cluster", "1x1xh100", code=2)[1])


def main():
    global PROGRAM, MODELS, SCHEMAS
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--schemas", type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    PROGRAM, MODELS, SCHEMAS = str(pathlib.Path(arguments.program).resolve()), arguments.models, arguments.schemas
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
