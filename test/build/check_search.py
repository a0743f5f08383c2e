#!/usr/bin/env python3
"""Has the comparison of searches write the page of fixed runs, and checks it: its figures against ones worked out here, that it needs
nothing outside itself, and where there is a browser that it renders without a word on the console.

    check_search.py <bench search program> <chromium>

Refused files must be refused with a message that names the rule.
"""

import html.parser
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

INFEASIBLE = 2**63 - 1
MEAN = "a & <b>\"walk\"</b>"


def run(algorithm, seed, curve, model="net", seconds=2.0, evaluations=1000):
    return {"algorithm": algorithm, "model": model, "cluster": "2x2xp100", "seed": seed, "seconds": seconds, "evaluations": evaluations,
            "reason": "time budget", "curve": curve}


ROWS = {
    "format": "parsearch.search_comparison", "version": 1, "library": "0", "budget_s": 2.0,
    "runs": [
        run(MEAN, 1, [[0, 1, 2_000_000], [0.5, 100, 1_500_000], [1.0, 400, 1_000_000]]),
        run(MEAN, 2, [[0, 1, 2_000_000], [0.7, 120, 1_010_000]]),
        run(MEAN, 3, [[0, 1, 2_000_000], [0.1, 20, 1_200_000]], seconds=1.0),
        run("steps", 1, [[0, 1, 2_000_000], [0.01, 5, 1_100_000]], seconds=0.02, evaluations=50),
        run("steps", 2, [[0, 1, 2_000_000], [0.02, 9, 1_300_000]], seconds=0.04, evaluations=60),
        run("steps", 1, [[0, 1, INFEASIBLE], [0.02, 9, 800_000]], model="other"),
        run(MEAN, 1, [[0, 1, INFEASIBLE]], model="other"),
    ],
}


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
        if self.open and self.open[-1] in ("td", "th") and self.tables:
            self.tables[-1][-1][-1] += data
        elif self.open and self.open[-1] == "h2":
            self.headings[-1] += data


class Comparison(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def call(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def render(self, rows):
        (self.path / "rows.json").write_text(json.dumps(rows))
        self.call("--render", self.path / "rows.json", "--out", self.path / "page")
        return (self.path / "page.html").read_text(encoding="utf-8")

    def test_figures(self):
        page = Page(self.render(ROWS))
        self.assertEqual(page.elsewhere, [])
        self.assertEqual(page.open, [])
        self.assertEqual(page.headings, ["All cases", "net on 2x2xp100", "other on 2x2xp100"])
        overview, net, other = page.tables
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
        # Geometric: (1 + 20 %) and (1 + 0 %) of two cases.
        of_steps = next(r for r in overview if r[0] == "steps")
        self.assertEqual(of_steps[1:], [f"{100 * (math.sqrt(1.2) - 1):.2f} %", "1", "2", "1 of 3"])
        self.assertEqual(next(r for r in overview if r[0] == MEAN)[1:], ["infeasible", "1", "2", "2 of 4"])

    def test_drawings(self):
        page = Page(self.render(ROWS))
        self.assertEqual(len(page.drawings), 4)
        for drawing in page.drawings:
            self.assertEqual(drawing["labels"], drawing["ids"][:2])
        # What never has a feasible strategy has no curve.
        self.assertEqual([d["medians"] for d in page.drawings], [2, 2, 1, 1])
        self.assertEqual(self.render(ROWS), self.render(ROWS))

    def test_names_are_shown_as_they_are(self):
        text = self.render(ROWS)
        self.assertNotIn("<b>", text)
        self.assertIn("a &amp; &lt;b&gt;&quot;walk&quot;&lt;/b&gt;", text)

    def test_wrong_files_are_refused(self):
        def refused(change, message):
            rows = json.loads(json.dumps(ROWS))
            change(rows)
            (self.path / "rows.json").write_text(json.dumps(rows))
            self.assertIn(message, self.call("--render", self.path / "rows.json", "--out", self.path / "page", code=1))

        refused(lambda r: r.update(version=2), "must be parsearch.search_comparison, 1")
        refused(lambda r: r.update(runs=[]), "has no runs")
        refused(lambda r: r["runs"][1].update(curve=[]), "run number 1 has an empty curve")
        refused(lambda r: r["runs"][0].update(curve=[[0, 1, 0]]), "must be positive")
        refused(lambda r: r["runs"][0].pop("seed"), "seed")
        refused(lambda r: r.update(budget_s=0), "budget_s is 0")

    def test_a_comparison_from_models_to_page(self):
        said = self.call("--model", "AlexNet", "--algorithm", "greedy", "--algorithm", "mcmc", "--seeds", 2, "--seconds", 0.05, "--out", self.path / "made")
        self.assertIn("made.html", said)
        rows = json.loads((self.path / "made.json").read_text())
        self.assertEqual([(r["algorithm"], r["seed"]) for r in rows["runs"]], [("mcmc", 1), ("mcmc", 2), ("greedy", 1), ("greedy", 2)])
        for r in rows["runs"]:
            costs, times, counts = ([p[i] for p in r["curve"]] for i in (2, 0, 1))
            self.assertEqual(costs, sorted(costs, reverse=True))
            self.assertEqual(times, sorted(times))
            self.assertEqual(counts, sorted(counts))
            self.assertGreaterEqual(r["evaluations"], counts[-1])
        # The page is that of the rows.
        self.call("--render", self.path / "made.json", "--out", self.path / "again")
        self.assertEqual((self.path / "made.html").read_bytes(), (self.path / "again.html").read_bytes())

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
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    PROGRAM, CHROMIUM = sys.argv[1], shutil.which(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
