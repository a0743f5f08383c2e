#!/usr/bin/env python3
"""Shows that check_floors.py, compile_fail.py, bench/tables.py, bench/textbook.py and, where there is clang, syntax.py find the mistakes that they are there for,
and what examples/execute/collectives.py reads of a compiled program.

    test_scripts.py <compiler> <flags...>
"""

import argparse
import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "execute"))
import check_floors
import collectives
import compile_fail
import syntax
import tables
import textbook

COMPILER = sys.argv[1:]


class Floors(unittest.TestCase):
    def check(self, headers):
        """Of headers by their place in include/parsearch, and sources that begin with src/."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder, "include")
            for name, text in headers.items():
                file = pathlib.Path(folder, name) if name.startswith("src/") else root / "parsearch" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            errors, warnings, _ = check_floors.check(root)
        return errors, warnings

    def refused(self, name, text, expected, **more):
        errors, _ = self.check({name: text, **more})
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(expected, errors[0])

    def allowed(self, name, text, **more):
        self.assertEqual(self.check({name: text, **more}), ([], []))

    @staticmethod
    def including(name):
        """What must include name.ipp: its header and one source."""
        line = f"#include <parsearch/{name}.ipp>\n"
        return {f"{name}.hpp": line, "src/a.cpp": line}

    def test_arrows_down(self):
        self.allowed("sim/a.hpp", "#include <vector>\n#include <parsearch/cost/b.hpp>\n#include <parsearch/sim/c.hpp>\n")
        self.allowed("parsearch.hpp", "#include <parsearch/io/a.hpp>\n#include <parsearch/sim/b.hpp>\n")
        self.allowed("search/additive/minimise.ipp", "#include <parsearch/graph/a.hpp>\n", **self.including("search/additive/minimise"))
        self.allowed("core/a.hpp", "// #include <parsearch/sim/b.hpp>\n/*\n#include <parsearch/sim/b.hpp>\n*/\n")

    def test_arrows_up(self):
        self.refused("core/a.hpp", "\n#include <parsearch/concepts/b.hpp>\n", "core/a.hpp:2: ")
        self.refused("ops/a.hpp", "#include <parsearch/graph/b.hpp>\n", "ops may not include graph")
        self.refused("ops/a.ipp", "#include <parsearch/graph/b.hpp>\n", "ops may not include graph", **self.including("ops/a"))
        self.refused("ops/a.hpp", "  #  include \"parsearch/sim/b.hpp\"\n", "ops may not include sim")
        self.refused("search/mcmc.hpp", "#include <parsearch/graph/b.hpp>\n", "search may not include graph")
        self.refused("fabric/a.hpp", "#include <parsearch/io/b.hpp>\n", "fabric may not include io")
        self.refused("io/a.hpp", "#include <parsearch/lab/b.hpp>\n", "io may not include lab")
        self.refused("rewrite/a.hpp", "#include <parsearch/parsearch.hpp>\n", "rewrite may not include parsearch.hpp")

    def test_arrows_between_folders(self):
        self.allowed("sim/a.hpp", "#include <parsearch/sim/delta/b.hpp>\n")
        self.allowed("sim/task/a.hpp", "#include <parsearch/sim/input/b.hpp>\n#include <parsearch/sim/task/c.hpp>\n")
        self.allowed("io/onnx/lower/a.hpp", "#include <parsearch/io/onnx/translators/b.hpp>\n#include <parsearch/io/text/c.hpp>\n")
        self.refused("sim/task/a.hpp", "#include <parsearch/sim/b.hpp>\n", "task may not include sim")
        self.refused("sim/task/a.hpp", "#include <parsearch/sim/memory/b.hpp>\n", "task may not include memory")
        self.refused("sim/bounds/a.hpp", "#include <parsearch/sim/delta/b.hpp>\n", "bounds may not include delta")
        self.refused("sim/b.hpp", "#include <parsearch/sim/unknown/b.hpp>\n", "no such folder")
        self.refused("io/onnx/file/a.hpp", "#include <parsearch/io/onnx/lower/b.hpp>\n", "file may not include lower")
        self.refused("io/text/a.hpp", "#include <parsearch/io/onnx/lower/b.hpp>\n", "text may not include onnx")

    def test_detail(self):
        self.allowed("sim/a.hpp", "namespace parsearch::sim::detail {\nint x = detail::y + sim::detail::z;\n}\n// of ops::detail\n")
        self.refused("sim/a.hpp", "int x = ops::detail::y;\n", "detail of ops")
        self.refused("io/onnx/a.hpp", "int x = parsearch::sim::delta::detail::y;\n", "detail of sim")

    def test_names(self):
        self.refused("sim/a.hpp", "", "sim/a.hpp: has the name of ops/a.hpp", **{"ops/a.hpp": ""})
        self.assertEqual(self.check({f"ops/a{i}.hpp": "" for i in range(25)}), ([], []))
        self.refused("ops/b.hpp", "", "ops: 26 headers", **{f"ops/a{i}.hpp": "" for i in range(25)})

    def test_definitions(self):
        both = self.including("ops/a")
        self.allowed("ops/a.ipp", "", **both)
        self.refused("ops/a.ipp", "", "ops/a.ipp: no header of this name includes it", **(both | {"ops/a.hpp": ""}))
        self.refused("ops/a.ipp", "", "ops/a.ipp: is included 0 times in src", **(both | {"src/a.cpp": ""}))
        self.refused("ops/a.ipp", "", "ops/a.ipp: is included 2 times in src", **both, **{"src/io/b.cpp": both["src/a.cpp"]})

    def test_gate(self):
        gate = {"core/compiler.hpp": "#if 0\n#include <parsearch needs C++20: or later>\n#endif\n"}
        line = "#include <parsearch/core/compiler.hpp>\n"
        self.allowed("sim/a.hpp", "#include <parsearch/core/b.hpp>\n", **gate, **{"core/b.hpp": line})
        self.refused("core/b.hpp", "#include <vector>\n", "core/b.hpp: does not include core/compiler.hpp", **gate, **{"sim/a.hpp": line})

    def test_quoted_neighbours(self):
        up = {"cost/b.hpp": ""}
        self.refused("ops/a.hpp", "#include \"../cost/b.hpp\"\n", "ops may not include cost", **up)
        self.assertEqual(self.check({"ops/a.hpp": "#include \"b.hpp\"\n", "ops/b.hpp": ""}), ([], []))

    def test_unknown_places(self):
        self.refused("misc/a.hpp", "", "no known directory")
        self.refused("a.hpp", "", "no known directory")
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(check_floors.check(folder)[0])

    def test_libraries(self):
        self.allowed("graph/a.hpp", "#include <boost/graph/adjacency_list.hpp>\n#include <range/v3/view/zip.hpp>\n")
        self.allowed("fabric/a.hpp", "#include <boost/graph/adjacency_list.hpp>\n")
        self.allowed("io/a.hpp", "#include <boost/hana/tuple.hpp>\n")
        self.allowed("io/a.hpp", "#include <nlohmann/json.hpp>\n")
        self.refused("sim/a.hpp", "#include <boost/graph/graph_traits.hpp>\n", "Boost.Graph")
        self.refused("search/mcmc.hpp", "#include <boost/hana.hpp>\n", "Hana")
        self.refused("sim/a.hpp", "#include <range/v3/view/zip.hpp>\n", "range-v3")
        self.refused("graph/a.hpp", "#include <range/v3/all.hpp>\n", "single views")
        self.refused("core/a.hpp", "#include <boost/config.hpp>\n", "standard library")
        self.refused("cost/a.hpp", "#include <nlohmann/json.hpp>\n", "nothing else")
        self.allowed("lab/prover/a.hpp", "#include <z3++.h>\n#include <parsearch/rewrite/b.hpp>\n")
        self.refused("rewrite/a.hpp", "#include <z3++.h>\n", "Z3 stays in lab/prover")
        self.refused("io/a.hpp", "#include <z3++.h>\n", "Z3 stays in lab/prover")

    def test_lengths(self):
        self.assertEqual(self.check({"core/a.hpp": "\n" * 400}), ([], []))
        self.assertEqual(len(self.check({"core/a.hpp": "\n" * 600})[1]), 1)
        self.refused("core/a.hpp", "\n" * 601, "601 lines")


class Syntax(unittest.TestCase):
    """Of a header that many include, one that includes it, and more."""

    COMMON = {"include/common.hpp": "#pragma once\nstruct common {};\n"}
    USERS = {f"include/user_{i}.hpp": "#pragma once\n#include <common.hpp>\ninline common user() { return {}; }\n" for i in range(9)}

    def check(self, files):
        clang = next((name for name in ("clang++-16", "clang++") if shutil.which(name)), None)
        if not clang:
            self.skipTest("clang is not found")
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            headers, sources = sorted((root / "include").glob("*.hpp")), sorted((root / "program").glob("*.cpp"))
            return syntax.check(headers, sources, [root / "include"], [clang, "-std=c++20", f"-I{root / 'include'}"], 2)

    def refused(self, name, text, expected):
        complaints, bases = self.check({**self.COMMON, **self.USERS, name: text})
        self.assertEqual(bases, 1)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(f"{name} does not compile alone", complaints[0])
        self.assertIn(expected, complaints[0])

    def test_right(self):
        self.assertEqual(self.check({**self.COMMON, **self.USERS, "program/main.cpp": "#include <user_1.hpp>\nint main() { user(); }\n"}), ([], 1))

    def test_wrong(self):
        self.refused("include/forgot.hpp", "#pragma once\ninline common forgot();\n", "unknown type name 'common'")
        self.refused("include/twice.hpp", "#include <common.hpp>\nstruct twice {};\n", "redefinition of 'twice'")
        self.refused("program/main.cpp", "#include <common.hpp>\nint main() { user(); }\n", "undeclared identifier 'user'")

    def test_wrong_base(self):
        complaints, _ = self.check({"include/common.hpp": "#pragma once\nstruct common { int x }\n", **self.USERS})
        self.assertIn("common.hpp does not compile alone", complaints[0])


class Tables(unittest.TestCase):
    """Of one page, whose commands are not run: `printed` is what each of them prints."""

    PAGE = "# Page\n\n<!-- made by ./bench/run {} -->\n\n| n | s |\n|---|---|\n| 1 | 2 |\n\n<!-- end -->\n\nText.\n"
    TABLE = "| n | s |\n|---|---|\n| 1 | 2 |\n"
    QUOTED = "```sh\nbuild/release/examples/plan --help\n```\n\n<!-- printed by the code above; from b; to c -->\n```\nb 1 in 2 s\n c\n```\n<!-- end -->\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        root = mock.patch.object(tables, "ROOT", self.root)
        root.start()
        self.addCleanup(root.stop)

    def run_tables(self, page, printed, check=True, quick=False):
        """(exit code, what was said, the page afterwards)."""
        path = self.root / "docs" / "page.md"
        path.write_text(page, encoding="utf-8")
        said = io.StringIO()
        options = argparse.Namespace(check=check, quick=quick, list=False, pages=[])
        with contextlib.redirect_stdout(said):
            code = tables.run(options, lambda part: printed)
        return code, said.getvalue(), path.read_text(encoding="utf-8")

    def refused(self, page, expected):
        with self.assertRaisesRegex(tables.wrong, expected):
            self.run_tables(page, "")

    def failed(self, page, printed, expected):
        code, said, _ = self.run_tables(page, printed)
        self.assertEqual(code, 1)
        self.assertIn(expected, said)

    def test_agreement(self):
        code, said, page = self.run_tables(self.PAGE.format("x"), self.TABLE)
        self.assertEqual((code, page), (0, self.PAGE.format("x")))
        self.assertIn("1 made, 0 differ, 0 failed, 0 left out", said)

    def test_changed_figure(self):
        code, said, page = self.run_tables(self.PAGE.format("x"), self.TABLE.replace("| 2 |", "| 3 |"))
        self.assertEqual((code, page), (1, self.PAGE.format("x")))
        self.assertIn("-| 1 | 2 |", said)
        self.assertIn("+| 1 | 3 |", said)
        self.assertIn("docs/page.md:3", said)

    def test_remade(self):
        code, _, page = self.run_tables(self.PAGE.format("x"), self.TABLE.replace("| 2 |", "| 3 |\n| 4 | 5 |"), check=False)
        self.assertEqual((code, page), (0, self.PAGE.format("x").replace("| 2 |", "| 3 |\n| 4 | 5 |")))

    def test_measured_columns(self):
        page = self.PAGE.format("x; measured s")
        self.assertEqual(self.run_tables(page, self.TABLE.replace("| 2 |", "| 3 |"))[0], 0)
        self.assertEqual(self.run_tables(page, self.TABLE.replace("| 1 |", "| 3 |"))[0], 1)
        self.assertEqual(self.run_tables(page, self.TABLE + "| 3 | 4 |\n")[0], 1)
        self.failed(self.PAGE.format("x; measured t"), self.TABLE, "no table has the column 't'")

    def test_quoted_lines(self):
        self.assertEqual(self.run_tables(self.QUOTED, "a\nb 1 in 7.5 s\n c\nd\n")[0], 0)
        self.assertEqual(self.run_tables(self.QUOTED, "a\nb 2 in 2 s\n c\nd\n")[0], 1)
        self.failed(self.QUOTED, "a\n", "no line that begins with 'b'")
        code, said, _ = self.run_tables(self.QUOTED + "\n" + self.PAGE.format("x"), self.TABLE)
        self.assertEqual(code, 1)
        self.assertIn("1 made, 0 differ, 1 failed, 0 left out", said)

    def test_quick(self):
        self.assertEqual(self.run_tables(self.PAGE.format("x"), "", quick=True)[0], 0)
        self.assertEqual(self.run_tables(self.PAGE.format("x; quick"), "", quick=True)[0], 1)

    def test_markers(self):
        page = self.PAGE.format("x")
        self.refused(page.replace("<!-- end -->\n", ""), "docs/page.md:3: lacks <!-- end -->")
        self.refused(page.replace("<!-- end -->\n", "") + page, "docs/page.md:13: begins inside the part of line 3")
        self.refused("<!-- end -->\n", "<!-- end --> without a beginning")
        self.refused("<!-- made with x -->\n", "docs/page.md:1: neither")
        self.assertIn("0 made", self.run_tables("```\n" + page + "```\n", "")[1])

    def test_commands(self):
        self.refused(self.PAGE.format("x").replace("./bench/run x", "rm page.md"), "unknown command 'rm page.md'")
        self.refused(self.PAGE.format("x; fast"), "unknown option 'fast'")
        self.refused(self.PAGE.format("x; as nothing"), "unknown view 'nothing'")
        self.refused(self.QUOTED.replace("from b", "as pipeline"), "only the rows of ./bench/run")
        self.refused(self.PAGE.format("x; from |; from |"), "'from' is given twice")
        self.refused(self.PAGE.format("x").replace("./bench/run x", "the code above"), "the code block above")

    def test_views(self):
        rows = [{"network": "a", "machine": "b", "expert_ms": None, "frugal_ms": 2, "micro_batches_ms": 1.25, "pipeline_ms": 1, "stages": 2, "interleaved": 2,
                 "micro_batches": 4, "order": "gpipe", "tensor_parallel": [1, 2], "segments": 1, "recomputing_stages": 0, "idle_share": 0.25,
                 "fullest_bytes": 15e8, "simulated": 7}]
        _, _, page = self.run_tables(self.PAGE.format("pipeline; as pipeline"), json.dumps(rows), check=False)
        self.assertIn("| a | b | none fits | 2.0 | 1.2 | 1.0 | 2 (2 each) x 4 | gpipe | 1-2 | - | 25% | 1.5 | 7 |\n", page)

    def test_data(self):
        page = self.PAGE.format("rules $PARSEARCH_EXTERNAL_DATA/x.json")
        (self.root / "docs" / "page.md").write_text(page, encoding="utf-8")
        options = argparse.Namespace(check=True, quick=False, list=False, pages=[])
        with mock.patch.dict("os.environ", PARSEARCH_EXTERNAL_DATA=""), contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(tables.run(options, tables.runner()), 0)
        self.assertIn("left out: PARSEARCH_EXTERNAL_DATA is not set", said.getvalue())


class Textbook(unittest.TestCase):
    @staticmethod
    def stage(first, *blocks, start=0):
        return {"operators": [{"name": f"block{first + i}.{name}", "degrees": {"s": degree}, "strides": {"s": 1}, "start": start}
                              for i, block in enumerate(blocks) for name, degree in block.items()]}

    def test_kinds_of_blocks(self):
        a, b = {"norm": 2, "mlp": 4}, {"norm": 2, "mlp": 2}
        self.assertEqual(textbook.distinct_blocks([self.stage(1, a, a, a)]), 1)
        self.assertEqual(textbook.distinct_blocks([self.stage(1, a, b, a)]), 2)
        # Devices are counted within a stage.
        self.assertEqual(textbook.distinct_blocks([self.stage(1, a, a), self.stage(3, a, start=4)]), 1)
        self.assertEqual(textbook.distinct_blocks([self.stage(1, a), self.stage(2, b, start=4)]), 2)
        self.assertEqual(textbook.distinct_blocks([{"operators": [{"name": "fc", "degrees": {}, "start": 0}]}]), 0)


class Collectives(unittest.TestCase):
    def test_kinds_groups_and_bytes(self):
        text = """
  %all-reduce.3 = (f64[4,8]{1,0}, /*index=1*/f64[2]{0}) all-reduce(%a, %b), channel_id=1, replica_groups={{0,1,2},{3,4,5}}, to_apply=%add
  %all-gather.1 = f32[16,3]{1,0} all-gather(%c), channel_id=2, replica_groups=[2,4]<=[8], dimensions={0}
  ROOT %reduce-scatter = bf16[10]{0} reduce-scatter(%d), replica_groups={{0,1}}, dimensions={0}, to_apply=%add
  %all-to-all = f64[4,4]{1,0} all-to-all(%e), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={1}
  %collective-permute = s64[5]{0} collective-permute(%f), channel_id=4, source_target_pairs={{0,1},{1,2}}
  %all-reduce.9 = f64[7]{0} all-reduce(%g), replica_groups={{0},{1}}, to_apply=%add
  %add.1 = f64[4]{0} add(%all-reduce.3, %b)
