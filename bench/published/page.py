"""The comparison as one HTML page that needs nothing else: figures of the sources, a plot of each, all rows."""

import html
import math
import pathlib
import re

STYLE = pathlib.Path(__file__).resolve().parents[1] / "page_style.hpp"
OWN_STYLE = """.band { fill: var(--c0); opacity: 0.12; } .same { stroke: var(--strong); } .note { white-space: normal; min-width: 36ch; color: var(--muted); }
.curves h3 { font-size: 15px; font-weight: 500; margin: 8px 0; }
"""
LEFT, RIGHT, TOP, BOTTOM = 64, 440, 12, 360


def cells(row, head=False):
    """A row of a table, of (text, its class or nothing)."""
    tag = "th" if head else "td"
    return "<tr>" + "".join(f'<{tag}{f" class={kind}" if kind else ""}>{html.escape(text)}</{tag}>' for text, kind in row) + "</tr>\n"


def table(heads, rows):
    return f'<div class="scroll"><table><thead>{cells(heads, True)}</thead><tbody>\n{"".join(map(cells, rows))}</tbody></table></div>\n'


def number(value, form):
    return ("-" if value is None else format(value, form), "n")


def plot(number, name, rows):
    """Predicted over published, both logarithmic, with the diagonal and a tenth around it; a colour for each part."""
    values = [v for r in rows for v in (r["predicted"], r["published"])]
    low, high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1
    x = lambda v: LEFT + (RIGHT - LEFT) * (math.log10(v) - low) / (high - low)  # noqa: E731
    y = lambda v: BOTTOM - (BOTTOM - TOP) * (math.log10(v) - low) / (high - low)  # noqa: E731
    ends = 10**low, 10**high
    steps = (1,) if high - low > 2 else (1, 2, 5) if high - low > 0.7 else (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9)
    ticks = [m * 10**p for p in range(math.floor(low), math.ceil(high) + 1) for m in steps if low <= math.log10(m * 10**p) <= high]
    out = [f'<svg viewBox="0 0 470 400" role="img"><title>{html.escape(name)}: predicted over published</title>',
           f'<clipPath id="inside{number}"><rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"/></clipPath>']
    for t in ticks:
        out.append(f'<path class="grid" d="M{x(t):.1f} {TOP}V{BOTTOM}M{LEFT} {y(t):.1f}H{RIGHT}"/><text x="{x(t):.1f}" y="{BOTTOM + 16}" '
                   f'text-anchor="middle">{t:,g}</text><text x="{LEFT - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{t:,g}</text>')
    corner = [(ends[0], 1.1), (ends[1], 1.1), (ends[1], 0.9), (ends[0], 0.9)]
    around = "L".join(f"{x(v):.1f} {y(v * f):.1f}" for v, f in corner)
    out.append(f'<g clip-path="url(#inside{number})"><path class="band" d="M{around}Z"/></g>'
               f'<path class="same" d="M{LEFT} {BOTTOM}L{RIGHT} {TOP}"/>')
    parts = list(dict.fromkeys(r["part"] for r in rows))
    for r in rows:
        out.append(f'<circle cx="{x(r["published"]):.1f}" cy="{y(r["predicted"]):.1f}" r="4" fill="var(--c{parts.index(r["part"]) % 8})">'
                   f'<title>{html.escape(r["name"])}: {r["predicted"]:.4g} of {r["published"]:.4g} {html.escape(r["unit"])}</title></circle>')
    out.append(f'<text x="{RIGHT}" y="{BOTTOM + 34}" text-anchor="end">published</text><text x="{LEFT}" y="{BOTTOM + 34}">predicted, upwards</text></svg>')
    keys = [f'<svg class="key" viewBox="0 0 26 10" aria-hidden="true"><circle cx="13" cy="5" r="4" fill="var(--c{n % 8})"/></svg>{html.escape(part)} '
            for n, part in enumerate(parts) if part]
    return f"<div><h3>{html.escape(name)}</h3>\n" + "\n".join(out) + f"<p>{''.join(keys)}</p></div>\n"


def page(rows, sources):
    style = re.search(r'R"css\((.*?)\)css"', STYLE.read_text(encoding="utf-8"), re.DOTALL)[1]
    figures = table(
        [("source", ""), ("rows", "n"), ("geometric mean", "n"), ("least", "n"), ("most", "n"), ("within 10%", "n"), ("Spearman", "n"), ("memory", "n")],
        [[(f"{s['source']}, {s['part']}" if s["part"] else s["source"], ""), number(s["rows"], "d"), number(s["geometric_mean"], ".3f"),
          number(s["least"], ".2f"), number(s["most"], ".2f"), number(s["within_10_percent"], ".0%"), number(s["spearman"], ".2f"),
          number(s["memory_geometric_mean"], ".3f")] for s in sources])
    told = {source: [r for r in rows if r["source"] == source and r["predicted"] is not None] for source in dict.fromkeys(r["source"] for r in rows)}
    plots = "".join(plot(n, source, own) for n, (source, own) in enumerate(told.items()) if own)
    listed = table(
        [("source", ""), ("run", ""), ("predicted", "n"), ("published", "n"), ("ratio", "n"), ("unit", ""), ("GiB", "n"), ("of", "n"), ("not as published", "note")],
        [[(r["source"], ""), (r["name"], ""), number(r["predicted"], ".4g"), number(r["published"], ".4g"), number(r["ratio"], ".3f"), (r["unit"], ""),
          number(r.get("predicted_memory_gib"), ".1f"), number(r.get("published_memory_gib"), ".1f"), ("; ".join(r["notes"]), "note")] for r in rows])
    return ('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>Predicted and published</title>\n<style>{style}{OWN_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Predicted and published</h1>\n"
            "<p>Runs as they were published, predicted by the library. Ratios are of predicted to published. Memory: predicted to published, geometric "
            f"mean. The bands in the plots are within 10%.</p>\n{figures}<h2>Plots</h2>\n<div class=\"curves\">\n{plots}</div>\n<h2>Runs</h2>\n{listed}"
            "</main>\n</body>\n</html>\n")
