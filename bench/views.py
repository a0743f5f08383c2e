"""The tables that the pages make of the rows which benchmarks write as JSON: VIEWS, functions from what was written to lines of Markdown."""

import math


def table(columns, rows, right=()):
    """`columns` are pairs of a heading and a function from a row to its text; those whose headings are in `right` are set right."""
    heads = [head for head, _ in columns]
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join("--:" if head in right else "---" for head in heads) + "|"]
    lines += ["| " + " | ".join(str(cell(row)) for _, cell in columns) + " |" for row in rows]
    return ["", *lines, ""]


def milliseconds(key, decimals):
    return lambda row: "none fits" if row[key] is None else f"{row[key]:.{decimals}f}"


def pipeline_shape(row):
    return "-" if row["stages"] * row["micro_batches"] == 1 else f"{row['stages']} x {row['micro_batches']}"


def simulation(rows):
    def size(key, decimals):
        return lambda row: "-" if row[key] is None else f"{row[key]:,.{decimals}f}"

    rows = [row for row in rows if row["space"] == "flexflow" and row["abort"]]
    return table(
        [
            ("chain, abort on", lambda row: row["workload"]),
            ("devices", lambda row: row["devices"]),
            ("movement, discipline", lambda row: f"{row['movement']}, {row['discipline']}"),
            ("tasks", size("tasks", 0)),
            ("full pass, ns/task", size("full_ns_per_task", 1)),
            ("median proposal, us", size("delta_us_median", 1)),
            ("p90, us", size("delta_us_p90", 1)),
            ("proposals/s", size("proposals_per_s", 0)),
            ("times FlexFlow", size("over_flexflow", 1)),
            ("accepted", lambda row: f"{100 * row['accepted'] / row['evaluations']:.1f}%" if row["evaluations"] else "-"),
        ],
        rows,
    )


def cpu(rows):
    def part(key):
        return lambda row: f"{row[key] / row['measured_ps']:.2f}" if key in row else "-"

    columns = [
        ("network", lambda row: row["network"]),
        ("cores", lambda row: row["cores"]),
        ("kernels", lambda row: row["kernels"]),
        ("measured, ms", lambda row: f"{row['measured_ps'] / 1e9:.2f}"),
        ("spread", lambda row: f"{100 * row['spread_ps'] / row['measured_ps']:.1f}%"),
        ("predicted", part("predicted_ps")),
        ("sum", part("sum_ps")),
        ("of other sizes", part("other_sizes_ps")),
    ]
    return table(columns, rows, right=[head for head, _ in columns[1:]])


def pipeline(rows):
    def degrees(row):
        of = row["tensor_parallel"]
        return "-" if not of else f"{min(of)}" if min(of) == max(of) else f"{min(of)}-{max(of)}"

    columns = [
        ("network", lambda row: row["network"]),
        ("machine", lambda row: row["machine"]),
        ("expert", milliseconds("expert_ms", 1)),
        ("frugal", milliseconds("frugal_ms", 1)),
        ("micro", milliseconds("micro_batches_ms", 1)),
        ("stages", milliseconds("pipeline_ms", 1)),
        ("stages x micro-batches", lambda row: f"{row['stages']}{' (%d each)' % row['interleaved'] if row['interleaved'] > 1 else ''} x {row['micro_batches']}"),
        ("order", lambda row: "-" if pipeline_shape(row) == "-" else row["order"]),
        ("tensor", degrees),
        ("segments again", lambda row: row["segments"] if row["recomputing_stages"] else "-"),
        ("idle", lambda row: f"{100 * row['idle_share']:.0f}%"),
        ("GB on the fullest", lambda row: f"{row['fullest_bytes'] / 1e9:.1f}"),
        ("simulated", lambda row: row["simulated"]),
    ]
    return table(columns, rows, right=[head for head, _ in columns if head not in ("network", "machine", "order")])


UNITY = {"inception_v3": "Inception-v3", "resnext50": "ResNeXt-50", "bert_large": "BERT-Large", "dlrm": "DLRM", "candle_uno": "CANDLE Uno",
         "xdl": "XDL", "mlp": "MLP 16 x 8192"}


