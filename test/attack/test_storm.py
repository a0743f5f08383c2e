"""Thousands of random inputs: each ends in time, within its memory, with an exit code that docs/plan.md names, and with an error of plan's own where it
is refused. PARSEARCH_ATTACK=all tries all, else a few of each kind. Every input follows from PARSEARCH_ATTACK_SEED and its number, which a failure
names with the command."""

import concurrent.futures
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import time

import attack

ALL = os.environ.get("PARSEARCH_ATTACK") == "all"
SEED = int(os.environ.get("PARSEARCH_ATTACK_SEED", "18"))
PATIENCE = float(os.environ.get("PARSEARCH_ATTACK_PATIENCE", "1"))
SECONDS, MEMORY = 30 * PATIENCE, 4 << 20  # of an input; KiB of its addresses
MODEL, CLUSTER = ("--model", "zoo:mlp,batch=64"), ("--cluster", "1x2xp100")
SMALL = (*MODEL, *CLUSTER, "--evaluations", "20", "--quiet")
CODES = {0, 1, 2, 3, 4, 130}  # of docs/plan.md
NUMBERS = ("0", "-1", "1", "2", "3.5", "1e9", "1e309", "-1e309", "nan", "inf", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
           "18446744073709551616", "00", "0x10", "1e-320", "99999999999999999999999999")
TEXTS = ("", " ", "none", "all", "true", "false", "é", "日本", "\x1b[31m", "\x07", "../..", "/", "/dev/null", ".", "a=b", "a=b,c", "=", ",", ",,", "zoo:", "zoo:mlp",
         "zoo:mlp,batch=0", "zoo:mlp,hidden=8*3", "zoo:mlp,batch=64,batch=65", "zoo:nothing", "1x1xp100", "0x2xp100", "3x1xh100", "1x2xp1000", "fabric:",
         "fabric:torus", "mcmc", "greedy", "10s", "1ms", "0s", "-1s", "1GB", "0B", "x" * 5000, "%s%n", "$(id)", "*", "--model", "--", "-")


def value_of(draw):
    return draw.choice((lambda: draw.choice(NUMBERS), lambda: draw.choice(TEXTS), lambda: str(draw.randint(-9, 99)),
                        lambda: "".join(chr(draw.choice((draw.randint(1, 127), draw.randint(160, 0x2FF)))) for _ in range(draw.randint(1, 12)))))()


def edited(draw, document):
    """A JSON document in which one value, member or item is another."""
    places = []

    def visit(value, put):
        places.append((value, put))
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            visit(inner, lambda new, value=value, key=key: value.__setitem__(key, new))

    whole = json.loads(json.dumps(document))
    visit(whole, None)
    value, put = draw.choice(places)
    if put is None or (isinstance(value, (dict, list)) and value and draw.random() < 0.6):
        if isinstance(value, dict) and value:
            name = draw.choice(sorted(value))
            if draw.random() < 0.5: del value[name]
            else: value[name + "_"] = value[name]
        elif value: draw.choice((value.pop, value.clear, lambda: value.append(value[0])))()
    else: put(draw.choice((None, True, -1, 0, 1e308, -1e308, 2**63, 2**64, 0.5, "", "\u0000", "x" * 3000, [], {}, [[]], -(2**63))))
    return json.dumps(whole, ensure_ascii=draw.random() < 0.5)


