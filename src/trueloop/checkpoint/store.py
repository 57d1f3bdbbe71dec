"""One checkpoint on disk: a folder that is either complete or absent.

    e00003-b00000-u000000320/
        state.pt        plain data and tensors, as torch.save writes them
        __0_0.distcp    where several ranks train: the tensors that rank 0 has written, …
        .metadata       … and which file has which part of each tensor
        manifest.json   size and SHA-256 of each of them; written last

It is written under a temporary name, every file flushed to the disk, and renamed into place; the
rename is flushed too. A crash at any moment leaves the earlier checkpoints as they were and at most
a temporary folder, which the next writer removes. Reading checks every byte against the manifest
and executes nothing (`weights_only=True`).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch

from trueloop.atomic import cannot_write, flush_folder, write_atomic
from trueloop.errors import RunError
from trueloop.files import open_regular, read_bytes

FORMAT = 3
"""The newest one: 2 has room for the user's own named state, 3 is written by several ranks. One
process writes 2. All are read."""
OF_ONE_PROCESS = 2
STATE = "state.pt"
MANIFEST = "manifest.json"
_FILE = re.compile(r"state\.pt|\.metadata|__\d+_\d+\.distcp")
_NAME = re.compile(r"e\d{5,}-b\d{5,}-u\d{9,}")
_CHUNK = 1 << 22
_MOST_BYTES = 1 << 24


class NewerError(RunError):
    """A checkpoint was written by a later version of trueloop than this one: it is not damaged."""


def name_of(epoch: int, batch: int, update: int) -> str:
    """A checkpoint's name: the next batch's place in the run, and the updates applied before it."""
    return f"e{epoch:05d}-b{batch:05d}-u{update:09d}"


def names_in(folder: Path) -> list[str]:
    """The names of the checkpoints in `folder`, whole or damaged, the oldest first."""
    if not folder.is_dir():
        return []
    names = (entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name))
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


def write(path: Path, state: dict[str, Any], facts: dict[str, Any]) -> None:
    """Write `state` (plain data and tensors) as the checkpoint `path`.

    `facts` are plain data for the manifest: what one wants to know without loading the state. A
    checkpoint of that name is replaced. Raises `RunError` when it cannot be written; nothing of
    the new one is left then.
    """
    temporary = temporary_of(path)
    try:
        make(temporary)
        files = {STATE: write_state(temporary, state)}
        commit(temporary, path, files, {"format": OF_ONE_PROCESS, **facts})
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def temporary_of(path: Path) -> Path:
    """The folder in which the checkpoint `path` is written before it is one."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def make(temporary: Path) -> None:
    """Make the folder of a checkpoint to be written."""
    temporary.mkdir(parents=True)
    reached("folder made")


def write_state(temporary: Path, state: dict[str, Any]) -> dict[str, Any]:
    """Write the file of plain data and tensors, onto the disk; returns its size and SHA-256."""
    with (temporary / STATE).open("wb") as file:
        hashed = Hashed(file)
        hashed.save(state)
        reached("state written")
        _flush(file)
    reached("state flushed")
    return {"size": hashed.size, "sha256": hashed.digest()}


