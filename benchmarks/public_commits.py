"""Known bugs of public repositories: what `check` says before the fix, and after it.

`public/buggy_commits.json` names the fix, its parent, the file, what was wrong and the code that is
due for it, or none where no rule speaks of it. `folders`: only these are checked out; `check`: only
these are checked, where everything would take long. `part` as in `repositories.json`, for other
repositories by the same hash of the name; of the bugs held out only the number is told.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import save_results, table
from public_clones import LISTS, check_out, git_folder
from public_findings import run_command


@dataclass(frozen=True)
class KnownBug:
    """One line of `public/buggy_commits.json`."""

    repository: str
    before: str
    after: str
    path: str
    wrong: str
    code: str
    part: str
    folders: tuple[str, ...] = ()
    check: tuple[str, ...] = (".",)


def known_bugs(lists: Path = LISTS) -> list[KnownBug]:
    content = json.loads((lists / "buggy_commits.json").read_text("utf-8"))
    return [
        KnownBug(**{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()})
        for each in content["commits"]
    ]


def codes_at(git: Path, commit: str, bug: KnownBug) -> Counter[tuple[str, str]]:
    """Errors and warnings in the repository, as file and code."""
    with tempfile.TemporaryDirectory() as name:
        check_out(git, commit, Path(name), bug.folders)
        if not (Path(name) / bug.path).exists():
            raise SystemExit(f"{bug.repository}: no {bug.path} at {commit}")
        told = run_command(Path(name), bug.check)
    return Counter(
        (each["path"], each["code"]) for each in told["findings"] if each["severity"] != "advice"
    )


def outcome(
    bug: KnownBug, before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]
) -> dict[str, Any]:
    """Found is what is due and gone after the fix, wherever it stood, since the remedy may be at a
    call; without a rule, whatever is gone. Silent: nothing of it is left in the file."""
    gone = [code for _, code in (before - after).elements()]
    left = [code for path, code in after.elements() if path == bug.path]
    return {
        "repository": bug.repository,
        "path": bug.path,
        "wrong": bug.wrong,
        "due": bug.code,
        "part": bug.part,
        "gone": ", ".join(sorted(set(gone))),
        "found": bug.code in gone if bug.code else bool(gone),
        "silent": bug.code not in left if bug.code else not left,
    }


def summary(rows: Sequence[dict[str, Any]], part: str) -> dict[str, Any]:
    """A line of the table."""
    chosen = [each for each in rows if each["part"] == part]
    due = [each for each in chosen if each["due"]]
    return {
        "known bugs": part,
        "all": len(chosen),
        "found": sum(each["found"] for each in chosen),
        "silent after": sum(each["silent"] for each in chosen),
        "with a rule": len(due),
        "found of these": sum(each["found"] for each in due),
    }


def try_commits(clones: Path, lists: Path, only: Sequence[str] | None) -> int:
    """Print what was found before and what is silent after."""
    rows = []
    for bug in known_bugs(lists):
        if only and bug.repository not in only:
            continue
        git = git_folder(clones, bug.repository)
        if git is None:
            print(f"no clone of {bug.repository} in {clones}")
            continue
        before, after = (codes_at(git, commit, bug) for commit in (bug.before, bug.after))
        rows.append(outcome(bug, before, after))
        each = rows[-1]
        if bug.part != "looked at":
            continue
        told = "found" if each["found"] else f"missed {each['due']}".strip()
        told += "" if each["silent"] else ", not silent after the fix"
        print(f"{bug.repository} {bug.path}: {bug.wrong}: {told}", flush=True)
    totals = [summary(rows, part) for part in ("looked at", "held out") if rows]
    print("\n" + table(totals))
    if lists == LISTS and not only:
        shown = [each for each in rows if each["part"] == "looked at"]
        print(save_results("public_commits", {"totals": totals, "commits": shown}))
    return 0
