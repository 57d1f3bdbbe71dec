"""The checkpoints of a run: `last`, from which it goes on, and `best`, by a monitored score."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch

from trueloop.checkpoint.atomic import write_atomic
from trueloop.errors import RunError

FORMAT = 1


class Checkpoints:
    """Writes `last.pt` and `best.pt` into a folder, each whole or absent.

    `keep_best` names the score that decides which epoch is the best; `None` keeps only the last.
    """

    def __init__(self, folder: str | Path, *, keep_best: str | None = "val_loss") -> None:
        self.folder = Path(folder)
        self.keep_best = keep_best

    def save(self, which: str, state: dict[str, Any]) -> Path:
        """Write `state` (plain data and tensors) as `last` or `best`; returns the file's path."""
        path = self.folder / f"{which}.pt"
        # torch.save writes in many small pieces: through memory, the disk sees one.
        buffer = io.BytesIO()
        torch.save({"format": FORMAT, "torch": str(torch.__version__), **state}, buffer)
        write_atomic(path, buffer.getbuffer())
        return path


def load_checkpoint(
    path: str | Path, which: str = "last", map_location: str | torch.device = "cpu"
) -> dict[str, Any]:
    """The state in a checkpoint file, or in `which` (`last` or `best`) of a folder of them.

    Nothing in the file is executed (`weights_only=True`). Raises `RunError` when there is no such
    file, or it is no checkpoint, or it is damaged.
    """
    path = Path(path)
    if path.is_dir():
        path = path / f"{which}.pt"
    if not path.is_file():
        raise RunError(f"no checkpoint at {path}: the run ended before it saved one")
    try:
        # torch reads past flipped bits; the archive's own checksums do not.
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"wrong checksum of {damaged}")
        state = torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:  # damaged bytes make the readers raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(
            f"{path} is damaged or no checkpoint ({reason[:120]}): use another one"
        ) from None
    if not isinstance(state, dict) or state.get("format") != FORMAT or "model" not in state:
        raise RunError(f"{path} is no checkpoint of this version: use one that trueloop wrote")
    return state