def commit(
    temporary: Path, path: Path, files: Mapping[str, dict[str, Any]], facts: Mapping[str, Any]
) -> None:
    """Make the checkpoint `path` of a folder whose other files are whole and on the disk: write
    the manifest, and rename. A checkpoint of that name is replaced."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.old.tmp")
    try:
        manifest = {**_versions(), **facts, "files": dict(files)}
        with (temporary / MANIFEST).open("wb") as file:
            file.write(json.dumps(manifest, indent=2).encode())
            reached("manifest written")
            _flush(file)
        flush_folder(temporary)
        reached("manifest flushed")
        if path.exists():
            # Damaged, or of a future that was given up: going on from it was not possible or not
            # wanted, since this run has come to the same place again.
            path.rename(aside)
        temporary.rename(path)
        reached("renamed")
        flush_folder(path.parent)
        reached("done")
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def reached(stage: str) -> None:
    """Called with the stage of a write; a test may end the process at each of these stages."""


def read(path: Path, part: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """The content of state.pt of the checkpoint `path`, on the CPU, after `verify(path, part)`.

    Raises `RunError` naming the file that is missing or damaged.
    """
    verify(path, part)
    try:
        # Indices of a sparse tensor that lead out of it would be followed.
        check = torch.sparse.check_sparse_tensor_invariants(enable=True)  # type: ignore[no-untyped-call]
        with open_regular(path / STATE) as file, check:
            state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # what is no state makes the readers raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(
            f"{path / STATE} cannot be read ({reason[:120]}): use a different checkpoint"
        ) from None
    if not isinstance(state, dict):
        raise RunError(f"{path / STATE} contains no state: use a different checkpoint")
    return state


def verify(path: Path, part: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """The manifest of the checkpoint `path`; `RunError` if any byte is not what it says.

    `part` = (k, n) looks only at every n-th file of shards, from the k-th on: n ranks do it
    together.
    """
    facts = manifest(path)
    shards = sorted(name for name in facts["files"] if name.endswith(".distcp"))
    for name in [n for n in facts["files"] if n not in shards] + shards[part[0] :: part[1]]:
        verify_file(path / name, facts["files"][name])
    return facts


def verify_file(file: Path, said: Mapping[str, Any]) -> None:
    """Raise `RunError` unless the file has the size and the SHA-256 that its manifest states."""
    try:
        digest = hashlib.sha256()
        with open_regular(file) as content:
            size = os.fstat(content.fileno()).st_size
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise RunError(
            f"{file} cannot be read ({error.strerror}): use a different checkpoint"
        ) from None
    if (size, digest.hexdigest()) != (said["size"], said["sha256"]):
        raise RunError(
            f"{file} is damaged (it differs from its manifest): use a different checkpoint"
        )


def manifest(path: Path) -> dict[str, Any]:
    """The manifest of the checkpoint `path`, unverified; `RunError` if it is damaged."""
    file = path / MANIFEST
    try:
        facts = json.loads(read_bytes(file, _MOST_BYTES))
        files, form = facts["files"], facts["format"]
        known = type(form) is int and STATE in files and all(map(_FILE.fullmatch, files))
        for said in files.values():
            known = known and [type(said[name]) for name in ("size", "sha256")] == [int, str]
        known = known and (facts.get("best") is None or is_best(facts["best"]))
    except OSError as error:
        raise RunError(
            f"{file} cannot be read ({error.strerror}): use a different checkpoint"
        ) from None
    except Exception:  # any bytes may stand there
        known = False
    if not known or form < 1:
        raise RunError(f"{file} is damaged: use a different checkpoint")
    if form > FORMAT:
        raise NewerError(f"{path} was written by a newer trueloop: update trueloop, then resume")
    return facts  # type: ignore[no-any-return]


def in_file(best: Mapping[str, Any]) -> dict[str, Any]:
    """The mark of a checkpoint as the best, as files have it: with its `epoch` counted from 1."""
    return {**best, "epoch": best["epoch"] + 1}


def is_best(value: Any) -> bool:
    """Whether it says what marks a checkpoint as the best: its `epoch`, from 1, and `scores`."""
    return (
        isinstance(value, dict)
        and type(value.get("epoch")) is int
        and value["epoch"] >= 1
        and isinstance(value.get("scores"), dict)
        and all(type(score) in (int, float) for score in value["scores"].values())
    )


def note(path: Path, **facts: Any) -> None:
    """Add plain data to what the checkpoint `path` says of itself."""
    said = manifest(path) | facts
    write_atomic(path / MANIFEST, json.dumps(said, indent=2).encode())


def other_torch(path: Path) -> str | None:
    """A note for the checkpoint `path` of a different major or minor version of torch, else
    None."""
    here = str(torch.__version__)
    there = str(manifest(path).get("torch"))
    released = [re.match(r"\d+\.\d+", version) for version in (there, here)]
    if released[0] is None or released[1] is None or released[0][0] == released[1][0]:
        return None
    return (
        f"{path.parent}: written with torch {there}, and this is torch {here}: results may differ "
        "in the last digits"
    )


def _versions() -> dict[str, str]:
    from trueloop import __version__

    return {
        "trueloop": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def remove_litter(folder: Path) -> None:
    """Remove the temporary files of a killed writer."""
    for entry in folder.glob(".*.tmp"):
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


class Hashed:
    """A file for torch.save, hashed on its way: reading it again would cost as much as writing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._failure: OSError | None = None
        self.size = 0

    def save(self, state: dict[str, Any]) -> None:
        """`torch.save(state, self)`; where that fails on the file, the file's own error."""
        try:
            torch.save(state, cast(BinaryIO, self))
        except RuntimeError:
            # Closing its archive, torch stumbles over what was not written, and says that instead.
            if self._failure is not None:
                raise self._failure from None
            raise

    def write(self, data: Any) -> int:
        self._hash.update(data)
        try:
            count = self._file.write(data)
        except OSError as error:
            self._failure = error
            raise
        self.size += count
        return count

    def flush(self) -> None:
        self._file.flush()

    def digest(self) -> str:
        return self._hash.hexdigest()