def joint(rows):
    """With the column of devices where rows have several numbers of them, else with what the paper has."""
    several = len({row["devices"] for row in rows}) > 1
    columns = [
        ("network", lambda row: UNITY[row["model"]]),
        *([("GPUs", lambda row: row["devices"])] if several else []),
        ("data parallel", milliseconds("data_parallel_ms", 1)),
        ("best expert", milliseconds("expert_ms", 1)),
        ("rewritten", milliseconds("rewritten_ms", 1)),
        ("plain", milliseconds("parallelized_ms", 2)),
        ("first", milliseconds("sequential_ms", 2)),
        ("unmapped", milliseconds("unmapped_ms", 2)),
        ("joint", lambda row: f"{row['joint_ms']:.2f}" + ("*" if row["mapped"] else "")),
        ("bound", milliseconds("bound_ms", 2)),
        ("pipelined", milliseconds("pipelined_ms", 2)),
        ("stages x micro-batches", pipeline_shape),
        ("graphs", lambda row: row["graphs"]),
        ("seconds", lambda row: f"{row['seconds']:.1f}"),
        ("with pipelines", lambda row: f"{row['pipelined_seconds']:.0f}"),
    ]
    if not several:
        columns += [("paper", lambda row: f"{row['published_speedup']:.1f}x"), ("paper's minutes", lambda row: f"{row['published_minutes']:.0f}")]
    return table(columns, rows, right=[head for head, _ in columns[1:]])


def optimal(rows):
    names = {"lenet": "LeNet", "rnnlm": "RNNLM"}
    return table(
        [
            ("model, devices", lambda row: f"{names[row['model']]}, {row['devices']}"),
            ("discipline", lambda row: row["discipline"]),
            ("strategies", lambda row: f"10^{row['log10_space']:.1f}"),
            ("at the root", lambda row: f"{row['root_bound_ms']:#.4g} ms"),
            ("optimum", lambda row: f"{row['optimum_ms']:.6f} ms" if row["proved"] else "not proved"),
            ("partial strategies", lambda row: f"{row['nodes']:,}"),
            ("seconds", lambda row: f"{row['seconds']:.1g}" if row["seconds"] < 1 else f"{row['seconds']:.0f}"),
        ],
        rows,
    )


def machine_mapping(rows):
    """Of tasks with all views of every degree."""
    graphs = {("chain", 129): "chain of 129", ("diamonds", 49): "16 diamonds (49 tasks)"}
    found = {}
    for row in rows:
        if row["measured"] == "mapping" and row["views_of"] == "all degrees" and row["devices"] == 8 and row["nodes"] in (1, 4):
            if (row["graph"], row["tasks"]) in graphs:
                key = (row["nodes"], graphs[row["graph"], row["tasks"]])
                found.setdefault(key, {"views": row["most_views"]})[row["costs"]] = row["seconds"]

    def time(costs):
        def shown(item):
            seconds = item[1][costs]
            return f"{seconds:.2g} s" if seconds >= 0.1995 else f"{1e3 * seconds:.2g} ms"
        return shown

    return table(
        [
            ("graph", lambda item: item[0][1]),
            ("machine", lambda item: f"{item[0][0]} x 8"),
            ("views of a task", lambda item: item[1]["views"]),
            ("constant", time("constant")),
            ("different", time("different")),
        ],
        found.items(),
    )


def profile(rows):
    rows = [row for row in rows if row["table"] == "source" and row["of"] == "all files" and row["what"] in ("interpolated", "roofline")]
    percent = lambda key: lambda row: f"{100 * row[key]:.1f}%"  # noqa: E731
    return table(
        [
            ("held out", lambda row: row["held_out"]),
            ("source", lambda row: row["what"]),
            ("entries", lambda row: row["entries"]),
            ("median", percent("median")),
            ("90%", percent("p90")),
            ("max", percent("max")),
        ],
        sorted(rows, key=lambda row: ("entry", "samples", "layer").index(row["held_out"])),
    )


def three(time):
    """Three digits."""
    return "none fits" if time is None else f"{time:.0f}" if time >= 99.95 else f"{time:.1f}"


