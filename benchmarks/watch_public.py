"""`trueloop watch` on training scripts that nobody here wrote: it must change nothing, and what it
finds was judged by hand.

    python benchmarks/watch_public.py CLONES [--only WORD ...] [--rest] [--jobs N]

`public/watched.json` lists the scripts: repository, path, how each is made to run in seconds
(arguments, data sets that `watch_data.py` makes up, replacements in its text), and its judged
findings. The commits are those of `public/repositories.json`, or stand in the entry. CLONES
contains a git directory for each, as `owner+name`. Each script runs alone and watched, in the same
folder, with the same seed and one thread; where something is different, alone once more, which
shows what differs from run to run anyway. Compared are the exit status, what the script prints, the
weights after each update, the state of the random generators at the end, and the files that it
writes. `stand_ins/` has a torchvision of made-up images. A script whose packages or clone are
missing is skipped with one line. Results are added to `results/watch_public.json`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import RESULTS, save_results, table
from public_clones import LISTS, git, git_folder, listed
from watch_compare import Outcome, differences, files_in, varies
from watch_data import write_data

STAND_INS = Path(__file__).parent / "stand_ins"
_WRITING = threading.Lock()
LIMIT = 900
"""Seconds, after which a run is stopped: a hang is a difference."""


@dataclass(frozen=True)
class Script:
    """One entry of `public/watched.json`."""

    repository: str
    script: str
    kind: str
    commit: str = ""
    """Of a repository that `repositories.json` does not name."""
    files: tuple[str, ...] = ()
    """What it needs of its repository; its own folder if empty."""
    folder: str | None = None
    """Where it runs; its own folder if None."""
    arguments: tuple[str, ...] = ()
    data: tuple[dict[str, Any], ...] = ()
    replace: tuple[tuple[str, str, str], ...] = ()
    """File, what is written in it, and what is written in its place."""
    environment: dict[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.repository}/{self.script}"

    @property
    def runs_in(self) -> str:
        return str(Path(self.script).parent) if self.folder is None else self.folder

    @property
    def path(self) -> str:
        """Of the script, from the folder where it runs."""
        return os.path.relpath(self.script, self.runs_in)


def scripts(lists: Path = LISTS) -> list[Script]:
    """The committed list."""
    content = json.loads((lists / "watched.json").read_text("utf-8"))
    return [
        Script(**{key: tuple(value) if isinstance(value, list) else value
                  for key, value in each.items()})
        for each in content["scripts"]
    ]  # fmt: skip


def missing(script: Script, clones: Path) -> str:
    """Why a script cannot run here; empty if it can."""
    lacking = [name for name in script.packages if importlib.util.find_spec(name) is None]
    if lacking:
        return f"pip install {' '.join(lacking)}"
    return "" if git_folder(clones, script.repository) else f"no clone in {clones}"


def prepare(script: Script, clones: Path, commit: str, into: Path) -> None:
    """Write the script's files and data sets, with the replacements."""
    source = git_folder(clones, script.repository)
    assert source is not None
    wanted = script.files or (str(Path(script.script).parent),)
    into.mkdir(parents=True)
    archive = git(source, "archive", "--format=tar", commit, "--", *wanted)
    subprocess.run(["tar", "-x", "-C", str(into)], input=archive, check=True)
    for path, old, new in script.replace:
        text = (into / path).read_text()
        if old not in text:
            raise SystemExit(f"{script.name}: {path} does not contain {old!r}")
        (into / path).write_text(text.replace(old, new))
    for each in script.data:
        write_data(into, **each)


def run(script: Script, folder: Path, found: Path | None) -> Outcome:
    """Run a script in a folder that `prepare` wrote; watched if `found` is a file to write."""
    notes = folder.parent / "notes.json"
    notes.unlink(missing_ok=True)
    watch = ["-m", "trueloop", "watch", "--format", "json", "--output", str(found)]
    command = [sys.executable, *(watch if found else []), script.path, *script.arguments]
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg",
        "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": "",
        "HF_HOME": str(folder.parent / "hf"), "WATCH_PUBLIC_NOTES": str(notes),
        **script.environment,
    }  # fmt: skip
    own = (script.environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH"))
    environment["PYTHONPATH"] = os.pathsep.join([str(STAND_INS), *filter(None, own)])
    before, began = files_in(folder), time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder / script.runs_in, env=environment, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=LIMIT, check=False,
        )  # fmt: skip
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        status, out, err = -1, "", f"stopped after {LIMIT} s"
    written = {path: what for path, what in files_in(folder).items() if before.get(path) != what}
    return Outcome(
        status=status, out=out, err=err, files=written, seconds=time.monotonic() - began,
        notes=json.loads(notes.read_text()) if notes.exists() else {},
    )  # fmt: skip


