"""Correct training programs, one line changed by machine: which changes does the checker find?

    python benchmarks/doctor_mutations.py [--corpus] [--sample N] [--program NAME] [--missed DIR]

Each line of the training loops of `doctor_programs/` (with --corpus also of the good programs in
tests/doctor/corpus) is moved, deleted, written twice, unwrapped (a `with` or `if` around it, a
decorator) or loses its `.item()`. The program and the changed one run under the same seed on one
thread, each in a process of its own; a program that does not do the same when it is run again is
left out. What the change did:

- crash      it raised: not silent, of no interest here
- weights    the trained weights differ, bit for bit
- memory     graphs were kept alive that were not before
- buffers    the statistics of batch norm differ
- reported   what it printed or saved differs
- graph      more operations built a graph, to no other effect
- none       nothing differs

Not every difference is a fault; `mutation_kinds.JUDGEMENTS` says which is, by hand. The score: of
the silent faults, how many `check` finds, by kind. An alarm at a change without effect, or at one
that is no fault, is listed; advice counts for the faults only, and how many were found by it alone
is a column of its own. Prints a table, writes benchmarks/results/doctor_mutations.json.
Unix only, since it forks. About five minutes on two cores.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: a fork must not inherit half a thread pool

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torchmetrics  # noqa: F401  (once here, not in every process)
from common import save_results, table
from mutation_kinds import judge
from mutation_making import Mutant, Program
from mutation_runs import observe, run_all

from trueloop.doctor.static import check_text

HERE = Path(__file__).parent
CORPUS = HERE.parent / "tests" / "doctor" / "corpus"
SILENT = ("weights", "memory", "buffers", "reported", "graph")
ADVICE = " (advice)"
SLOWEST = 1.5
"""Seconds: a corpus program that takes longer is left out."""


class Runs:
    """What each program did, kept in a file between calls if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self.known = json.loads(path.read_text())

    def of(self, texts: Iterable[str], limit: float, jobs: int) -> dict[str, dict[str, Any]]:
        waiting = [text for text in dict.fromkeys(texts) if key_of(text) not in self.known]
        for text, result in run_all(waiting, lambda each: asdict(observe(each, limit)), jobs):
            self.known[key_of(text)] = result
            if self.path is not None and len(self.known) % 100 == 0:
                self.path.write_text(json.dumps(self.known))
        if self.path is not None and waiting:
            self.path.write_text(json.dumps(self.known))
        return {text: self.known[key_of(text)] for text in texts}


def key_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def effect_of(base: dict[str, Any], run: dict[str, Any]) -> str:
    """What a change did; the graver effect hides the smaller."""
    if "lost" in run or run["crash"]:
        return "crash"
    if run["weights"] != base["weights"]:
        return "weights"
    if max(run["alive"], default=0) > 1.5 * max(base["alive"], default=0) + 5:
        return "memory"
    if run["buffers"] != base["buffers"]:
        return "buffers"
    if run["printed"] != base["printed"] or run["saved"] != base["saved"]:
        return "reported"
    return "graph" if run["graphs"] > base["graphs"] else "none"


def findings_of(text: str) -> list[str]:
    """What the checker finds in a program, as `TL101 at 31` or `TL204 at 12 (advice)`."""
    return [
        f"{found.code} at {found.place.line}" + (ADVICE if found.severity == "advice" else "")
        for found in check_text(text, "program.py").findings
    ]


def alarms(found: Iterable[str]) -> list[str]:
    """The errors and warnings among them."""
    return [each for each in found if not each.endswith(ADVICE)]


def new_in(found: list[str], before: list[str]) -> list[str]:
    """The alarms, and the advice of a code that the unchanged program did not get."""
    known = {each.split()[0] for each in before}
    return [each for each in found if not each.endswith(ADVICE) or each.split()[0] not in known]


def programs(names: list[str] | None, corpus: bool) -> list[Program]:
    paths = sorted((HERE / "doctor_programs").glob("*.py"))
    if corpus:
        paths += sorted(CORPUS.glob("*/good_*.py"))
    found = []
    for path in paths:
        name = path.stem if path.parent.parent != CORPUS else f"{path.parent.name}/{path.stem}"
        if not names or name in names:
            found.append(Program(name, path.read_text("utf-8")))
    return found


def fit_for_it(
    chosen: list[Program], runs: Runs, jobs: int
) -> tuple[list[Program], dict[str, str]]:
    """Those that run, fast enough, the same every time, train something, and raise no alarm; and
    the names of the others, with the reason."""
    first = runs.of([each.source.text for each in chosen], 10 * SLOWEST, jobs)
    again = Runs(None).of([each.source.text for each in chosen], 10 * SLOWEST, jobs)
    kept, left_out = [], {}
    for program in chosen:
        text = program.source.text
        reason = unfit(first[text], again[text]) or ", ".join(alarms(findings_of(text)))
        if reason:
            left_out[program.name] = reason
            print(f"left out: {program.name}: {reason}")
        else:
            kept.append(program)
    return kept, left_out


def unfit(run: dict[str, Any], again: dict[str, Any]) -> str:
    """Why no change of a program can be judged by its runs; empty if it can."""
    if failed := run.get("lost") or run["crash"]:
        return str(failed)
    if not run["updates"]:
        return "trains nothing"
    if run["seconds"] > SLOWEST:
        return f"takes {run['seconds']:.1f} s"
    noted = ("crash", "weights", "buffers", "printed", "saved")
    same = all(run[name] == again.get(name) for name in noted)
    return "" if same else "does something else every time"


