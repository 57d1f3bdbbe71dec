"""A run's record of the machine and the code that it was started with."""

from __future__ import annotations

import os
import platform
import shlex
import socket
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trueloop import device as devices, ranks
from trueloop.run.code_changes import git_facts

GIVEN = "options_given"
"""In a run's environment: the names of the options that the user gave, on the command line or in a
file; the others have their defaults."""


def environment(device: torch.device | None = None, parallel: str | None = None) -> dict[str, Any]:
    """Versions, platform, device, command line, start time and git commit; every rank calls it.

    The start time is now (ISO 8601, UTC); the commit is that of the working directory, if it is in
    a git checkout.

    Args:
        device: the one that the run uses; None: the one that `auto` picks.
        parallel: how several ranks train together.

    Returns:
        Plain data; of several ranks also their number and their hosts.
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
        **_together(parallel),
        "git": git_facts() if ranks.is_main() else None,
    }


def _together(parallel: str | None) -> dict[str, Any]:
    """The facts that many ranks have in common: their hosts, each with its number of ranks, the
    strategy, and by whom they were started."""
    if not ranks.is_distributed():
        return {}
    hosts = Counter(ranks.gathered(socket.gethostname(), "the names of the hosts"))
    return {"hosts": dict(hosts), "parallel": parallel, "launch": launched_by()}


def launched_by() -> str | None:
    """Names the `torchrun` that started this process: the same after it has restarted the ranks.

    Its --rdzv-id where it has one, else its process. None where nothing can be said.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    name = os.environ["TORCHELASTIC_RUN_ID"]
    if name not in ("", "none"):
        return name
    parent = os.getppid()
    try:
        # Its 22nd field is when the process started: another one may get the same number later.
        fields = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        began = fields[19]
    except (OSError, IndexError):
        began = ""
    return f"{socket.gethostname()}:{parent}:{began}"
