#!/usr/bin/env python3
"""Opens a report in headless Chromium, light and dark, and checks that it shows what the plan beside it says.

    check_report.py <chromium> <report.html> <plan.json>

Fails on anything that the page writes to the console, an exception among it. Where there is no <chromium>, says so and
ends with code 77.
"""

import collections
import html
import html.parser
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PATIENCE = 120  # seconds for one rendering


class Page(html.parser.HTMLParser):
    """The attributes of the root and the body, the texts of the headline, the rows of the list of operators, the rules applied."""

    VOID = {"meta", "link", "input", "br", "img"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root, self.body, self.figures, self.rows, self.rules = {}, {}, [], [], []
        self.open = []  # (tag, what it is collected for)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        inside = self.open[-1][1] if self.open else None
        if tag == "html":
            self.root = attributes
        elif tag == "body":
            self.body = attributes
        elif attributes.get("id") == "operators-t":
            inside = "operators"
        elif attributes.get("id") == "rewriting-l":
            inside = "rules"
        elif inside == "rules" and tag == "li":
            inside = "rule"
            self.rules.append("")
        elif attributes.get("class") == "value":
            inside = "figure"
            self.figures.append("")
        elif inside == "operators" and tag == "tr":
            self.rows.append([])
        elif inside == "operators" and tag == "td":
            inside = "cell"
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append((tag, inside))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        inside = self.open[-1][1] if self.open else None
        if inside == "figure":
            self.figures[-1] += data
        elif inside == "rule":
            self.rules[-1] += data
        elif inside == "cell":
            self.rows[-1][-1] += data


def render(chromium, report, dark):
    """(the document after its scripts have run, what they wrote to the console)"""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--enable-logging=stderr",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=20000", "--dump-dom", report.resolve().as_uri()],
            capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=PATIENCE, check=False)
    if done.returncode != 0:
        sys.exit(f"{chromium} ends with code {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def configuration(entry):
    """An operator's entry as the library writes configurations: "s4 o2 @0+2,1"."""
    degrees = entry.get("degrees", {})
    split = " ".join(f"{dim}{degree}" for dim, degree in degrees.items()) or "whole"
    if "devices" in entry:
        return f"{split} @{{{','.join(map(str, entry['devices']))}}}"
    strides = [str(entry.get("strides", {}).get(dim, 0)) for dim in degrees]
    return f"{split} @{entry['start']}" + ("+" + ",".join(strides) if strides else "")


def embedded(report):
    """The data that the page was given."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1]) if found else sys.exit(f"{report}: no data")


def seconds(figure):
    """The value of "85.01ms", and how far off it may be for its digits."""
    found = re.fullmatch(r"([\d,]+(?:\.(\d+))?)\s*(s|ms|µs|ns|ps)", figure)
    if not found:
        return math.nan, 0
    unit = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}[found[3]]
    return float(found[1].replace(",", "")) * unit, 0.6 * unit / 10 ** len(found[2] or "")


def problems_of(page, console, plan, inputs, ways, dark):
    """What is wrong with a rendered page, as sentences; `ways` are the directions of links that its network has."""
    out = [f"the console says: {line}" for line in console]

    def expect(what, shown, said):
        if shown != said:
            out.append(f"{what}: the page says {shown!r}, the plan {said!r}")

    operators = [o for s in plan["stages"] for o in s["operators"] if o["name"] not in inputs]
    expect("ready", page.body.get("data-ready"), "true")
    expect("theme", page.root.get("data-theme"), "dark" if dark else "light")
    expect("number of operators", page.body.get("data-operators"), str(len(operators)))
    expect("number of devices", page.body.get("data-devices"), str(plan["topology"]["devices"]))
    expect("directions of links in the network", page.body.get("data-ways"), str(ways))
    if int(page.body.get("data-rows", 0)) < plan["topology"]["devices"]:
        out.append(f"{page.body.get('data-rows')} rows in the timeline: fewer than devices")
    if "predicted_ps" in plan:
        expect("time", page.body.get("data-makespan"), str(plan["predicted_ps"]))
        shown, off = seconds(page.figures[0] if page.figures else "")
        if not abs(shown - plan["predicted_ps"] * 1e-12) <= off:
            out.append(f"the headline says {page.figures[:1]}, the plan {plan['predicted_ps']} ps")
    expect("number of rules", page.body.get("data-applied"), str(len(plan.get("rewritten_by", []))))
    expect("rules", page.rules, plan.get("rewritten_by", []))
    # Lines of several operators have their number in the second cell.
    shown = collections.Counter()
    for row in page.rows:
        if row:
            shown[row[-1]] += int(row[1].replace(",", "")) if len(row) == 5 else 1
    said = collections.Counter(configuration(o) for o in operators)
    for text in sorted(set(shown) | set(said)):
        if shown[text] != said[text]:
            out.append(f"configuration {text!r}: the page lists {shown[text]} operators, the plan {said[text]}")
    return out


# Turns from graph to graph with every operator shown, and leaves what is drawn in attributes of the body.
TURN = """<script>
{
  const body = document.body.dataset, drawn = () => document.querySelectorAll('#graph .node').length;
  if (!byId('unroll-l').hidden) byId('unroll').click();
  body.after = drawn();
  body.turns = !byId('which').hidden;
  if (!byId('which').hidden) {
    byId('g-before').click();
    body.before = drawn();
    body.pressed = byId('g-before').getAttribute('aria-pressed');
    byId('g-after').click();
    body.again = drawn();
  }
}
</script>
</body>"""


# Points at the first server and at the middle of each direction of a link of the network, coloured by bytes, and leaves in attributes of the body what
# the tips say, how many of these are those of the directions pointed at, and the colours.
POINT = """<script>
{
  const body = document.body.dataset, box = byId('net');
  const tipAt = (x, y) => {
    const r = box.getBoundingClientRect();
    box.dispatchEvent(new PointerEvent('pointermove', { clientX: r.left + x, clientY: r.top + y }));
    return tip.hidden ? '' : tip.textContent;
  };
  const middles = [...box.querySelectorAll('.way')].map(p => p.getPointAtLength(p.getTotalLength() / 2)).map(p => tipAt(p.x, p.y));
  body.middles = JSON.stringify(middles);
  const first = box.querySelector('.vertex');
  body.vertex = tipAt(+first.getAttribute('cx'), +first.getAttribute('cy'));
  byId('net-bytes').click();
  body.pressed = byId('net-bytes').getAttribute('aria-pressed');
  body.colours = new Set([...box.querySelectorAll('.way')].map(p => p.getAttribute('stroke'))).size;
  body.listed = document.querySelectorAll('#network-t tbody tr').length;
}
</script>
</body>"""


# Looks for words that are broken within, and for what is wider than the window, in a page that is a frame as wide as a phone. Values that were asked
# for, paths among them, may break anywhere.
PHONE = """<script>
{
  for (const d of document.querySelectorAll('details')) d.open = true;
  const broken = new Set(), range = document.createRange();
  const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());)
    for (const word of node.parentNode.matches('dd') ? [] : node.data.matchAll(/[A-Za-z]{2,16}/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) broken.add(word[0]);
    }
  Object.assign(parent.document.body.dataset, { page: document.documentElement.scrollWidth, broken: JSON.stringify([...broken]) });
}
</script>
</body>"""


def after(chromium, report, script, width=None):
    """(attributes of the body, console) of the page after a script of ours has run, too; with a `width` of a page that has it as a frame so wide."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.html"
        text = report.read_text(encoding="utf-8").replace("</body>", script)
        if width:
            text = f'<body><iframe width="{width}" height="800" style="border:0" srcdoc="{html.escape(text)}"></iframe></body>'
        copy.write_text(text, encoding="utf-8")
        dom, console = render(chromium, copy, False)
    return Page(dom).body, [f"the console says: {line}" for line in console]