def try_all(
    chosen: list[Program], runs: Runs, jobs: int, sample: int | None
) -> list[dict[str, Any]]:
    """One record for each change, or for some of them drawn by chance."""
    mutants = [mutant for program in chosen for mutant in program.mutants()]
    if sample is not None and sample < len(mutants):
        mutants = random.Random(0).sample(mutants, sample)
    base = runs.of([each.source.text for each in chosen], 10 * SLOWEST, jobs)
    bases = {each.name: base[each.source.text] for each in chosen}
    done = runs.of([each.text for each in mutants], 10 * SLOWEST, jobs)
    told = dict(run_all([each.text for each in mutants], findings_of, jobs))
    before = {each.name: findings_of(each.source.text) for each in chosen}
    return [
        record(
            mutant,
            effect_of(bases[mutant.program], done[mutant.text]),
            told[mutant.text],
            before[mutant.program],
        )
        for mutant in mutants
    ]


def record(mutant: Mutant, effect: str, told: Any, before: list[str]) -> dict[str, Any]:
    """`told`: the findings in the changed program, or why there are none; `before`: those in the
    unchanged one. Advice counts for a fault only."""
    where = f"{mutant.program}: {mutant.statement}"
    judgement = judge(mutant.kind, mutant.change, effect, where, mutant.passed)
    if isinstance(told, list):
        is_fault = effect in SILENT and judgement.scope == "fault"
        told = new_in(told, before) if is_fault else alarms(told)
    return {
        "program": mutant.program,
        "line": mutant.line,
        "kind": mutant.kind,
        "change": mutant.change,
        "statement": mutant.statement,
        "effect": effect,
        "scope": judgement.scope if effect in SILENT else "",
        "why": judgement.why if effect in SILENT else "",
        "found": told,
        "text": mutant.text,
    }


def summary(records: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """A line of the table."""

    def count(scope: str, *, found: bool | None = None, effect: str = "") -> int:
        return sum(
            each["scope"] == scope
            and (not effect or each["effect"] == effect)
            and (found is None or bool(each["found"]) is found)
            for each in records
        )

    faults, found = count("fault"), count("fault", found=True)
    others = ("choice", "own logic")
    return {
        "changed line": name,
        "changes": len(records),
        "crash": sum(each["effect"] == "crash" for each in records),
        "no effect": count("", effect="none"),
        "alarms there": count("", effect="none", found=True),
        "no fault": sum(count(scope) for scope in others),
        "alarms at it": sum(count(scope, found=True) for scope in others),
        "no rule": count("no rule"),
        "found of it": count("no rule", found=True),
        "faults": faults,
        "found": found,
        "as advice": sum(
            each["scope"] == "fault" and bool(each["found"]) and not alarms(each["found"])
            for each in records
        ),
        "share": f"{found / faults:.1%}" if faults else "",
    }


def listed(records: list[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    """Print some records, and give them back without their text."""
    print(f"\n{title}: {len(records)}")
    for each in records:
        said = f"  -> {', '.join(each['found'])}" if each["found"] else ""
        print(
            f"  {each['program']}:{each['line']}  {each['change']}  `{each['statement'][:60]}`"
            f"  ({each['effect']}){said}"
        )
    return [{name: value for name, value in each.items() if name != "text"} for each in records]


def write_programs(records: list[dict[str, Any]], folder: Path) -> None:
    """Each as a file to be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(records):
        head = f"# line {each['line']}: {each['change']}: {each['statement']} ({each['effect']})\n"
        name = f"{each['program'].replace('/', '_')}_{number:03}.py"
        (folder / name).write_text(head + each["text"], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", action="append", help="only this one (may be repeated)")
    parser.add_argument("--corpus", action="store_true", help="the corpus' good programs as well")
    parser.add_argument("--sample", type=int, help="so many changes, drawn by chance")
    parser.add_argument("--missed", type=Path, metavar="DIR", help="write what was missed there")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="keep what the programs did")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    began, runs = time.perf_counter(), Runs(options.runs)
    chosen, left_out = fit_for_it(programs(options.program, options.corpus), runs, options.jobs)
    records = try_all(chosen, runs, options.jobs, options.sample)
    kinds = sorted({each["kind"] for each in records})
    failed = [each for each in records if isinstance(each["found"], dict)]
    assert not failed, failed[0]["found"]["lost"]
    rows = [summary([each for each in records if each["kind"] == kind], kind) for kind in kinds]
    total = summary(records, "all")
    missed = [each for each in records if each["scope"] == "fault" and not each["found"]]
    quiet = [each for each in records if each["effect"] == "none" and each["found"]]
    other = [e for e in records if e["scope"] in ("choice", "own logic") and e["found"]]
    if options.missed:
        write_programs(missed, options.missed)
    lists = {
        "missed": listed(missed, "faults that were missed"),
        "alarms_without_effect": listed(quiet, "alarms at changes without effect"),
        "alarms_at_no_fault": listed(other, "alarms at changes that are no fault by themselves"),
    }
    no_rule = [each for each in records if each["scope"] == "no rule"]
    reasons = Counter(each["why"] for each in no_rule if not each["found"])
    print("\nfaults that no rule speaks of:", dict(reasons.most_common()))
    print("\n" + table([*rows, total]))
    facts = {
        "programs": [each.name for each in chosen],
        "left_out": left_out,
        "no_rule": dict(reasons),
        "seconds": round(time.perf_counter() - began, 1),
    }
    if not options.program:
        results = {**facts, "total": total, "kinds": rows, **lists}
        name = "doctor_mutations_corpus" if options.corpus else "doctor_mutations"
        print(save_results(name, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
