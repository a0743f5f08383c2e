"""What the tests of the command line share: runs of plan with limits of time and memory, in a folder of their own."""

import dataclasses
import os
import resource
import shutil
import subprocess
import tempfile
import unittest


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


def hash_of(path):
    """As run.json has it of each file."""
    value = 0xCBF29CE484222325
    for byte in path.read_bytes():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"fnv1a64:{value:016x}"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attack-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def plan(self, *arguments, seconds=60, memory=None, env=None, stdin=None):
        """Runs plan in the folder; fails where that takes longer than `seconds`. `memory`: of its addresses, in bytes."""

        def limit():
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        done = subprocess.run([os.environ["PARSEARCH_PLAN"], *arguments], cwd=self.folder, capture_output=True, text=True, timeout=seconds,
                              preexec_fn=limit, env=None if env is None else {**os.environ, **env}, input=stdin)
        return Result(done.returncode, done.stdout, done.stderr)
