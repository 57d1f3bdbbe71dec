"""The check of `--out`, apart from the others so that `--help` does not wait for torch."""

from __future__ import annotations

from pathlib import Path

from trueloop.errors import ConfigError


def check_out_folder(out: Path) -> None:
    """Refuse a place for a file or folder whose own folder is not there: a slip, more often than
    not."""
    if not out.parent.is_dir():
        raise ConfigError(f"no folder {out.parent}: create it, or choose a different --out")
