"""SIGKILL at random moments, resume, and compare with the run that was left alone: bit for bit.

    python benchmarks/kill_resume.py [--kills 360] [--case NAME ...] [--seed 0]

Nine small runs (`kill_cases.py`), each killed again and again: half of the trials at a stage of a
checkpoint's writing, which the process reaches and dies at; half at a moment uniform over the run's
length. A fresh process, seeded otherwise, goes on from the newest checkpoint, or begins again if
there is none, and in three of four trials is killed once more or several times, at any moment.

Equal means: weights, optimizer, scaler, schedule, counters, generators, early stopping, the best
checkpoint and all scores bit for bit, and metrics.jsonl line for line but for its clocks.

Prints a table, writes benchmarks/results/kill_resume.json, and ends with 1 if a run differs.
Unix only, since it forks.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: a fork must not inherit half a thread pool

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import kill_cases
from common import save_results, table
from kill_trials import STAGES, Reference, Trial, trial


def plan(trials: int, first: int) -> list[str | None]:
    """For each trial the stage to kill it at, from number `first` on; None: at any moment."""
    return [STAGES[(first + k // 2) % len(STAGES)] if k % 2 else None for k in range(trials)]


def run_case(case: str, trials: int, seed: int, folder: Path) -> dict[str, Any]:
    reference = Reference.of(case, folder / "reference")
    chance = random.Random(f"{case} {seed}")
    done: list[Trial] = []
    # Few trials of several cases are to meet different stages.
    first = 2 * list(kill_cases.CASES).index(case)
    for number, stage in enumerate(plan(trials, first)):
        found = trial(reference, folder / "trial", chance, stage)
        done.append(found)
        if found.problem:
            print(
                f"{case}, trial {number}, at {stage or 'any moment'}: {found.problem}", flush=True
            )
    return {
        "case": case,
        "trials": trials,
        "kills": sum(one.kills for one in done),
        "equal": sum(one.problem is None for one in done),
        "mid_write": {s: sum(one.mid_write.count(s) for one in done) for s in STAGES},
        "checkpoints": reference.writes,
        "updates": reference.outcome["counts"][0],
        "seconds": round(reference.seconds, 2),
    }


def shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "case": row["case"],
        "trials": row["trials"],
        "SIGKILLs": row["kills"],
        "bitwise equal": f"{row['equal']} of {row['trials']}",
        **row["mid_write"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=360, help="trials, each of one kill or more")
    parser.add_argument("--case", action="append", choices=list(kill_cases.CASES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = options.case or list(kill_cases.CASES)
    each = -(-options.kills // len(cases))
    began, rows = time.perf_counter(), []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run_case(case, each, options.seed, Path(folder)))
        row = rows[-1]
        print(f"{case}: {row['kills']} SIGKILLs, {row['equal']} of {each} equal", flush=True)
    total = {name: sum(row[name] for row in rows) for name in ("trials", "kills", "equal")}
    total["mid_write"] = {s: sum(row["mid_write"][s] for row in rows) for s in STAGES}
    print("\n" + table([shown(row) for row in [*rows, {"case": "all", **total}]]))
    print("(the columns on the right: kills inside the writing of a checkpoint, by the last stage)")
    seconds = round(time.perf_counter() - began, 1)
    facts = {"seed": options.seed, "seconds": seconds}
    if not options.case:
        print(save_results("kill_resume", {**facts, "total": total, "cases": rows}))
    return 0 if total["equal"] == total["trials"] else 1


if __name__ == "__main__":
    sys.exit(main())
