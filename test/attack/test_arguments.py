"""Options and files that say what cannot be meant."""

import json
import os
import pathlib
import random
import re

import attack

SMALL = ("--model", "zoo:mlp,batch=64", "--cluster", "1x2xp100", "--evaluations", "50")
KINDS = ("sample", "attribute", "parameter", "reduction")


class Arguments(attack.Case):
    def made(self):
        """The folder of a small run."""
        self.assertEqual(self.plan(*SMALL, "--out", "made").code, 0)
        return pathlib.Path(self.folder, "made")

    def refused(self, *arguments):
        done = self.plan(*arguments)
        self.assertEqual(done.code, 2, done.err)
        return done.err

    def test_empty_values_are_refused(self):
        for option in ("--out", "--profile", "--import", "--rules", "--fabric", "--start", "--memory", "--time"):
            self.assertIn(f"{option} is empty", self.refused(*SMALL, option, ""))

    def test_restrictions_bind(self):
        draw = random.Random(656)
        for number in range(12):
            options = [x for kind in KINDS if draw.random() < 0.5 for x in (f"--space.{kind}", "false")]
            if draw.random() < 0.5: options += ["--space.max_shards", "1"]
            search = draw.choice(("portfolio", "mcmc", "greedy", "tempering", "dominator_dp", "joint", "random", "exact"))
            with self.subTest(options=options, search=search):
                done = self.plan(*SMALL[:-2], "--evaluations", "60", "--search", search, "--seed", str(number), "--out", f"out{number}", *options)
                self.assertEqual(done.code, 0, done.err)
                run = json.loads(pathlib.Path(self.folder, f"out{number}", "run.json").read_text())
                self.assertLessEqual(run.get("lower_bound_ps", 0), run["result"]["cost_ps"])
                stages = json.loads(pathlib.Path(self.folder, f"out{number}", "plan.json").read_text())["stages"]
                operators = [o for s in stages for o in s["operators"]]
                if "max_shards" in "".join(options): self.assertFalse([o for o in operators if o.get("degrees")])
                if "--space.sample" in options: self.assertFalse([o for o in operators if "s" in o.get("degrees", {})])

    def test_what_is_outside_of_the_space_is_said_aloud(self):
        none = [x for kind in KINDS for x in (f"--space.{kind}", "false")]
        done = self.plan(*SMALL, *none)
        self.assertIn("is outside of the space", done.err)
        found = next(line for line in done.out.splitlines() if "found by" in line)
        self.assertIn(" 0 ", found)

    def test_json_is_strict(self):
        made = self.made()
        strategy, run = (made / "plan.json").read_text(), (made / "run.json").read_text()

        def edited(name, text):
            path = pathlib.Path(self.folder, name)
            path.write_text(text)
            return str(path)

        self.assertIn("a character with the number 0", self.refused(*SMALL[:4], "--import", edited("nul.json", strategy + "\0{]")))
        for before, after, said in (
                (r'"trajectory": "[0-9a-f]*"', '"trajectory": "zz"', "must be sixteen hexadecimal digits"),
                (r'"time_ps": \d+', '"time_ps": -5', "must not be negative"),
                (r'"cost_ps": \d+', '"cost_ps": -5', "must not be negative"),
                (r'"accepted": \d+', '"accepted": 1000000000', "must be at most the"),
                (r'("cost_ps": \d+,\s*"start": )"[a-z0-9 ]*"', r'\1"nobody"', "must be the name of an expert")):
            with self.subTest(said):
                self.assertIn(said, self.refused("--rerun", edited("run.json", re.sub(before, after, run, count=1))))
        self.assertIn("must be an object", self.refused("--model", "zoo:mlp", "--cluster", edited("list.json", "[1, 2]")))

    def test_control_characters_do_not_reach_the_terminal(self):
        data = os.environ.get("PARSEARCH_EXTERNAL_DATA")
        if not data: self.skipTest("PARSEARCH_EXTERNAL_DATA is not set")
        done = self.plan("--model", os.path.join(data, "attack", "evil_optype.onnx"), *SMALL[2:])
        self.assertFalse([c for c in done.out + done.err if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)])
        done = self.plan("--model", "zoo:\x1b[31mmlp", *SMALL[2:])
        self.assertNotIn("\x1b", done.err)
        files = ("--evaluations", "50", "--space.pipelines", "false", "--out", "evil")
        done = self.plan("--model", os.path.join(data, "attack", "evil_optype.onnx") + ",replicate_unknown=true", *SMALL[2:4], *files)
        self.assertEqual(done.code, 0, done.err)
        self.assertNotIn(b"\x1b", pathlib.Path(self.folder, "evil", "strategy.flexflow").read_bytes())

    def test_a_batch_that_no_number_of_devices_divides_gets_advice_near_to_it(self):
        done = self.plan("--model", "zoo:mlp,batch=1009", "--cluster", "1x8xp100", "--evaluations", "20")
        self.assertIn("batch=1016", done.err)

    def test_an_import_for_something_else_is_said_aloud(self):
        self.assertEqual(self.plan(*SMALL, "--rewriting", "none", "--out", "made").code, 0) # else it is of operators of its own
        strategy = str(pathlib.Path(self.folder, "made", "plan.json"))
        done = self.plan("--model", "zoo:mlp,batch=128", "--cluster", "1x2xv100", "--import", strategy)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("says that it is for zoo:mlp,batch=64 on 1x2xp100", done.err)
        self.assertNotIn("says that it is for", self.plan(*SMALL[:4], "--import", strategy).err)

    def test_an_import_that_does_not_say_what_it_is_for_is_said_aloud(self):
        self.assertEqual(self.plan(*SMALL, "--space.pipelines", "false", "--out", "made").code, 0)
        done = self.plan(*SMALL[:4], "--import", "made/strategy.flexflow")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("does not say for which model and cluster", done.err)

    def test_an_imported_plan_costs_what_it_did(self):
        made = self.made()
        self.assertEqual(self.plan(*SMALL[:4], "--import", str(made / "plan.json"), "--out", "again").code, 0)
        self.assertEqual(*[json.loads((folder / "plan.json").read_text())["predicted_ps"] for folder in (made, pathlib.Path(self.folder, "again"))])

    def test_a_link_that_takes_for_ever_is_named(self):
        topology = json.loads((self.made() / "topology.json").read_text())
        for link in topology["links"]: link["bytes_per_second"] = 1e-300
        slow = pathlib.Path(self.folder, "slow.json")
        slow.write_text(json.dumps(topology))
        self.assertRegex(self.refused("--model", "zoo:mlp,batch=64", "--cluster", str(slow)), r"bytes (on link \d|among 2 devices: 0, 1).*: time of")
