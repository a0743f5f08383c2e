#!/usr/bin/env python3
"""Has published runs predicted, from files made here: every column must mean what it should, wrong files must be refused by file, line, column, value
and rule, figures must be those worked out here.

    check_published.py <folder of a build>
"""

import contextlib
import html.parser
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "published"))
import figures
import fit
import formats
import rows as files

# One row of each format, all values different where they can be.
MEGATRON = {"name": "76B", "layers": "60", "hidden": "10240", "heads": "80", "tensor": "8", "pipeline": "4", "gpus": "1024", "batch": "1792",
            "micro_batch": "2", "tflops": "140"}
MPT = {"device": "a100", "model": "125m", "sequence": "512", "gpus": "8", "micro_batch": "16", "accumulation": "3", "checkpointing": "0",
       "tokens_per_second_per_gpu": "165681"}
TITAN = {"model": "llama3_405b", "device": "h100_500w", "gpus": "512", "fsdp": "4", "tensor": "8", "pipeline": "8", "context": "2",
         "schedule": "Interleaved 1F1B", "sequence": "65536", "batch": "32", "type": "f8", "compiled": "1", "checkpointing": "full", "tps": "47",
         "memory": "75.9"}
SINGLE = {"work": "bert_large_128", "device": "v100", "gpus": "1", "type": "f32", "batch_per_gpu": "32", "published": "50", "unit": "sequences/s"}
REDUCE = {"cluster": "8 A100 of one node (NVLink 3)", "busbw": "232.5", "source": "nccl-tests#175"}


def text(*rows, columns=None):
    columns = columns or list(rows[0])
    return "\n".join(["# What this is.", "", ",".join(columns), *(",".join(row[c] for c in columns) for row in rows)]) + "\n"


class Page(html.parser.HTMLParser):
    def __init__(self, content):
        super().__init__()
        self.elsewhere, self.points = [], 0
        self.feed(content)

    def handle_starttag(self, tag, attributes):
        self.points += tag == "circle" and ("r", "4") in attributes and "cy" in dict(attributes) and dict(attributes)["cx"] != "13"
        self.elsewhere += [value for name, value in attributes if name in ("src", "href") and not value.startswith("#")]


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.file = self.folder / "runs.csv"


