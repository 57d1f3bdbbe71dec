"""The record of an evaluation: its machine, code and data, beside what comes out of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueloop import ranks
from trueloop.cli._session import Trained
from trueloop.errors import RunError
from trueloop.names import printable_line
from trueloop.run import environment
from trueloop.run.code_changes import changes_since
from trueloop.run.data_digest import data_facts
from trueloop.run.lineage import code_in_words, parts_of, patch_of, record_evaluation


def keep_evaluation(trained: Trained, verb: str, data: Path | None, **found: Any) -> None:
    """Record what the best weights of a run came to on `data` (None: the run's own), and print on
    stderr, in one line, what is different from the training and bears on that. Every rank calls it,
    and the main one does it."""
    facts = environment(trained.device)
    if not ranks.is_main():
        return
    run = trained.run
    used = data_facts(trained.task.data if data is None else data)
    record = {"verb": verb, "epoch": trained.epoch + 1, "data": used, **found}
    if trained.task.digest is not None and data is None:
        record["split_digest"] = trained.task.digest
    lines = [f"note: {what}" for what in _differences(trained, used, facts, own=data is None)]
    try:
        record_evaluation(run, record, facts)
    except RunError as error:
        lines.append(f"warning: this is not recorded in the run: {error}")
    for line in lines:
        print(printable_line(f"trueloop: {line}"), file=sys.stderr)


def _differences(
    trained: Trained, used: Mapping[str, Any] | None, now: Mapping[str, Any], *, own: bool
) -> list[str]:
    """At most one line."""
    then = parts_of(trained.run.environment)[-1]
    changed = []
    kept = then.get("data")
    if isinstance(kept, Mapping) and used and kept.get("digest") and used["digest"]:
        if kept["digest"] == used["digest"] and not own:
            return [
                f"{used['path']} has the data that the run was trained on, so these results say "
                "nothing about new data: leave --data out for its validation and test part"
            ]
        if kept["digest"] != used["digest"] and kept.get("path") == used["path"]:
            changed.append(f"{used['path']} is not the same")
    changed += [
        f"{name} is {now[name]}, and was {then[name]}"
        for name in ("trueloop", "torch")
        if then.get(name) not in (None, now[name])
    ]
    if ":" in trained.settings.task and (code := _other_code(trained, then, now)):
        changed.append(code)
    return [f"since the training, {'; '.join(changed)}"] if changed else []


def _other_code(trained: Trained, then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """How the code of a task of the user's own differs from the one that was trained."""
    before, here = then.get("git"), now.get("git")
    if not (isinstance(before, Mapping) and isinstance(here, Mapping)):
        return None
    if before.get("folder") != here.get("folder"):
        return None  # a different repository, or one that has moved
    if before.get("commit") != here.get("commit"):
        return f"the code is at {code_in_words(here)}, and was at {code_in_words(before)}"
    patch = patch_of(trained.run, then)
    kept = b"" if patch is None else patch.read_bytes()
    return None if kept == changes_since(here) else "the code has other uncommitted changes"
