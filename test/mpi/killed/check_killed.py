#!/usr/bin/env python3
"""Kills ranks of searches at random moments: never a hang, a lost best or a torn file, and what goes on from the checkpoint, on any number of ranks, ends
as an undisturbed run.

    check_killed.py --program PROGRAM --mpirun MPIRUN [--times N] [--seed N]
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LONGEST = 60  # seconds that a run may take


def start(asked, ranks, search, file, how):
    # Where a rank has died, mpirun gives the others a second after SIGTERM, unless told.
    environment = os.environ | {"OMPI_MCA_odls_base_sigkill_timeout": "3"}
    return subprocess.Popen([asked.mpirun, "-n", str(ranks), asked.program, search, str(file), how], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            start_new_session=True, env=environment)


def finish(running):
    """What it printed. Fails where it hangs."""
    try:
        return running.communicate(timeout=LONGEST)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        sys.exit("error: the run hangs")


def children(pid):
    """The ranks, by their order of birth."""
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(p) for p in path.read_text().split()] if path.exists() else []


def best(file):
    """(cost, reason, trajectory) of the answer, or None."""
    path = pathlib.Path(f"{file}.best")
    if not path.exists():
        return None
    words = path.read_text().split()
    return int(words[0]), " ".join(words[1:-1]), words[-1]


def costs_of(file):
    """What rank 0 has known, in all runs."""
    path = pathlib.Path(f"{file}.costs")
    return [int(c) for c in path.read_text().split()] if path.exists() else []


def undisturbed(asked, search, folder):
    file = folder / f"{search}-whole"
    said = finish(start(asked, 2, search, file, "anew"))
    found = best(file)
    if not found:
        sys.exit(f"error: {search} has no answer: {said}")
    return found


def require(holds, what):
    if not holds:
        sys.exit(f"error: {what}")


def kill_one(asked, number, search, whole, folder, draw):
    """One search, whose ranks are killed once or twice before it is let go on to its end. Answers how often a rank was killed in time."""
    file = folder / f"{search}-{number}"
    hits = 0
    for attempt in range(draw.randint(1, 2)):
        ranks, known = draw.randint(2, 3), len(costs_of(file))
        pathlib.Path(f"{file}.best").unlink(missing_ok=True)
        running = start(asked, ranks, search, file, "resume" if attempt else "anew")
        time.sleep(draw.uniform(0.3, 1.2))
        alive = children(running.pid)
        victim = draw.randrange(ranks)
        hit = len(alive) == ranks and running.poll() is None
        begun = len(costs_of(file)) > known
        if hit:
            os.kill(alive[victim], signal.SIGKILL)
        said = finish(running)
        if not hit or running.returncode == 0: # it was quicker
            continue
        hits += 1
        answer = best(file)
        costs = costs_of(file)
        if victim != 0 and begun:
            require(answer, f"{search}, run {number}: rank {victim} of {ranks} was killed, and there is no answer: {said}")
            require(answer[0] <= min(costs), f"{search}, run {number}: the answer costs {answer[0]}, and {min(costs)} was found")
    pathlib.Path(f"{file}.best").unlink(missing_ok=True)
    said = finish(start(asked, draw.randint(1, 3), search, file, "resume"))
    found = best(file)
    require(found, f"{search}, run {number}: no answer after it went on: {said}")
    # Of several best strategies exact may find another.
    same = 2 if search == "exact" else 3
    require(found[:same] == whole[:same], f"{search}, run {number}: {found} after ranks were killed, {whole} without")
    return hits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpirun", required=True)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        searches = ["tempering", "portfolio", "exact"]
        whole = {search: undisturbed(asked, search, folder) for search in searches}
        hits = sum(kill_one(asked, n, search := searches[n % len(searches)], whole[search], folder, draw) for n in range(asked.times))
    require(hits > 0, "no rank was killed in time")
    print(f"{asked.times} searches, in which {hits} times a rank was killed: each ended as without")


if __name__ == "__main__":
    main()
