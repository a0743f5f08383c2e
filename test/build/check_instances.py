#!/usr/bin/env python3
"""Has the comparison of searches write the page of fixed runs, and checks it: its figures against ones worked out here, that it needs
nothing outside itself, and where there is a browser that it renders without a word on the console. Then compares searches on instances, one of them a
program of its own, and has solutions judged.

    check_instances.py <bench instances program> <judge program> <chromium>

Refused files must be refused with a message that names the rule.
"""

import html.parser
import itertools
import json
import math
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

INFEASIBLE = None
MEAN = "a & <b>\"walk\"</b>"


def run(search, seed, curve, instance="net", seconds=2.0, evaluations=1000):
    return {"search": search, "instance": instance, "seed": seed, "seconds": seconds, "evaluations": evaluations, "reason": "time budget", "bound_ps": None,
            "curve": curve}


def instance(name, group, best):
    return {"name": name, "class": group, "devices": 4, "decisions": 9, "textbook_ps": 2_000_000, "best_ps": best, "bound_ps": 500_000}


ROWS = {
    "format": "parsearch.instance_comparison", "version": 1, "library": "0", "budget_s": 2.0, "evaluations": None,
    "instances": [instance("net", "small", 1_000_000), instance("other", "large", 800_000)],
    "runs": [
        run(MEAN, 1, [[0, 1, 2_000_000], [0.5, 100, 1_500_000], [1.0, 400, 1_000_000]]),
        run(MEAN, 2, [[0, 1, 2_000_000], [0.7, 120, 1_010_000]]),
        run(MEAN, 3, [[0, 1, 2_000_000], [0.1, 20, 1_200_000]], seconds=1.0),
        run("steps", 1, [[0, 1, 2_000_000], [0.01, 5, 1_100_000]], seconds=0.02, evaluations=50),
        run("steps", 2, [[0, 1, 2_000_000], [0.02, 9, 1_300_000]], seconds=0.04, evaluations=60),
        run("steps", 1, [[0, 1, INFEASIBLE], [0.02, 9, 800_000]], instance="other"),
        run(MEAN, 1, [[0, 1, INFEASIBLE]], instance="other"),
    ],
}

# Two decisions; the best choices within the budget are 0 and 2.
TABLES = {
    "format": "parsearch.instance", "version": 1, "name": "pair", "question": "choices",
    "tables": {"decisions": [{"name": "a", "costs_ps": [5, 1], "memory_bytes": [1, 9]}, {"name": "b", "costs_ps": [3, None, 1], "memory_bytes": [2, 2, 2]}],
               "pairs": [{"from": 0, "to": 1, "costs_ps": [9, 1, 2, 3, 4, None]}], "budget_bytes": 10},
}
# Tries all choices, reading the format without the library.
SOLVER = """
import itertools, json, sys
tables = json.load(open(sys.argv[1]))["tables"]
decisions, pairs = tables["decisions"], tables["pairs"]
def cost(choices):
    terms = [d["costs_ps"][c] for d, c in zip(decisions, choices)]
    terms += [p["costs_ps"][choices[p["from"]] * len(decisions[p["to"]]["costs_ps"]) + choices[p["to"]]] for p in pairs]
    memory = sum(d["memory_bytes"][c] for d, c in zip(decisions, choices))
    return float("inf") if None in terms or memory > tables["budget_bytes"] else sum(terms)
best = min(itertools.product(*(range(len(d["costs_ps"])) for d in decisions)), key=cost)
json.dump({"format": "parsearch.choices", "version": 1, "choices": best}, open(sys.argv[2], "w"))
"""


