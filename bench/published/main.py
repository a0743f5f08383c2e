#!/usr/bin/env python3
"""Predicts runs that were published, exactly as they were run, and compares.

    main.py --programs FOLDER [--out FILE] [--memory 8GiB] [FILE.csv|FOLDER ...]

A file is recognised by its columns, in any order, behind lines of comments (#); an unknown one is refused with those that are known. By default all of
$PARSEARCH_EXTERNAL_DATA/published, and those beside this program. Writes `rows` (source, part, name, unit, predicted, published, ratio, gpus, notes: what is not as published, and
others) and `sources` (figures of each, and of its parts) as JSON, and beside it a page with plots. Ratios are of predicted to published. Exits with
1 where a row could not be predicted (its notes say why), with 2 where a file is wrong; then nothing is run.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import figures  # noqa: E402
import fit  # noqa: E402
import formats  # noqa: E402
import page  # noqa: E402
import rows as files  # noqa: E402


def asked_of(paths):
    """What the rows of all files ask, each with its source."""
    out, names = [], [path.stem for path in paths]
    for path in paths:
        known, rows = files.read(path, formats.FORMATS)
        out += [{"source": path.stem if names.count(path.stem) == 1 else str(path), **known.read(row)} for row in rows]
    return out


def answers(programs, asked, memory):
    """What each row takes, in order: {seconds} and others, or {error}."""
    with tempfile.TemporaryDirectory() as folder:
        runs = pathlib.Path(folder, "runs.json")
        runs.write_text(json.dumps([a["question"] for a in asked if "task_graph" not in a["question"]]), encoding="utf-8")
        command = [str(programs / "bench" / "published"), str(runs), *(["--memory", memory] if memory else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pricing:
            for one in asked:
                if "task_graph" in one["question"]:
                    yield of_task_graph(programs, one["question"])
                    continue
                line = pricing.stdout.readline()
                if not line:
                    raise SystemExit(f"{one['question']['place']}: {command[0]} ended with exit code {pricing.wait()}")
                yield json.loads(line)


def of_task_graph(programs, question):
    program = programs / "bench" / "taskgraphs"
    if not program.is_file():
        return {"error": f"{program} is not built: it needs FlatBuffers"}
    done = subprocess.run([str(program), question["task_graph"], "--gbps", str(question["gbps"])], text=True, capture_output=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip()}
    return {"seconds": float(done.stdout.splitlines()[1].split()[3]) / 1e3}


def ratios(programs, memory):
    """What a fit asks: ratios of predicted to published of rows, where their devices reach other parts of their peaks; in place of one, why there is
    none."""

    def price(rows, parts):
        changed = []
        for one in rows:
            question = dict(one["question"])
            reached = {name: {one["fit"][1]: part} for name, part in parts.items()}
            question["device"] = {**question["device"], "reached": reached}
            changed.append({**one, "question": question})
        out = []
        for one, answer in zip(changed, answers(programs, changed, memory)):
            out.append(answer.get("error") or one["amount"] / answer["seconds"] / one["published"])
        return out

    return price


def compared(one, answer):
    """A row of what is written."""
    row = {key: one[key] for key in ("source", "part", "name", "unit")}
    notes, predicted = list(one["notes"]), None
    if "error" in answer:
        notes.append(f"not predicted: {answer['error']}")
    else:
        predicted = one["amount"] / answer["seconds"] if one["amount"] else answer["seconds"] * 1e3
        whole = one["question"].get("run", {}).get("data", 0)
        if answer.get("replicas", whole) != whole:
            notes.append(f"{answer['replicas']} of {whole} replicas simulated")
    row |= {"predicted": predicted, "published": one["published"], "ratio": predicted and predicted / one["published"], "gpus": one.get("gpus"),
            "seconds": answer.get("seconds"), "wall_s": answer.get("wall_s"), "notes": notes}
    if "memory" in answer:
        row["predicted_memory_gib"] = answer["memory"] / 2**30
    if one.get("published_memory_gib"):
        row["published_memory_gib"] = one["published_memory_gib"]
        row["memory_ratio"] = predicted and row["predicted_memory_gib"] / one["published_memory_gib"]
    return row


def shown(value, form, none="-"):
    return none if value is None else format(value, form)


def main():
    parser = argparse.ArgumentParser(prog="published", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder of a build: its bench/published and bench/taskgraphs are run")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/bench/published.json", help="the rows; the page is beside it (%(default)s)")
    parser.add_argument("--memory", help="what simulations may take, as 8GiB: larger runs have fewer replicas, and say so (half of the machine's)")
    parser.add_argument("--fit", action="store_true", help="print instead the parts of peaks, by device and type, with which predictions come nearest to"
                        " the runs, and to all but those of one source, and how near they come")
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE.csv|FOLDER",
                        help="of a folder all its .csv; default: $PARSEARCH_EXTERNAL_DATA/published, and those beside this program")
    given = parser.parse_args()
    named = given.files or [pathlib.Path(os.environ.get("PARSEARCH_EXTERNAL_DATA", "."), "published"), pathlib.Path(__file__).parent]
    paths = [file for path in named for file in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]
    if not paths:
        parser.error(f"no .csv in {', '.join(map(str, named))}")
    try:
        asked = asked_of(paths)
    except files.wrong as why:
        print(f"error: {why}", file=sys.stderr)
        return 2
    if given.fit:
        fit.report(asked, ratios(given.programs, given.memory))
        return 0
    rows = []
    print(f"{'source':<14} {'predicted':>10} {'published':>10} {'ratio':>6}  row; what is not as published")
    for one, answer in zip(asked, answers(given.programs, asked, given.memory)):
        row = compared(one, answer)
        rows.append(row)
        print(f"{row['source']:<14} {shown(row['predicted'], '10.4g'):>10} {row['published']:>10.4g} {shown(row['ratio'], '6.3f'):>6}  "
              f"{row['name']}, {row['unit']}{''.join('; ' + note for note in row['notes'])}", flush=True)
    sources = figures.summary(rows)
    print(f"\n{'source':<36} {'rows':>5} {'geometric mean':>15} {'least':>6} {'most':>6} {'within 10%':>11} {'Spearman':>9}")
    for s in sources:
        name = f"  {s['source']}, {s['part']}" if s["part"] else s["source"]
        print(f"{name:<36} {s['rows']:>5} {shown(s['geometric_mean'], '.3f'):>15} {shown(s['least'], '.2f'):>6} {shown(s['most'], '.2f'):>6} "
              f"{shown(s['within_10_percent'], '.0%'):>11} {shown(s['spearman'], '.2f'):>9}")
        if s["memory_geometric_mean"]:
            print(f"{'  memory':<42} {s['memory_geometric_mean']:>15.3f} {'':>13} {s['memory_within_10_percent']:>11.0%}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"rows": rows, "sources": sources}, indent=1) + "\n", encoding="utf-8")
    given.out.with_suffix(".html").write_text(page.page(rows, sources), encoding="utf-8")
    return 1 if any(row["predicted"] is None for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