"""
        counts = collectives.collectives_of(text)
        self.assertEqual(counts, {("all_reduce", 3, 272): 2, ("all_gather", 4, 192): 2, ("reduce_scatter", 2, 40): 1, ("all_to_all", 4, 512): 1,
                                  ("message", 2, 40): 2})
        self.assertEqual(collectives.totals(counts), {"all_gather": 2 * 2 * 272 + 2 * 3 * 192, "all_to_all": 384, "message": 40 + 80,
                                                      "reduce_scatter": 2 * 2 * 272})

    def test_a_collective_without_groups(self):
        with self.assertRaisesRegex(ValueError, "without groups"):
            collectives.collectives_of("%x = f64[4]{0} all-reduce(%a), to_apply=%add")

    def test_what_is_predicted(self):
        moves = [{"kind": "all_reduce", "devices": 4, "bytes": 100, "times": 2}, {"kind": "message", "devices": 2, "bytes": 7, "times": 3},
                 {"kind": "message", "devices": 2, "bytes": 7, "times": 1}]
        counts = collectives.predicted({"predicted": {"moves": moves}})
        self.assertEqual(counts, {("all_reduce", 4, 100): 2, ("message", 2, 7): 4})
        self.assertEqual(collectives.totals(counts), {"all_gather": 600, "message": 28, "reduce_scatter": 600})


class CompileFail(unittest.TestCase):
    def complaints(self, head, wrong, twin):
        with tempfile.TemporaryDirectory() as folder:
            case = pathlib.Path(folder, "case.cpp")
            case.write_text(f"{head}\n#ifdef PARSEARCH_FAIL\n{wrong}\n#else\n{twin}\n#endif\n", encoding="utf-8")
            return compile_fail.check(str(case), COMPILER)

    def refused(self, expected, *case):
        complaints = self.complaints(*case)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(expected, complaints[0])

    def test_good_case(self):
        self.assertEqual(self.complaints("// expect: too \\w+\n// expect: assert", "static_assert(false, \"too big\");", ""), [])

    def test_bad_cases(self):
        wrong = "static_assert(false, \"too big\");"
        self.refused("twin does not compile", "// expect: too big", wrong, wrong)
        self.refused("wrong code compiles", "// expect: too big", "", "")
        self.refused("do not contain 'too small'", "// expect: too small", wrong, "")
        self.refused("no line", "", wrong, "")
        self.refused("allowed are 2", "// expect: too big\n// max_lines: 2", wrong, "")
        self.refused("a line of", "// expect: too big\n// max_columns: 20", wrong, "")
        self.refused("2 errors, must have 1", "// expect: too big\n// errors: 1", wrong * 2, "")

    def test_flags(self):
        self.assertEqual(self.complaints("// expect: too big\n// errors: 1\n// flags: -DA -DB", "#if A && B\n#error too big\n#endif", ""), [])
        self.refused("wrong code compiles", "// expect: too big\n// flags: -DB", "#if A\n#error too big\n#endif", "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
