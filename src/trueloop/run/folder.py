"""The folder of a run: made, found, and locked by one process at a time."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from trueloop import ranks
from trueloop.checkpoint import LOCK, claimed, write_atomic
from trueloop.errors import RunError, nearest
from trueloop.files import special_kind
from trueloop.run.code_changes import changes_since
from trueloop.run.json_files import write_json

CONFIG = "config.json"
"""The file that makes a folder a run."""
PATCH = "changes.patch"
"""The changes of the code since its commit, when the run began."""
# All that `create` writes before the file that makes the folder a run, and while it writes that.
_UNBORN = re.compile(
    r"environment\.json|changes\.patch|\.lock"
    r"|\.(environment\.json|changes\.patch|config\.json)\.\d+\.tmp"
)

_REACHED = (
    "results.json", "checkpoints", "metrics.jsonl", "pictures", "report.html", "plotly.min.js",
    "data.json", "task.json", "findings.json", "log", "profile",
    "trackers", "evaluations",
)  # fmt: skip
# What `write_atomic` writes before it gives it its name.
_TEMPORARY = re.compile(r"\..+\.\d+(\.old)?\.tmp")


@contextmanager
def claimed_by_main(path: Path) -> Iterator[None]:
    """`claimed` by rank 0 on behalf of all ranks; where it cannot be, all of them raise."""
    with ExitStack() as stack:

        def keep_locked() -> None:
            stack.enter_context(claimed(path))

        ranks.on_main(keep_locked, "the lock of the run directory")
        yield


def is_run(path: Path) -> bool:
    """Whether there is a run at `path`."""
    try:
        return (path / CONFIG).is_file()
    except OSError:
        return False


def is_empty(folder: Path) -> bool:
    """Whether a run may be made in the folder: it has nothing but a lock, maybe."""
    return all(entry.name == LOCK for entry in folder.iterdir())


def remove_unborn(path: Path) -> None:
    """Empty the folder at `path` if it has nothing but the remains of a `create` that was killed.

    Hold it before (`claimed`): what is there may be a run that a different process is just
    creating.
    """
    if is_run(path):
        return
    entries = list(path.iterdir())
    if all(_UNBORN.fullmatch(entry.name) for entry in entries):
        for entry in entries:
            if entry.name != LOCK:  # the caller's
                entry.unlink(missing_ok=True)


def make(path: Path, config: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    """Make the folder of a new run and write what is known of it."""
    make_folder(path)
    try:
        write_json(path / "environment.json", environment)
        write_patch(path, environment)
        # Last, because this file is what makes the folder a run.
        write_json(path / CONFIG, config)
    except BaseException:
        remove(path)
        raise


def write_patch(path: Path, environment: Mapping[str, Any]) -> None:
    """Write the uncommitted changes of the code that runs here, if there are any."""
    if changes := changes_since(environment.get("git")):
        write_atomic(path / PATCH, changes)


def make_folder(path: Path) -> None:
    """Make the folder of a new run, or take an empty one; `RunError` where that cannot be."""
    try:
        if path.is_dir():
            if is_run(path):
                raise RunError(
                    f"{path} already contains a run: choose a different directory, or resume it: "
                    f"trueloop resume {path}"
                )
            if not is_empty(path):
                raise RunError(f"{path} exists and is not empty: choose a different run directory")
        elif path.exists():
            what = special_kind(path) or "a file"
            raise RunError(f"{path} is {what}, not a run directory: choose a different name")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(
            f"cannot create the run directory {path} ({reason}): choose a path that can be written"
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise RunError(f"the run directory {path} cannot be written: choose a different one")


def remove(path: Path) -> None:
    # Resolved, because a link to a folder cannot be removed as one.
    shutil.rmtree(path.resolve(), ignore_errors=True)


def clear(path: Path) -> None:
    """Remove what a run has reached; what others have put into its folder stays."""
    try:
        for reached in [*(path / name for name in _REACHED), *path.glob("changes*.patch")]:
            if reached.is_dir():
                shutil.rmtree(reached)
            else:
                reached.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(
            f"cannot clear the run directory {path} ({error.strerror}): check its permissions, or "
            "choose a different one"
        ) from None


def begin_again(path: Path, environment: Mapping[str, Any]) -> None:
    """Remove what a run has reached, and write with what it starts again."""
    clear(path)
    write_json(path / "environment.json", environment)
    write_patch(path, environment)


def temporary_files(*folders: Path) -> list[Path]:
    """The temporary files of `write_atomic` in the folders, of one that is running or was
    killed."""
    existing = [folder for folder in folders if folder.is_dir()]
    return [entry for f in existing for entry in f.iterdir() if _TEMPORARY.fullmatch(entry.name)]


def no_run(path: Path) -> str:
    """Why `path` is not a run, and which one may have been meant."""
    if path.is_dir():
        if kind := special_kind(path / CONFIG):
            return f"{path / CONFIG} is {kind}, not a regular file: restore it"
        inside = sorted(runs_below(path))
        if inside:
            listed = ", ".join(str(found) for found in inside[:3])
            more = ", …" if len(inside) > 3 else ""
            return f"{path} is not a run but contains some: name one of them ({listed}{more})"
        what = f"{path} is not a run directory (it has no {CONFIG})"
    elif path.exists():
        what = f"{path} is {special_kind(path) or 'a file'}, not a run directory"
    else:
        what = f"no run at {path}"
    try:
        names = [found.name for found in path.parent.iterdir() if is_run(found)]
    except OSError:
        names = []
    hint = nearest(path.name, names) or "name a directory that `trueloop train --run` made"
    return f"{what}: {hint}"


def runs_below(folder: Path) -> Iterator[Path]:
    """Folders that look like runs of ours: only a config.json may be any program's."""
    for root, folders, names in os.walk(folder):
        beside = {"environment.json", "metrics.jsonl", "results.json"}
        if CONFIG in names and beside.intersection(names):
            yield Path(root)
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