def tried(script: Script, clones: Path, commit: str) -> dict[str, Any]:
    """The runs of a script, compared; the findings beside their verdicts."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        folder, found = root / "run", root / "found.json"

        def fresh(watched: Path | None) -> Outcome:
            shutil.rmtree(folder, ignore_errors=True)
            prepare(script, clones, commit, folder)
            return run(script, folder, watched)

        alone, seen = fresh(None), fresh(found)
        different = differences(alone, alone, seen)
        again = None
        if different:
            again = fresh(None)
            different = differences(alone, again, seen)
        told = json.loads(found.read_text()) if found.exists() else {}
    if not told:
        different.append(f"no report: {seen.err[-2000:]}")
    different += [f"problem: {each}" for each in told.get("problems", ())]
    findings, unseen = judged(script, told.get("findings", []))
    return {
        "script": script.name,
        "kind": script.kind,
        "status": alone.status,
        "error": alone.err[-1500:] if alone.status else "",
        "updates": alone.notes.get("updates", 0),
        "printed_lines": alone.out.count("\n"),
        "files": len(alone.files),
        "varies_alone": varies(alone, again) if again else [],
        "same": not different,
        "differences": different,
        "findings": findings,
        "not_found_again": unseen,
    }


def judged(script: Script, told: Sequence[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The findings with their verdicts; and those judged that were not found again."""
    known = {(each["path"], each["line"], each["code"]): each for each in script.findings}
    findings = []
    for each in told:
        if each["code"].startswith("TS"):
            continue  # where the time goes: that is the machine's
        verdict = known.pop((each["path"], each["line"], each["code"]), {})
        findings.append({
            **{key: each[key] for key in ("code", "severity", "path", "line", "message")},
            "verdict": verdict.get("verdict", "unjudged"),
            "reason": verdict.get("reason", ""),
        })  # fmt: skip
    return findings, list(known.values())


def row(result: dict[str, Any]) -> dict[str, Any]:
    """One line of the table."""
    alarms = Counter(each["verdict"] for each in result["findings"] if each["severity"] != "advice")
    return {
        "script": result["script"],
        "updates": result["updates"],
        "same": "yes" if result["same"] else "NO",
        "true": alarms["true"],
        "noise": alarms["noise"],
        "false": alarms["false"],
        "unjudged": alarms["unjudged"],
        "advice": len(result["findings"]) - alarms.total(),
        "gone": len(result["not_found_again"]),
    }


def show(result: dict[str, Any]) -> None:
    print(f"{result['script']}: {result['updates']} updates, status {result['status']}, "
          f"{'same' if result['same'] else 'DIFFERENT'}", flush=True)  # fmt: skip
    for line in [result["error"], *result["differences"]]:
        if line:
            print(f"    {line}")
    for each in result["findings"]:
        print(f"    {each['code']} {each['severity']} {each['path']}:{each['line']} "
              f"[{each['verdict']}] {each['message']}")  # fmt: skip
    for each in result["not_found_again"]:
        print(f"    gone: {each['code']} {each['path']}:{each['line']} [{each['verdict']}]")


def kept_results() -> list[dict[str, Any]]:
    """The results of earlier runs."""
    path = RESULTS / "watch_public.json"
    return json.loads(path.read_text("utf-8"))["results"] if path.exists() else []


def keep(result: dict[str, Any]) -> None:
    """Write one script's result beside those of the other listed scripts."""
    with _WRITING:
        before = {each["script"]: each for each in kept_results()}
        before[result["script"]] = result
        kept = [before[each.name] for each in scripts() if each.name in before]
        right = [each for each in kept if is_right(each)]
        save_results("watch_public", {
            "scripts": len(kept), "same": sum(each["same"] for each in kept), "right": len(right),
            "updates": sum(each["updates"] for each in kept), "results": kept,
        })  # fmt: skip


def is_right(result: dict[str, Any]) -> bool:
    """The same run, updates were seen, and no finding is unjudged or false."""
    verdicts = {each["verdict"] for each in result["findings"] if each["severity"] != "advice"}
    return (
        result["same"] and result["updates"] > 0 and not result["status"]
        and not verdicts & {"unjudged", "false"} and not result["not_found_again"]
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clones", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="words in a script's name")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rest", action="store_true", help="only those without a right result")
    parser.add_argument("--lists", type=Path, default=LISTS)
    given = parser.parse_args(argv)
    commits = {each.repository: each.commit for each in listed(given.lists)}
    chosen = [each for each in scripts(given.lists)
              if not given.only or any(word in each.name for word in given.only)]  # fmt: skip
    if given.rest:
        right = {each["script"] for each in kept_results() if is_right(each)}
        chosen = [each for each in chosen if each.name not in right]
    able = []
    for each in chosen:
        why = missing(each, given.clones)
        if why:
            print(f"skipped: {each.name}: {why}")
        else:
            able.append(each)
    results: list[dict[str, Any]] = []

    def attempt(each: Script) -> None:
        results.append(tried(each, given.clones, each.commit or commits[each.repository]))
        show(results[-1])
        if given.lists == LISTS:
            keep(results[-1])

    turns: Counter[str] = Counter()
    order = []
    for each in able:
        order.append((turns[each.repository], each))
        turns[each.repository] += 1
    # One of each repository first: a long run shows every kind early.
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(attempt, [each for _, each in sorted(order, key=lambda pair: pair[0])]))
    if not results:
        return 1
    results.sort(key=lambda each: [script.name for script in able].index(each["script"]))
    print(table([row(each) for each in results]))
    return 0 if all(map(is_right, results)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
