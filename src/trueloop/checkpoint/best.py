"""The best checkpoint of a folder, as recorded in best.json and in the manifests.

    {"name": "e00003-b00000-u000000320", "epoch": 3, "update": 320, "scores": {"val_loss": 0.81}}

In the files epochs count from 1; the functions here count from 0, as records do.

Each checkpoint that was the best when it was written says that in its manifest. Of those that are
there, the latest one beat all before it: what best.json says can be found again where it is lost.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueloop.atomic import write_atomic
from trueloop.checkpoint import store
from trueloop.errors import RunError
from trueloop.files import read_bytes

BEST = "best.json"
_MOST_BYTES = 1 << 24


def mark(folder: Path, name: str, best: Mapping[str, Any]) -> None:
    """Mark the checkpoint `name` as the best; `best` has its `epoch`, from 0, the `update` that it
    was evaluated after, and its `scores`."""
    said = {"name": name, **store.in_file(best)}
    write_atomic(folder / BEST, json.dumps(said, indent=2).encode())


def marked(folder: Path) -> dict[str, Any] | None:
    """`name`, `epoch` (from 0) and `scores` of the best checkpoint; None if there is none.

    A best.json that is damaged or missing is made up for from the manifests; a warning names the
    damaged one. Raises `RunError` for a damaged one where no manifest helps.
    """
    found = _read(folder)
    if found is not None:
        return found
    found = _by_manifests(folder)
    file = folder / BEST
    if not os.path.lexists(file):
        return found
    if found is None:
        raise RunError(f"{file} is damaged: delete it, and resume from the last checkpoint")
    warnings.warn(
        f"{file} is damaged; by the manifests of the checkpoints, {found['name']} is the best",
        RuntimeWarning,
        stacklevel=3,
    )
    return found


def is_there(folder: Path) -> bool:
    """Whether there is something for `marked` to find, or to raise for."""
    return os.path.lexists(folder / BEST) or _by_manifests(folder) is not None


def remark(folder: Path) -> None:
    """Write best.json again from the manifests, if one of them records the best checkpoint: a run
    may have been killed between the writing of a checkpoint and its mark. One that names nothing
    that is there is removed."""
    found = _by_manifests(folder)
    if found is not None:
        mark(folder, found.pop("name"), found)
    elif os.path.lexists(folder / BEST) and _read(folder) is None:
        (folder / BEST).unlink()


def _read(folder: Path) -> dict[str, Any] | None:
    """The content of best.json; None where it cannot be read, or names no checkpoint that
    exists."""
    try:
        found = json.loads(read_bytes(folder / BEST, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    # By the names that there are: a name that was tampered with leads to no other folder.
    if store.is_best(found) and found.get("name") in store.names_in(folder):
        return {**found, "epoch": found["epoch"] - 1}
    return None


def _by_manifests(folder: Path) -> dict[str, Any] | None:
    for name in reversed(store.names_in(folder)):
        try:
            best = store.manifest(folder / name).get("best")
        except RunError:  # a damaged one is not gone on from, and marks nothing
            continue
        if best is not None:
            return {"name": name, **best, "epoch": best["epoch"] - 1}
    return None