class Files(Folder):
    def asked(self, *rows, columns=None):
        self.file.write_text(text(*rows, columns=columns))
        known, read = files.read(self.file, formats.FORMATS)
        return [known.read(row) for row in read]

    def refused(self, content, *expected):
        self.file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with self.assertRaises(files.wrong) as caught:
            known, read = files.read(self.file, formats.FORMATS)
            for row in read:
                known.read(row)
        for part in (str(self.file), *expected):
            self.assertIn(part, str(caught.exception))

    def test_order_of_columns(self):
        for row in (MEGATRON, MPT, TITAN, SINGLE, REDUCE):
            self.assertEqual(self.asked(row), self.asked(row, columns=sorted(row, reverse=True)))

    def test_megatron(self):
        one = self.asked(MEGATRON)[0]
        self.assertEqual(one["question"]["run"], {"data": 32, "tensor": 8, "context": 1, "groups": 4, "rounds": 3, "micro_batch": 2,
                                                  "micro_batches": 28, "again": "all", "sharded": "nothing", "sequence_parallel": False,
                                                  "fusion": "dropout", "f8_products": False})
        self.assertEqual(one["question"]["model"],
                         "zoo:gpt,layers=60,hidden=10240,heads=80,sequence=2048,vocabulary=51200,type=f16,dropout=0.1,flash=false")
        self.assertFalse(one["question"]["overlap"])
        self.assertEqual((one["name"], one["published"], one["unit"]), ("76B", 140, "Tflops per GPU"))
        self.assertAlmostEqual(one["amount"] * 1024e12 / (96 * 1792 * 2048 * 60 * 10240**2), 1 + 2048 / 61440 + 51200 / 9830400)
        self.assertEqual(self.asked(MEGATRON | {"name": "mine"})[0]["question"]["run"]["rounds"], 1)

    def test_mpt(self):
        one, again = self.asked(MPT, MPT | {"checkpointing": "1"})
        self.assertEqual(one["question"]["run"], {"data": 8, "tensor": 1, "context": 1, "groups": 1, "rounds": 1, "micro_batch": 16,
                                                  "micro_batches": 3, "again": "none", "sharded": "parameters", "sequence_parallel": True,
                                                  "fusion": "none", "f8_products": False})
        self.assertEqual(one["question"]["model"],
                         "zoo:gpt,layers=12,hidden=768,heads=12,sequence=512,vocabulary=50368,type=bf16,dropout=0,flash=true")
        self.assertEqual(one["question"]["gradients"], "of_weights")
        self.assertEqual((one["amount"], one["published"], one["part"]), (16 * 3 * 512, 165681, "a100"))
        self.assertEqual((again["question"]["run"]["again"], again["part"]), ("all", "a100, checkpointing"))

    def test_torchtitan(self):
        one, two = self.asked(TITAN, TITAN | {"pipeline": "1", "fsdp": "32", "schedule": "", "type": "bf16", "compiled": "0", "checkpointing": "selective",
                                              "memory": ""})
        self.assertEqual(one["question"]["run"], {"data": 4, "tensor": 8, "context": 2, "groups": 8, "rounds": 2, "micro_batch": 4, "micro_batches": 8,
                                                  "again": "all", "sharded": "parameters", "sequence_parallel": True, "fusion": "compiled", "f8_products": True})
        self.assertIn("layers=126,hidden=16384,", one["question"]["model"])
        self.assertTrue(one["question"]["model"].endswith(",sequence=65536,type=bf16"))
        self.assertEqual(one["question"]["gradients"], "f32_of_bf16")
        self.assertEqual(one["question"]["device"]["memory_rate"], 2.4e12)
        self.assertEqual((one["amount"], one["published"], one["published_memory_gib"]), (32 * 65536 * 4 / 512, 47, 75.9))
        self.assertIn("output layer in f8, too", one["notes"])
        self.assertIsNone(one["fit"])
        run = two["question"]["run"]
        self.assertEqual((run["data"], run["groups"], run["micro_batch"], run["again"], two["published_memory_gib"]), (32, 1, 32, "every other", None))
        self.assertEqual((run["fusion"], run["f8_products"]), ("none", False))
        self.assertNotIn("output layer in f8, too", two["notes"])

    def test_others(self):
        one = self.asked(SINGLE)[0]
        self.assertEqual((one["amount"], one["question"]["model"], one["question"]["device"]),
                         (32, "zoo:bert_large,type=f32,sequence=128,flash=false,predictions=20", {"preset": "v100"}))
        image = self.asked(SINGLE | {"work": "resnet152", "device": "p100", "unit": "images/s"})[0]
        self.assertEqual((image["question"]["model"], image["fit"]), ("zoo:resnet152,type=f32", ("p100", "f32", ["convolution", "matmul"])))
        several, one = self.asked(REDUCE | {"cluster": "16 nodes of 8 H100"}, REDUCE)
        self.assertEqual((one["question"]["devices"], several["question"]["devices"]), (8, 128))
        self.assertAlmostEqual(one["amount"], 2 * 7 / 8 * 8)
        self.assertFalse(one["question"]["device"]["nvls"])
        self.assertTrue(self.asked(REDUCE | {"cluster": "8 H200 by NVLS"})[0]["question"]["device"]["nvls"])

    def test_wrong_files(self):
        self.refused("", "no header")
        self.refused(b"\xff\xfe", "cannot be read")
        self.refused("a,b\n1,2\n", ":1: unknown columns a,b", "MPT: device,model,sequence,gpus,", "all-reduce: cluster,busbw,source")
        self.refused(text(MPT).split("a100")[0], "no rows behind the columns")
        self.refused(text(MPT) + "a100,125m\n", ":5: 2 values, columns are 8")
        self.refused(text(MPT, columns=[*MPT, "gpus"]), "unknown columns")
        self.refused(text(REDUCE | {"source": '"a'}), "no table of comma separated values")

    def test_wrong_values(self):
        for row, column, value, rule in (
                (MPT, "gpus", "0", "an integer from 1 to 8192"), (MPT, "gpus", "12", "a multiple of 8, or fewer"), (MPT, "gpus", "8.0", "an integer"),
                (MPT, "model", "2b", "one of 125m, 350m"), (MPT, "device", "tpu", "one of k80, p100, v100, a100"), (MPT, "checkpointing", "yes", "one of 0, 1"),
                (MPT, "tokens_per_second_per_gpu", "-1", "a positive number"), (MPT, "tokens_per_second_per_gpu", "nan", "a positive number"),
                (MPT, "micro_batch", "99999999999", "an integer from 1"), (MEGATRON, "batch", "1793", "a multiple of replicas x micro_batch, 64"),
                (MEGATRON, "gpus", "1032", "a multiple of tensor x pipeline, 32"), (MEGATRON, "layers", "61", "a multiple of pipeline, 4"),
                (MEGATRON, "heads", "20", "a multiple of tensor, 8"), (MEGATRON, "tflops", "", "a positive number"),
                (MEGATRON, "name", "", "must not be empty"), (TITAN, "tensor", "16", "must divide the heads of keys and values, 8"),
                (TITAN, "schedule", "zigzag", "one of nothing, 1f1b"), (TITAN, "type", "f4", "one of bf16, f8"),
                (TITAN, "context", "3", ""), (TITAN, "checkpointing", "some", "one of none, selective, all but attention, full"), (TITAN, "memory", "much", "a positive number"),
                (SINGLE, "work", "resnet51", "one of alexnet, inception_v3, resnet50"), (SINGLE, "work", "resnet50_128", "bert_base_SEQUENCE"),
                (SINGLE, "work", "bert_large", "bert_large_SEQUENCE"), (SINGLE, "unit", "images/s", "sequences/s"),
                (REDUCE, "cluster", "A100", "must begin as '8 A100'"), (REDUCE, "cluster", "2 nodes of 4 A100", "8 on each"),
                (REDUCE, "busbw", "fast", "a positive number")):
            with self.subTest(column=column, value=value):
                self.refused(text(row, row | {column: value}), rule, "is '" if column == "context" else f":5: {column} is '{value}'")

    def test_figures(self):
        self.assertEqual(figures.ranks([3, 1, 3, 2]), [3.5, 1, 3.5, 2])
        self.assertAlmostEqual(figures.spearman([1, 2, 3, 4], [1, 3, 2, 4]), 0.8)
        self.assertIsNone(figures.spearman([1], [2]))
        of = lambda part, predicted, published: {"source": "s", "part": part, "predicted": predicted, "published": published,  # noqa: E731
                                                 "ratio": predicted and predicted / published}
        whole, a, b = figures.summary([of("a", 2, 1), of("a", 1, 2), of("b", 1.05, 1), of("b", None, 1)])
        self.assertEqual((whole["rows"], whole["predicted"], a["rows"], b["within_10_percent"]), (4, 3, 2, 1))
        self.assertAlmostEqual(a["geometric_mean"], 1)
        self.assertEqual(a["spearman"], -1)
        self.assertAlmostEqual(whole["within_10_percent"], 1 / 3)