def problems_of_pointing(chromium, report):
    """What is wrong with the network of a page on which it is pointed at, as sentences."""
    network = embedded(report)["network"]
    body, out = after(chromium, report, POINT)
    name = lambda v: f"server {v}" if v < network["servers"] else f"switch {v - network['servers']}"
    end = r"(?:server|switch) \d+"
    said = collections.Counter(re.sub(f"^({end}(?: → {end})?).*", r"\1", tip) for tip in json.loads(body["data-middles"]))
    ways = {f"{name(a)} → {name(b)}" for a, b, *_ in network["links"]} | {f"{name(b)} → {name(a)}" for a, b, *_ in network["links"]}
    # Where lines cross, the tip may be that of the other one.
    hit = sum(1 for way in ways if said[way] > 0)
    if hit < 0.8 * len(ways) or set(said) - ways - {name(v) for v in range(network["servers"] + network["switches"])} - {""}:
        out.append(f"pointing at {len(ways)} directions shows {hit} of them; tips: {list(said)[:5]}")
    bytes_of = [m + c for m, c in zip(network["messages"], network["collectives"])]
    for what, shown, right in (("first server", body["data-vertex"].startswith("server 0"), True), ("bytes pressed", body["data-pressed"], "true"),
                               ("lines of the table", body["data-listed"], str(min(10, len(bytes_of)))), ("several colours", int(body["data-colours"]) > 1, len(set(bytes_of)) > 1)):
        if shown != right:
            out.append(f"network: {what}: {shown!r}, not {right!r}")
    return out


def problems_of_turning(chromium, report):
    """What is wrong with the graph of a page on which it is turned to the model's and back, as sentences."""
    data = embedded(report)
    body, out = after(chromium, report, TURN)
    whole = lambda of: str(len(of["drawings"][-1]["boxes"]))
    expected = {"data-after": whole(data), "data-turns": "false"}
    if data["rewriting"] and data["rewriting"]["applied"]:
        expected |= {"data-turns": "true", "data-before": whole(data["rewriting"]), "data-pressed": "true", "data-again": whole(data)}
    return out + [f"turning the graph: {name} is {body.get(name)!r}, not {said!r}" for name, said in expected.items() if body.get(name) != said]


def problems_on_a_phone(chromium, report, width=390):
    """What is wrong with the page in a window of so many pixels, as sentences."""
    body, out = after(chromium, report, PHONE, width)
    if int(body["data-page"]) > width:
        out.append(f"on a phone: the page is {body['data-page']} wide, the window {width}")
    return out + [f"on a phone: '{word}' is broken within" for word in json.loads(body["data-broken"])]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    chromium, report, plan_file = shutil.which(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    if not chromium:
        print(f"SKIPPED: no browser {sys.argv[1]!r}, {report} was not opened")
        sys.exit(SKIPPED)
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    data = embedded(report)
    inputs = {o["name"] for o in data["operators"] if o["class"] < 0}
    ways = 2 * len(data["network"]["links"]) if data["network"] else 0
    failed = False
    for dark in (False, True):
        dom, console = render(chromium, report, dark)
        page = Page(dom)
        found = problems_of(page, console, plan, inputs, ways, dark)
        print(f"{report} ({'dark' if dark else 'light'}): {len(page.rows)} rows of operators, {len(found)} problems")
        for problem in found:
            print("error:", problem)
        failed = failed or bool(found)
    found = problems_of_turning(chromium, report) + problems_on_a_phone(chromium, report) + (problems_of_pointing(chromium, report) if ways else [])
    for problem in found:
        print("error:", problem)
    failed = failed or bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