class Storm(attack.Case):
    def setUp(self):
        super().setUp()
        self.number = 0

    def run_plan(self, arguments, folder=None):
        """What became of the program: its exit code, output and errors."""
        command = ["bash", "-c", 'ulimit -v "$0"; exec "$@"', str(MEMORY), os.environ["PARSEARCH_PLAN"], *arguments]
        done = subprocess.run(command, cwd=folder or self.folder, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
        return attack.Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def complaint(self, arguments):
        """What is wrong with how the program ended, or nothing."""
        try:
            done = self.run_plan(arguments)
        except subprocess.TimeoutExpired:
            return "takes too long"
        if done.code not in CODES: return f"exit code {done.code}: {done.err[-300:]}"
        if re.search("internal error|terminate called|what\\(\\):", done.err): return done.err[-300:]
        if done.code == 2 and not done.err.startswith("plan: "): return f"refused, but not by plan: {done.err[:300]}"
        if any(ord(c) < 32 and c not in "\n\r\t" for c in done.out + done.err): return "a control character reaches the terminal"
        if re.search(r"\bnan\b|[-+ ]inf\b(?!inite)", done.out): return "the output has a number that is none"
        return None

    def withstand(self, kind, inputs):
        """Runs plan on each of the arguments; fails with all that went wrong. `inputs`: pairs of a name and arguments."""
        wrong, tried = [], 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for (name, arguments), what in zip(inputs, pool.map(lambda i: self.complaint(i[1]), inputs)):
                tried += 1
                if what: wrong.append(f"{name}: plan {shlex.join(arguments)}\n    {what}")
        print(f"attack: {tried} {kind}, {len(wrong)} went wrong, seed {SEED}")
        if wrong:
            kept = pathlib.Path(shutil.copytree(self.folder, self.folder + "-kept"))
            self.fail(f"{len(wrong)} of {tried} {kind}; files in {kept}:\n" + "\n".join(wrong[:10]))

    def made(self, name, *options):
        """A folder with all that a small run writes."""
        done = self.run_plan([*SMALL, *options, "--out", name])
        self.assertEqual(done.code, 0, done.err)
        return pathlib.Path(self.folder, name)

    def readers(self):
        """Pairs of a file and the arguments that read it, its name last."""
        made, plain = self.made("made", "--simulation.optimizer", "adam"), self.made("plain", "--space.pipelines", "false")
        out = [(made / "plan.json", (*SMALL, "--import")), (made / "plan.json", (*SMALL, "--start")), (plain / "plan.json", (*SMALL, "--import")),
               (plain / "strategy.flexflow", (*SMALL, "--import")), (made / "run.json", ("--quiet", "--rerun")),
               (made / "topology.json", (*MODEL, "--evaluations", "5", "--quiet", "--cluster"))]
        data = os.environ.get("PARSEARCH_EXTERNAL_DATA")
        if not data: print("attack: PARSEARCH_EXTERNAL_DATA is not set: no ONNX files and rules")
        else:
            out += [(pathlib.Path(data, "attack", name), (*CLUSTER, "--evaluations", "5", "--quiet", "--model"))
                    for name in ("evil_optype.onnx", "j_expand.onnx", "hand_two.onnx", "buf_add_static.onnx")]
            out.append((pathlib.Path(data, "unity", "test_subst.json"), (*SMALL, "--search", "joint", "--rules")))
        return out

    def written(self, name, content):
        path = pathlib.Path(self.folder, name)
        path.write_bytes(content)
        return str(path)

    def test_command_lines(self):
        options = sorted(set(re.findall(r"--[a-z][a-z_.]*", self.run_plan(["--help"]).out)) - {"--help", "--out"})
        self.assertGreater(len(options), 60)
        inputs = []
        for number in range(4000 if ALL else 80):
            draw = random.Random(f"{SEED} command {number}")
            words = []
            for _ in range(draw.randint(1, 3)):
                words += [draw.choice(options), *([value_of(draw)] if draw.random() < 0.95 else [])]
            given = " ".join(words)
            base = [w for pair in (MODEL, CLUSTER, ("--evaluations", "20"), ("--time", "2s")) if pair[0] not in given for w in pair]
            inputs.append((number, [*base, *(w.replace("\0", "") for w in words)]))
        self.withstand("command lines", inputs)

    def test_truncated_files(self):
        inputs = []
        for path, arguments in self.readers():
            content = path.read_bytes()
            offsets = range(len(content)) if ALL and len(content) < 10_000 else sorted(random.Random(SEED).sample(range(len(content)), 300 if ALL else 6))
            for at in offsets:
                name = f"cut{at}_{len(inputs)}{path.suffix}"
                inputs.append((f"{path.name} cut at {at}", (*arguments, self.written(name, content[:at]))))
        self.withstand("truncated files", inputs)

    def test_changed_bytes(self):
        inputs, readers = [], self.readers()
        for number in range(2000 if ALL else 40):
            draw = random.Random(f"{SEED} bytes {number}")
            path, arguments = readers[number % len(readers)]
            content = bytearray(path.read_bytes())
            for _ in range(draw.choice((1, 1, 1, 4, 20))):
                at = draw.randrange(len(content))
                content[at] = draw.choice((content[at] ^ 1 << draw.randrange(8), draw.randrange(256), *b'0-9"{}[],:'))
            inputs.append((f"{path.name}, number {number}", (*arguments, self.written(f"b{number}{path.suffix}", bytes(content)))))
        self.withstand("files with changed bytes", inputs)

    def test_changed_documents(self):
        readers = [r for r in self.readers() if r[0].suffix == ".json"]
        inputs = []
        for number in range(2000 if ALL else 40):
            path, arguments = readers[number % len(readers)]
            content = edited(random.Random(f"{SEED} document {number}"), json.loads(path.read_text()))
            inputs.append((f"{path.name}, number {number}", (*arguments, self.written(f"d{number}.json", content.encode()))))
        self.withstand("changed documents", inputs)

    def assert_whole(self, folder):
        run = json.loads((folder / "run.json").read_text())
        for f in run["files"]: self.assertEqual(attack.hash_of(folder / f["name"]), f["hash"], f["name"])
        return run

    def test_signals(self):
        count = 200 if ALL else 6
        for number in range(count):
            draw = random.Random(f"{SEED} signal {number}")
            what = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
            out = pathlib.Path(self.folder, f"out{number % 3}")  # often that of a run before
            run = subprocess.Popen([os.environ["PARSEARCH_PLAN"], *SMALL[:4], "--time", "1s", "--seed", str(number), "--out", out], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(draw.uniform(0, 1.3))
            with contextlib.suppress(ProcessLookupError): run.send_signal(what)
            _, err = run.communicate(timeout=SECONDS)
            with self.subTest(number=number, signal=what.name, seed=SEED):
                ended = (-what,) if what == signal.SIGKILL else (130, -what)  # it may come before the program listens
                self.assertIn(run.returncode, (0, *ended), err)
                if run.returncode in (0, 130) and (out / "run.json").exists(): self.assert_whole(out)
        print(f"attack: {count} signals")

    def test_valid_runs_keep_their_promises(self):
        count = 300 if ALL else 8
        for number in range(count):
            draw = random.Random(f"{SEED} run {number}")
            model = draw.choice(("zoo:mlp,batch=64", "zoo:mlp,batch=24,hidden=30*2", "zoo:lenet,batch=16", "zoo:gpt,layers=1,hidden=32,heads=2,sequence=16,vocabulary=64,batch=8"))
            arguments = ["--model", model, "--cluster", draw.choice(("1x2xp100", "2x2xv100", "1x3xa100")), "--evaluations", str(draw.randint(1, 60)), "--seed",
                         str(draw.randrange(1 << 32)), "--search", draw.choice(("portfolio", "mcmc", "greedy", "tempering", "dominator_dp", "random", "joint"))]
            pipelines = ["pipelines"] if draw.random() < 0.2 else ["recomputation", "sharded_optimizer", "sharded_gradients", "sharded_parameters", "sharded_within_nodes"]
            for kind in ("sample", "attribute", "parameter", "reduction", *pipelines):
                if draw.random() < 0.3: arguments += [f"--space.{kind}", "false"]
            if draw.random() < 0.2: arguments += ["--space.max_shards", draw.choice("124")]
            if draw.random() < 0.5: arguments += ["--simulation.optimizer", draw.choice(("adam", "momentum"))]
            if draw.random() < 0.2: arguments += ["--simulation.training", "false"]
            with self.subTest(command=shlex.join(arguments)):
                out = pathlib.Path(self.folder, f"run{number}")
                self.assertIsNone(self.complaint([*arguments, "--out", str(out)]))
                self.assertTrue(out.exists(), "refused")
                run = self.assert_whole(out)
                self.assertFalse([n for n in os.listdir(out) if n.startswith(".")])
                if "lower_bound_ps" in run: self.assertLessEqual(run["lower_bound_ps"], run["result"]["cost_ps"])
                plan = json.loads((out / "plan.json").read_text())
                operators = [o for s in plan["stages"] for o in s["operators"]]
                if "--space.max_shards" in arguments:
                    most = int(arguments[arguments.index("--space.max_shards") + 1])
                    for o in operators: self.assertLessEqual(math.prod(o.get("degrees", {}).values()), most)
                again = self.run_plan(["--rerun", str(out / "run.json"), "--out", str(out) + "b"])
                self.assertEqual(again.code, 0, again.err + again.out[-300:])
                for name in ("plan.json", "topology.json", "strategy.flexflow"):
                    self.assertEqual((out / name).exists(), pathlib.Path(f"{out}b", name).exists(), name)
                    if (out / name).exists(): self.assertEqual((out / name).read_bytes(), pathlib.Path(f"{out}b", name).read_bytes(), name)
                if not plan.get("rewritten_by"):
                    simulation = [w for i, w in enumerate(arguments) if w.startswith("--simulation") or (i and arguments[i - 1].startswith("--simulation"))]
                    done = self.run_plan([*arguments[:4], *simulation, "--import", str(out / "plan.json"), "--out", str(out) + "c"])
                    self.assertEqual(done.code, 0, done.err)
                    self.assertEqual(json.loads(pathlib.Path(f"{out}c", "plan.json").read_text())["predicted_ps"], plan["predicted_ps"])
            shutil.rmtree(out, ignore_errors=True)
        print(f"attack: {count} runs, each rerun and imported")