class Fits(unittest.TestCase):
    """Of runs that take some seconds, and some that are inverse to parts."""

    def price(self, rows, parts):
        self.asked += 1
        return [row["throughput"] / row["published"] if row["name"] != "large" else "no memory" for row in (self.predicted(row, parts) for row in rows)]

    @staticmethod
    def predicted(row, parts):
        return row | {"throughput": 1 / (row["other"] + sum(row["work"].get(c, 0) / p for c, p in parts.items()))}

    def test_parts_are_found(self):
        self.asked = 0
        true = {"matmul": 0.4, "attention": 0.7}
        rows = [{"name": f"{i}", "source": "one" if i % 2 else "two", "other": 0.1 * i, "work": {"matmul": 1 + i, "attention": (i * i) % 7},
                 "fit": ("a100", "bf16", ["matmul", "attention"])} for i in range(1, 9)]
        for row in rows:
            row["published"] = self.predicted(row, true)["throughput"]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            fit.report([*rows, rows[0] | {"name": "large"}, {"name": "not fitted", "source": "one"}], self.price)
        lines = said.getvalue().splitlines()
        self.assertEqual(lines[1], "left out: large: no memory")
        self.assertEqual([line[17:33].strip() for line in lines[2:]], ["all", "all but one", "all but two"])
        for line in lines[2:]:
            self.assertIn("matmul 0.400 attention 0.700", line)
            self.assertIn("1.000  1.000    100%", line)
        self.assertEqual(lines[3].count("100%"), 2)  # what was left out, too

    def test_parts_that_no_run_tells_are_not_said(self):
        self.asked = 0
        rows = [{"name": "a", "source": "one", "other": 1, "work": {"matmul": 1, "attention": 0.001}, "published": 0.3,
                 "fit": ("v100", "f32", ["matmul", "attention"])}]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            fit.report(rows, self.price)
        self.assertIn("matmul 0.429 ", said.getvalue())  # 1 + 1 / part = 1 / 0.3
        self.assertNotIn("attention", said.getvalue())