class Page(html.parser.HTMLParser):
    """Tables as lists of rows of cells, drawings with their titles, and everything that refers elsewhere."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tables, self.drawings, self.elsewhere, self.open, self.headings = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("src", "href", "srcset", "data"):
            if name in attributes and not attributes[name].startswith("#"):
                self.elsewhere.append((tag, attributes[name]))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "svg" and attributes.get("role") == "img":
            self.drawings.append({"labels": attributes["aria-labelledby"].split(), "ids": [], "medians": 0})
        elif tag == "path" and attributes.get("class") == "median" and self.drawings and "svg-img" in self.open:
            self.drawings[-1]["medians"] += 1
            for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", attributes["d"]):
                if not (0 <= float(x) <= 560 and 0 <= float(y) <= 300):
                    raise AssertionError(f"a point outside the drawing: {x} {y}")
        elif tag in ("title", "desc") and "svg-img" in self.open:
            self.drawings[-1]["ids"].append(attributes.get("id"))
        elif tag == "h2":
            self.headings.append("")
        if tag not in ("meta", "link", "br"):
            self.open.append("svg-img" if tag == "svg" and attributes.get("role") == "img" else tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in ("meta", "link", "br"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        found = self.open.pop()
        if found.removesuffix("-img") != tag:
            raise AssertionError(f"</{tag}> ends <{found}>")

    def handle_data(self, data):
        if self.open and self.tables and self.open[-2 if self.open[-1] == "b" else -1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif self.open and self.open[-1] == "h2":
            self.headings[-1] += data


class Comparison(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def call(self, *arguments, code=0, program=None):
        done = subprocess.run([program or PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def write(self, name, document):
        (self.path / name).write_text(json.dumps(document), encoding="utf-8")
        return self.path / name

    def render(self, rows):
        self.call("--render", self.write("rows.json", rows), "--out", self.path / "page")
        return (self.path / "page.html").read_text(encoding="utf-8")

    def test_figures(self):
        page = Page(self.render(ROWS))
        self.assertEqual(page.elsewhere, [])
        self.assertEqual(page.open, [])
        self.assertEqual(page.headings, ["All instances", "Which search where", "Performance profiles", "net", "other"])
        overview, classes, net, other = page.tables
        of_mean = next(r for r in net if r[0] == MEAN)
        gaps = [0.0, 1.0, 20.0]
        low, median, high = statistics.quantiles(gaps, n=4, method="inclusive")
        self.assertEqual(of_mean[1:4], [f"{median:.2f} %", f"{low:.2f} %", f"{high:.2f} %"])
        self.assertEqual(of_mean[5], "500")
        self.assertEqual(of_mean[6:8], ["1.00 s", "2 of 3"])  # 0.7 s, 1.0 s and never
        steps = next(r for r in net if r[0] == "steps")
        self.assertEqual(steps[1:4], ["20.00 %", "15.00 %", "25.00 %"])
        self.assertEqual(steps[6:8], ["never", "0 of 2"])
        self.assertEqual(next(r for r in other if r[0] == MEAN)[1], "infeasible")
        # Geometric: (1 + 20 %) and (1 + 0 %) of two instances.
        of_steps = next(r for r in overview if r[0] == "steps")
        self.assertEqual(of_steps[1:5], [f"{100 * (math.sqrt(1.2) - 1):.2f} %", "1", "2", "1 of 3"])
        # Of the pairs of one seed the second search lost two and won one: as probable by chance as any other split of three.
        self.assertEqual(of_steps[6:], ["1", "2", "1"])
        self.assertEqual(next(r for r in overview if r[0] == MEAN)[1:5], ["infeasible", "1", "2", "2 of 4"])
        self.assertEqual(classes[0], ["search", "small", "large"])
        self.assertEqual(next(r for r in classes if r[0] == "steps")[1:], ["20.00 %", "0.00 %"])

    def test_drawings(self):
        page = Page(self.render(ROWS))
        self.assertEqual(len(page.drawings), 5)
        for drawing in page.drawings:
            self.assertEqual(drawing["labels"], drawing["ids"][:2])
        # What never has a feasible solution has no curve.
        self.assertEqual([d["medians"] for d in page.drawings], [2, 2, 2, 1, 1])
        self.assertEqual(self.render(ROWS), self.render(ROWS))

    def test_names_are_shown_as_they_are(self):
        text = self.render(ROWS)
        self.assertNotIn("<b>\"walk", text)
        self.assertIn("a &amp; &lt;b&gt;&quot;walk&quot;&lt;/b&gt;", text)

    def test_wrong_files_are_refused(self):
        def refused(change, message):
            rows = json.loads(json.dumps(ROWS))
            change(rows)
            self.assertIn(message, self.call("--render", self.write("rows.json", rows), "--out", self.path / "page", code=1))

        refused(lambda r: r.update(version=2), "version is 2: must be 1")
        refused(lambda r: r.update(runs=[]), "must have at least one run")
        refused(lambda r: r["runs"][1].update(curve=[]), "runs[1].curve is an array of 0: must begin with the start")
        refused(lambda r: r["runs"][0].update(curve=[[0, 1, -1]]), "runs[0].curve[0][2] is -1")
        refused(lambda r: r["runs"][0].update(curve=[[0, 1, 5]]), "must be at least 1000000, the best cost of the instance")
        refused(lambda r: r["runs"][0]["curve"].append([2.0, 500, 1_600_000]), "must come later than the one before it, and cost less")
        refused(lambda r: r["runs"][0].update(instance="nothing"), "runs[0].instance is \"nothing\": must be one of the instances")
        refused(lambda r: r["runs"][0].pop("seed"), "runs[0]: seed is missing")
        refused(lambda r: r.update(budget_s=0), "budget_s is 0: must be a number above 0")

    def test_a_comparison_from_instance_to_page(self):
        asked = ("--instance", "lenet-4", "--search", "greedy", "--search", "mcmc", "--seeds", 2, "--evaluations", 500)
        said = self.call(*asked, "--out", self.path / "made")
        self.assertIn("made.html", said)
        made = json.loads((self.path / "made.json").read_text())
        self.assertEqual([(r["search"], r["seed"]) for r in made["runs"]], [("mcmc", 1), ("mcmc", 2), ("greedy", 1), ("greedy", 2)])
        for r in made["runs"]:
            costs, times, counts = ([p[i] for p in r["curve"]] for i in (2, 0, 1))
            self.assertEqual(costs, sorted(costs, reverse=True))
            self.assertEqual(times, sorted(times))
            self.assertEqual(counts, sorted(counts))
            self.assertGreaterEqual(r["evaluations"], counts[-1])
            self.assertGreaterEqual(costs[-1], made["instances"][0]["best_ps"])
        # The page is that of the rows; what is counted in evaluations comes out the same again.
        self.call("--render", self.path / "made.json", "--out", self.path / "again")
        self.assertEqual((self.path / "made.html").read_bytes(), (self.path / "again.html").read_bytes())
        self.call(*asked, "--out", self.path / "second")
        second = json.loads((self.path / "second.json").read_text())
        self.assertEqual([[p[1:] for p in r["curve"]] for r in made["runs"]], [[p[1:] for p in r["curve"]] for r in second["runs"]])
        self.assertIn("none of the searches named runs", self.call("--instance", "lenet-4", "--search", "partition", "--out", self.path / "x", code=1))
        self.assertIn("wishing", self.call("--instance", "lenet-4", "--search", "wishing", code=105))
        self.assertIn("neither a name", self.call("--instance", "no-such", code=1))

    def test_published_searches_of_plans(self):
        self.call("--instance", "mlp-8", "--write", self.path / "written")
        file = self.write("plans.json", {**json.loads((self.path / "written" / "mlp-8.json").read_text()), "question": "plan"})
        searches, made = ("alpa", "galvatron"), []
        for n in (1, 2):
            named = (x for s in searches for x in ("--search", s))
            self.call("--instance", file, *named, "--seeds", 1, "--evaluations", 30, "--out", self.path / f"made{n}")
            made.append(json.loads((self.path / f"made{n}.json").read_text())["runs"])
        self.assertEqual([r["search"] for r in made[0]], [*searches])
        self.assertEqual(*([[p[1:] for p in r["curve"]] for r in runs] for runs in made))  # nothing is drawn
        for r in made[0]:
            costs = [p[2] for p in r["curve"]]
            self.assertNotIn(INFEASIBLE, costs)
            self.assertEqual(costs, sorted(costs, reverse=True))
            self.assertLess(costs[-1], costs[0], r["search"])  # data parallelism
            self.assertLessEqual(r["evaluations"], 30)
        self.assertIn("none of the searches named runs", self.call("--instance", "mlp-8", "--search", "alpa", "--out", self.path / "x", code=1))

    def test_another_program_takes_part(self):
        file = self.write("pair.json", TABLES)
        (self.path / "solver.py").write_text(SOLVER, encoding="utf-8")
        self.call("--instance", file, "--seeds", 1, "--command", f"{sys.executable} {self.path}/solver.py {{instance}} {{out}}", "--command", "false", "--evaluations",
                  100, "--out", self.path / "made")
        runs = json.loads((self.path / "made.json").read_text())["runs"]
        costs = {r["search"].rpartition("/")[2]: r["curve"][-1][2] for r in runs}
        self.assertEqual(costs["solver.py {instance} {out}"], 8)
        self.assertEqual(costs["dominator_dp"], 8)
        self.assertEqual(costs["false"], INFEASIBLE)
        self.assertIn("exit status 1", next(r["reason"] for r in runs if r["search"] == "false"))
        self.assertIn("--time is not given", self.call("--instance", file, "--command", "x {time}", code=1))
        alone = ("--instance", file, "--seeds", 1, "--search", "none", "--command", "echo {} > {out}", "--out", self.path / "alone")
        self.call(*alone)
        (run_of_it,) = json.loads((self.path / "alone.json").read_text())["runs"]
        self.assertIn("failed: solution: format is missing", run_of_it["reason"])

    def test_tables_with_a_budget_are_solved_with_proof(self):
        rng, answers = random.Random(27), 0
        for scale, bytes_of in ((1, 1), (10**12, 20), (10**15, 2**49), (7, 2**30)):
            for _ in range(6):
                sizes = [rng.randint(1, 4) for _ in range(5)]
                cost = lambda: None if rng.random() < 0.1 else rng.randint(0, 9 * scale)
                decisions = [{"name": f"d{i}", "costs_ps": [rng.randint(0, 9 * scale) for _ in range(n)],
                              "memory_bytes": [rng.randint(0, bytes_of) for _ in range(n)]} for i, n in enumerate(sizes)]
                pairs = [{"from": i, "to": i + 1, "costs_ps": [cost() for _ in range(sizes[i] * sizes[i + 1])]} for i in range(4)]
                most = sum(max(d["memory_bytes"]) for d in decisions)
                least = sum(min(d["memory_bytes"]) for d in decisions)
                tables = {"decisions": decisions, "pairs": pairs, "budget_bytes": rng.randint(least, most)}

                def price(choices):
                    terms = [d["costs_ps"][c] for d, c in zip(decisions, choices)]
                    terms += [p["costs_ps"][choices[p["from"]] * sizes[p["to"]] + choices[p["to"]]] for p in pairs]
                    memory = sum(d["memory_bytes"][c] for d, c in zip(decisions, choices))
                    return math.inf if None in terms or memory > tables["budget_bytes"] else sum(terms)

                best = min(map(price, itertools.product(*map(range, sizes))))
                file = self.write("tables.json", {**TABLES, "tables": tables})
                self.call("--instance", file, "--search", "dominator_dp", "--seeds", 1, "--out", self.path / "made")
                (found,) = json.loads((self.path / "made.json").read_text())["runs"]
                answer = math.inf if found["curve"][-1][2] is None else found["curve"][-1][2]
                self.assertEqual(answer, best, tables)
                if best not in (0, math.inf):
                    self.assertEqual(found["bound_ps"], best, tables)
                    answers += 1
        self.assertGreater(answers, 12)

    def test_a_table_of_kernels_has_the_prices_of_the_roofline(self):
        for name, asked in (("plain", ()), ("tabled", ("--kernels",))):
            self.call("--instance", "rnnlm2-2", "--write", self.path / name, *asked)
        tabled = json.loads((self.path / "tabled" / "rnnlm2-2.json").read_text())
        kernels = tabled["prices"]["profile"]["kernels"]
        self.assertGreater(len(kernels), 20)
        files = [self.path / name / "rnnlm2-2.json" for name in ("plain", "tabled")]
        for k in kernels:  # where the table is used times double with it
            k["time_ps"] *= 2
        files.append(self.write("doubled.json", tabled))
        costs = []
        for file in files:
            self.call("--instance", file, "--search", "random", "--seeds", 1, "--evaluations", 300, "--out", self.path / "made")
            costs.append([p[2] for p in json.loads((self.path / "made.json").read_text())["runs"][0]["curve"]])
        self.assertEqual(costs[0], costs[1])
        self.assertGreater(costs[2][0], 1.5 * costs[0][0])

    def test_solutions_are_judged(self):
        self.call("--instance", "lenet-2", "--write", self.path / "written")
        lenet = self.path / "written" / "lenet-2.json"
        pair = self.write("pair.json", TABLES)

        def judged(choices, code):
            return self.call(pair, self.write("choices.json", {"format": "parsearch.choices", "version": 1, "choices": choices}), program=JUDGE, code=code)

        self.assertEqual(judged([0, 2], 0), "feasible: 8 ps\nmemory: 3 bytes\n")
        self.assertIn("not feasible: the choices take 11 bytes of the 10 that there are", judged([1, 0], 1))
        self.assertIn("not feasible: 1 choices: there are 2 decisions", judged([0], 1))
        said = json.loads(self.call(pair, self.path / "choices.json", "--json", program=JUDGE, code=1))
        self.assertEqual((said["feasible"], "cost_ps" in said), (False, False))
        self.assertIn("format is \"parsearch.choices\"", self.call(lenet, self.path / "choices.json", program=JUDGE, code=1))
        self.assertIn("must be \"parsearch.instance\"", self.call(self.path / "choices.json", lenet, program=JUDGE, code=2))
        self.call(program=JUDGE, code=2)

    def test_operators_may_be_replaced(self):
        costs = []
        for name, asked in (("plain", ()), ("tabled", ("--kernels",))):
            self.call("--instance", "unity-xdl-6", "--write", self.path / name, *asked)
            file = self.path / name / "unity-xdl-6.json"
            self.call("--instance", file, "--search", "joint", "--search", "greedy", "--seeds", 1, "--evaluations", 600, "--out", self.path / "made")
            runs = json.loads((self.path / "made.json").read_text())["runs"]
            costs.append({r["search"]: [p[2] for p in r["curve"]] for r in runs})
        self.assertEqual(costs[0], costs[1])
        self.assertLessEqual(costs[0]["joint"][-1], costs[0]["joint"][0])
        self.assertEqual(set(costs[0]), {"joint", "greedy"})

        # Each choice with all on one device, told without the library.
        instance = json.loads(file.read_text())
        places = instance["rewritings"]
        inputs = {o["name"] for o in instance["graph"]["operators"] if o["work"] == "source"}

        def judged(choices, code=0):
            names = [o["name"] for o in instance["graph"]["operators"]]
            for place, choice in zip(places, choices):
                if choice > 0:
                    names = [n for n in names if n not in place["replaces"]] + [o["name"] for o in place["by"][choice - 1]["operators"]]
            plan = {"format": "parsearch.plan", "version": 1, "model": {"operators": len(names)}, "topology": {"devices": 6}, "micro_batches": 1,
                    "order": "1f1b", "sharded_optimizer": False, "stages": [{"operators": [{"name": n, "start": 0} for n in names if n not in inputs]}]}
            solution = self.write("solution.json", {"format": "parsearch.rewritten", "version": 1, "rewritings": choices, "plan": plan})
            if code == 0 and not any(choices):
                said = json.loads(self.call(file, self.write("plan.json", plan), "--json", program=JUDGE))
                self.assertEqual(said, json.loads(self.call(file, solution, "--json", program=JUDGE)))
            said = json.loads(self.call(file, solution, "--json", program=JUDGE, code=code))
            return said["cost_ps"] if code == 0 else said["reason"]

        plain = judged([0] * len(places))
        for k in range(1, len(places[0]["by"]) + 1):
            self.assertLess(judged([k] + [0] * (len(places) - 1)), plain)
        self.assertIn(f"must have {len(places)} choices, one for each place", judged([0] * (len(places) + 1), code=1))
        wrong = self.write("wrong.json", {**json.loads((self.path / "solution.json").read_text()), "rewritings": [99] * len(places)})
        self.assertIn("rewritings[0] is 99: must be an integer from 0 to", self.call(file, wrong, program=JUDGE, code=1))

    def test_in_a_browser(self):
        if not CHROMIUM:
            self.skipTest("no browser is found")
        self.render(ROWS)
        for dark in (0, 1):
            with tempfile.TemporaryDirectory() as profile:
                done = subprocess.run(
                    [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--enable-logging=stderr",
                     f"--blink-settings=preferredColorScheme={dark}", "--dump-dom", (self.path / "page.html").resolve().as_uri()],
                    capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            self.assertEqual([line for line in done.stderr.splitlines() if "CONSOLE" in line], [])
            self.assertEqual(Page(done.stdout).tables, Page((self.path / "page.html").read_text(encoding="utf-8")).tables)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    PROGRAM, JUDGE, CHROMIUM = sys.argv[1], sys.argv[2], shutil.which(sys.argv[3])
    unittest.main(argv=sys.argv[:1])
