"""What a run remembers of the machine and the code that it was started with."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueloop import device as devices, ranks


def environment(device: torch.device | None = None) -> dict[str, Any]:
    """Versions, platform, device, command line, start time and git commit, as plain data.

    `device` is the one that the run uses, by default the one that `auto` picks; the start time is
    now (ISO 8601, UTC); the commit is that of the working directory, if it is in a git checkout.
    """
    import trueloop

    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "directory": os.getcwd(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "trueloop": trueloop.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "cuda": torch.version.cuda,
        "device": devices.describe(devices.pick("auto") if device is None else device),
        "ranks": ranks.world_size(),
        "git": _git(),
    }


def _git() -> dict[str, Any] | None:
    """The commit checked out here and whether tracked files differ from it; None outside git."""

    def ask(*words: str) -> str:
        answer = subprocess.run(
            ["git", *words], capture_output=True, text=True, timeout=2, check=True
        )
        return answer.stdout.strip()

    try:
        commit = ask("rev-parse", "HEAD")
        return {"commit": commit, "modified": bool(ask("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None