class Predictions(Folder):
    def run_on(self, *contents, code=0, options=()):
        named = []
        for n, content in enumerate(contents):
            named.append(self.folder / f"part{n}.csv")
            named[-1].write_text(content)
        done = subprocess.run([sys.executable, str(ROOT / "bench/published/main.py"), "--programs", PROGRAMS, "--out", str(self.folder / "p.json"), *options,
                               *map(str, named)], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads((self.folder / "p.json").read_text()) if code < 2 else done.stderr

    def test_whole(self):
        small = TITAN | {"model": "llama3_8b", "gpus": "8", "fsdp": "8", "tensor": "1", "pipeline": "1", "context": "1", "schedule": "", "sequence": "1024",
                         "type": "bf16"}
        made = self.run_on(text(MPT, MPT | {"checkpointing": "1"}), text(*(small | {"checkpointing": c} for c in ("none", "selective", "full", "all but attention"))), text(REDUCE),
                           text(SINGLE))
        kept, again, none, selective, full, attention, reduce, _ = made["rows"]
        for row in made["rows"]:
            self.assertAlmostEqual(row["ratio"], row["predicted"] / row["published"])
        self.assertAlmostEqual(kept["predicted"], 16 * 3 * 512 / kept["seconds"])
        # Forward once more is a third of the work: less, for the output layer and the update are not done again.
        self.assertTrue(0.75 < again["predicted"] / kept["predicted"] < 0.9)
        # Every other block computed again is half of the way.
        self.assertAlmostEqual(selective["seconds"] / (none["seconds"] + full["seconds"]), 0.5, delta=0.01)
        self.assertTrue(full["predicted_memory_gib"] < selective["predicted_memory_gib"] < none["predicted_memory_gib"])
        self.assertTrue(none["seconds"] < attention["seconds"] < full["seconds"])
        self.assertTrue(full["predicted_memory_gib"] < attention["predicted_memory_gib"] < selective["predicted_memory_gib"])
        self.assertAlmostEqual(reduce["predicted"], 232.5, delta=1)  # the rate of the links
        self.assertEqual([(s["source"], s["part"], s["rows"]) for s in made["sources"][:4]],
                         [("part0", "", 2), ("part0", "a100", 1), ("part0", "a100, checkpointing", 1), ("part1", "", 4)])
        page = Page((self.folder / "p.html").read_text())
        self.assertEqual((page.elsewhere, page.points), ([], 8))

    def test_kernels(self):
        small = TITAN | {"model": "llama3_8b", "gpus": "8", "fsdp": "8", "tensor": "1", "pipeline": "1", "context": "1", "schedule": "", "sequence": "1024",
                         "checkpointing": "none"}
        eager, compiled, f8 = self.run_on(text(*(small | {"type": t, "compiled": c} for t, c in (("bf16", "0"), ("bf16", "1"), ("f8", "1")))))["rows"]
        # Products are most of the time: in f8 they take half as long, and a third of that is for casts at most.
        self.assertTrue(0.9 < compiled["seconds"] / eager["seconds"] < 0.99)
        self.assertTrue(0.5 < f8["seconds"] / compiled["seconds"] < 0.8)
        # Each of 32 layers keeps a tensor less of 14,336 features, of 32 x 1024 tokens in bf16.
        self.assertAlmostEqual(eager["predicted_memory_gib"] - compiled["predicted_memory_gib"], 32 * 14336 * 32 * 1024 * 2 / 2**30, delta=0.5)
        self.assertAlmostEqual(f8["predicted_memory_gib"], compiled["predicted_memory_gib"])
        rings, switch = self.run_on(text(*(REDUCE | {"cluster": f"8 H100 {how}"} for how in ("by rings", "by NVLS"))))["rows"]
        self.assertAlmostEqual(rings["predicted"], 370, delta=1)
        self.assertAlmostEqual(switch["predicted"], 480, delta=1)

    def test_fit(self):
        named = self.folder / "one.csv"
        named.write_text(text(SINGLE, SINGLE | {"work": "bert_base_128", "published": "150"}))
        done = subprocess.run([sys.executable, str(ROOT / "bench/published/main.py"), "--programs", PROGRAMS, "--fit", str(named)], capture_output=True,
                              text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        head, line = done.stdout.splitlines()
        self.assertRegex(line, r"^v100, f32 +all +2 +matmul 0\.\d+ ")

    def test_fewer_replicas(self):
        run = MEGATRON | {"layers": "8", "hidden": "1024", "heads": "16", "name": "small", "tensor": "2", "pipeline": "2", "gpus": "128", "batch": "512",
                          "micro_batch": "1"}
        whole = self.run_on(text(run))["rows"][0]
        fewer = self.run_on(text(run), options=["--memory", "5MB"])["rows"][0]
        self.assertFalse([n for n in whole["notes"] if "replicas" in n])
        self.assertTrue([n for n in fewer["notes"] if "of 32 replicas simulated" in n], fewer["notes"])
        self.assertAlmostEqual(fewer["predicted"] / whole["predicted"], 1, delta=0.1)
        none = self.run_on(text(run), code=1, options=["--memory", "1MB"])["rows"][0]
        self.assertIsNone(none["predicted"])
        self.assertIn("--memory allows less", none["notes"][-1])

    def test_nothing_runs_where_a_file_is_wrong(self):
        said = self.run_on(text(MPT), text(MPT | {"gpus": "x"}), code=2)
        self.assertIn("part1.csv:4: gpus is 'x'", said)


if __name__ == "__main__":
    PROGRAMS = sys.argv.pop(1)
    unittest.main()