def fabric_cells(made):
    """(row of what was found, times by network) of each cell."""
    cells = {}
    for row in made["rows"]:
        cells.setdefault((row["model"], row["servers"], row["degree"], row["gbps"]), {})[row["wiring"]] = row
    return [(by["found"], {wiring: row["iteration_ms"] for wiring, row in by.items()}) for by in cells.values()]


def fabric(made):
    published = {(p["model"], p["degree"]): p for p in made["published"]}
    cells = fabric_cells(made)
    large = cells[0][0]["servers"] > 16  # found is by mcmc there, and TopoOpt reports nothing
    tree = "fat tree" if large else "ideal fat tree"

    def paper(cell):
        p = published.get((cell[0]["model"], cell[0]["degree"]))
        return "" if not p else f"{p['least_ms']:g}" if p["least_ms"] == p["most_ms"] else f"{p['least_ms']:g} to {p['most_ms']:g}"

    return table(
        [
            ("model", lambda cell: cell[0]["model"]),
            ("d", lambda cell: cell[0]["degree"]),
            ("experts", lambda cell: three(cell[0]["expert_ms"])),
            *[(wiring, lambda cell, wiring=wiring: three(cell[1][wiring])) for wiring in cells[0][1]],
            (f"{tree} / found", lambda cell: f"{cell[1][tree] / cell[1]['found']:.2f}"),
            *([] if large else [("TopoOpt", paper)]),
        ],
        cells,
    )


def fabric_speedups(made):
    """Geometric mean and range over the models whose time depends on the network."""
    cells = [cell for cell in fabric_cells(made) if cell[0]["model"] not in ("resnet50", "vgg16")]

    def over(wiring):
        def shown(rate):
            ratios = [times[wiring] / times["found"] for found, times in cells if found["gbps"] == rate]
            return f"{math.prod(ratios) ** (1 / len(ratios)):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        return shown

    others = [wiring for wiring in cells[0][1] if wiring not in ("found", "joint moves")]
    return table([("B, Gb/s", lambda rate: f"{rate:g}"), *[(wiring, over(wiring)) for wiring in others]], sorted({found["gbps"] for found, _ in cells}))


def fabric_jobs(made):
    def times(key):
        return lambda row: ", ".join(three(time) for time in row[key])

    return table(
        [
            ("d", lambda row: row["degree"]),
            ("B, Gb/s", lambda row: f"{row['gbps']:g}"),
            ("network", lambda row: row["network"]),
            ("alone, ms", times("alone_ms")),
            ("together, ms", times("together_ms")),
            ("mean / own fabrics", lambda row: f"{row['over_own_fabrics']:.2f}"),
            ("worst / own fabrics", lambda row: f"{row['most_over_own_fabrics']:.2f}"),
        ],
        made["rows"],
    )


def fabric_rewiring(made):
    def rewired(number):
        def cell(row):
            w = row["rewired"][number]
            return three(w["iteration_ms"]) + (f" ({w['rewirings']})" if w["rewirings"] else "")

        return cell

    delays = [w["delay_us"] for w in made["rows"][0]["rewired"]]
    return table(
        [
            ("model", lambda row: row["model"]),
            ("d", lambda row: row["degree"]),
            ("one wiring", lambda row: three(row["iteration_ms"])),
            *((f"{delay:g} us", rewired(number)) for number, delay in enumerate(delays)),
        ],
        made["rows"],
    )


def textbook(rows):
    def seconds(key):
        return lambda row: "-" if row[key] is None else f"{row[key]:.4g}"

    columns = [
        ("case", lambda row: row["case"]),
        ("found, s", seconds("found_s")),
        ("textbook, s", seconds("textbook_s")),
        ("ratio", lambda row: f"{row['found_s'] / row['textbook_s']:.3f}" if row["textbook_s"] else "-"),
        ("fits", lambda row: "yes" if row["fits"] else "no"),
        ("kinds of blocks", lambda row: row["distinct_blocks"]),
        ("wall s", lambda row: f"{row['wall_s']:.1f}"),
        ("GB", lambda row: f"{row['peak_bytes'] / 1e9:.2f}"),
        ("found", lambda row: row["kind"]),
        ("textbook", lambda row: row["textbook"] or "none fits"),
    ]
    return table(columns, rows, right=[head for head, _ in columns if head not in ("case", "found", "textbook", "fits")])


