"""The provenance of results: the code of each part of a run, and of its evaluations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.atomic import cannot_write, write_atomic
from trueloop.errors import RunError
from trueloop.run.code_changes import changes_since
from trueloop.run.folder import PATCH, write_patch
from trueloop.run.json_files import read_json, write_json

if TYPE_CHECKING:
    from trueloop.run.directory import Run

EVALUATIONS = "evaluations"
"""The folder of the run's later evaluations and predictions, with a folder for each."""
RECORD = "evaluation.json"
# What makes a resumed run one of different circumstances, worth a part in its history.
_COMPARED = ("ranks", "parallel", "git", "trueloop", "torch", "data")
_NOTED = ("started", "ranks", "hosts", "parallel", "device", "git", "trueloop", "torch", "data")


def parts_of(environment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of a run, the first one and those resumed in different circumstances, each with the
    `update` after which it began."""
    first = {name: value for name, value in environment.items() if name != "resumed"}
    later = environment.get("resumed")
    resumed = [
        part
        for part in (later if isinstance(later, list) else ())
        if isinstance(part, dict) and isinstance(part.get("update"), int)
    ]
    return [{"update": 0, "patch": PATCH, **first}, *resumed]


def note_resume(run: Run, facts: Mapping[str, Any], update: int) -> None:
    """Add to the run's environment that it was resumed after `update` updates, where its code,
    data, versions or ranks are different, and keep the uncommitted changes of its code.

    Args:
        run: the run; hold it before.
        facts: what `environment()` returns here.
        update: the updates that the run has.
    """
    environment = run.environment
    parts = parts_of(environment)
    changes = changes_since(facts.get("git"))
    patch = patch_of(run, parts[-1])
    before = b"" if patch is None else patch.read_bytes()
    # A fact that an older version did not record is not a difference.
    known = [name for name in _COMPARED if name in parts[-1] or name in ("ranks", "parallel")]
    if changes == before and all(parts[-1].get(name) == facts.get(name) for name in known):
        return
    here = {"update": update, **{name: facts[name] for name in _NOTED if name in facts}}
    if changes:
        here["patch"] = _kept(run.path, changes)
    run.write_environment({**environment, "resumed": [*parts[1:], here]})


def patch_of(run: Run, part: Mapping[str, Any]) -> Path | None:
    """The file of a part's uncommitted changes; None where there were none."""
    name = part.get("patch")
    path = run.path / name if isinstance(name, str) else None
    return path if path is not None and path.is_file() else None


def _kept(folder: Path, changes: bytes) -> str:
    """The name of the file that has these changes, which is written unless there is one."""
    name, number = PATCH, 1
    while (folder / name).exists():
        if (folder / name).read_bytes() == changes:
            return name
        number += 1
        name = f"{Path(PATCH).stem}-{number}.patch"
    write_atomic(folder / name, changes)
    return name


def code_history(run: Run) -> dict[str, str]:
    """The code of the run in words, by the update after which it was run; empty outside git."""
    history: dict[str, str] = {}
    for part in parts_of(run.environment):
        words = code_in_words(part.get("git"))
        if words is None:
            continue
        patch = patch_of(run, part)
        words += "" if patch is None else f", with the uncommitted changes of {patch.name}"
        if words not in list(history.values())[-1:]:
            history[f"from update {part['update']:,}"] = words
    return history


def code_in_words(git: Any) -> str | None:
    """The commit, in words; None outside git."""
    if not isinstance(git, Mapping):
        return None
    commit = git.get("commit")
    return f"commit {str(commit)[:10]}" if commit else "no commit"


def record_evaluation(run: Run, found: Mapping[str, Any], environment: Mapping[str, Any]) -> Path:
    """Keep what an evaluation found, with the machine, the code and its uncommitted changes.

    Args:
        run: the run whose weights were evaluated.
        found: plain data: the data and their digest, scores or the file of the predictions.
        environment: what `environment()` returns here.

    Returns:
        The new folder, `evaluations/DATE-TIME` in the run's.

    Raises:
        RunError: the folder cannot be written.
    """
    stem = run.path / EVALUATIONS / time.strftime("%Y%m%d-%H%M%S")
    folder, number = stem, 1
    while True:
        try:
            stem.parent.mkdir(exist_ok=True)
            folder.mkdir()
            break
        except FileExistsError as error:
            if not stem.parent.is_dir():  # a link that leads nowhere
                raise cannot_write(stem.parent, error) from None
            number += 1
            folder = stem.with_name(f"{stem.name}-{number}")
        except OSError as error:
            raise cannot_write(folder, error) from None
    write_json(folder / "environment.json", environment)
    write_patch(folder, environment)
    write_json(folder / RECORD, found)  # last: a folder with it is complete
    return folder


def evaluations_of(run: Run) -> dict[str, dict[str, Any]]:
    """The records of the run's evaluations by the names of their folders, the oldest first; damaged
    ones are skipped."""
    found = {}
    for path in sorted((run.path / EVALUATIONS).glob(f"*/{RECORD}")):
        try:
            record = read_json(path)
        except RunError:
            continue
        if all(isinstance(record.get(name) or {}, dict) for name in ("data", "scores", "out")):
            found[path.parent.name] = record
    return found