def published(made):
    def shown(key, form):
        return lambda row: "-" if row[key] is None else format(row[key], form)

    columns = [
        ("runs", lambda row: f"{row['source']}, {row['part']}" if row["part"] else row["source"]),
        ("rows", lambda row: row["rows"]),
        ("geometric mean", shown("geometric_mean", ".2f")),
        ("least", shown("least", ".2f")),
        ("most", shown("most", ".2f")),
        ("within 10%", shown("within_10_percent", ".0%")),
        ("Spearman", shown("spearman", ".2f")),
        ("memory", shown("memory_geometric_mean", ".2f")),
    ]
    return table(columns, made["sources"], right=[head for head, _ in columns[1:]])


def ranks(rows):
    columns = [
        ("ranks", lambda row: row["ranks"]),
        ("seconds", lambda row: f"{row['seconds']:.2f}"),
        ("evaluations/s", lambda row: f"{row['evaluations_per_s']:.0f}"),
        ("efficiency", lambda row: f"{row['efficiency']:.2f}"),
        ("messages/s", lambda row: f"{row['messages_per_s']:.0f}"),
        ("kB/s", lambda row: f"{row['bytes_per_s'] / 1e3:.0f}"),
        ("bytes/evaluation", lambda row: f"{row['bytes_per_evaluation']:.0f}"),
        ("result", lambda row: "the same" if row["same_result"] else "ANOTHER"),
    ]
    return table(columns, rows, right=[head for head, _ in columns[:-1]])


def search_time(made):
    def seconds(value):
        return f"{value:#.2g}" if value < 9.95 else f"{value:.0f}"

    columns = [
        ("network", lambda row: row["network"]),
        ("devices", lambda row: row["devices"]),
        ("last improvement", lambda row: row["evaluations_to_final"]),
        ("full, s", lambda row: seconds(row["full"]["seconds_to_final"])),
        ("delta, s", lambda row: seconds(row["delta"]["seconds_to_final"])),
        ("ratio", lambda row: f"{row['full']['seconds_to_final'] / row['delta']['seconds_to_final']:.1f}"),
        ("full in all, s", lambda row: seconds(row["full"]["seconds"])),
        ("delta in all, s", lambda row: seconds(row["delta"]["seconds"])),
        ("full, proposals/s", lambda row: f"{row['full']['proposals_per_s']:,.0f}"),
        ("delta, proposals/s", lambda row: f"{row['delta']['proposals_per_s']:,.0f}"),
        ("the same", lambda row: "yes" if row["same"] else "NO"),
    ]
    return table(columns, made["times"], right=[head for head, _ in columns if head not in ("network", "the same")])


def searches_compared(made):
    def over(key):
        return lambda row: f"{row[key] / row['mcmc_ms']:.2f}" if row.get(key) and row["mcmc_ms"] else "-"

    columns = [
        ("network", lambda row: row["network"]),
        ("devices", lambda row: row["devices"]),
        ("data parallel", milliseconds("data_parallel_ms", 1)),
        ("expert", milliseconds("expert_ms", 1)),
        ("layer-wise", milliseconds("layerwise_ms", 1)),
        ("policy gradient", lambda row: milliseconds("policy_gradient_ms", 1)(row) if "policy_gradient_ms" in row else "-"),
        ("mcmc", milliseconds("mcmc_ms", 1)),
        ("data parallel / mcmc", over("data_parallel_ms")),
        ("layer-wise / mcmc", over("layerwise_ms")),
        ("policy gradient / mcmc", over("policy_gradient_ms")),
    ]
    return table(columns, made["strategies"], right=[head for head, _ in columns[1:]])


VIEWS = {view.__name__: view for view in (cpu, fabric, fabric_jobs, fabric_rewiring, fabric_speedups, joint, machine_mapping, optimal, pipeline, profile, published,
                                          ranks, search_time, searches_compared, simulation, textbook)}
