"""`torchrun`, in an interpreter that has imported torch before, and so are its ranks: the programs
are the same, and only who starts the processes is not."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warm_python import Bare, Popen, with_our_servers

NUMBERS = "TRUELOOP_WARM_RANKS"
"""The file where `torchrun` notes its ranks and their processes, which are not its children."""
_HERE = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import warm_torchrun; "


class _Rank(Popen):
    def __init__(self, args: Sequence[str], env: dict[str, str], **options: Any) -> None:
        super().__init__(args, env=env, **options)
        with Path(env[NUMBERS]).open("a") as numbers:
            print(env["RANK"], self.pid, file=numbers)


def start(words: Sequence[str], numbers: Path, **options: Any) -> Bare:
    """`subprocess.Popen` of `torchrun WORDS`, within what `warm_python.Popen` knows."""
    servers = with_our_servers()
    servers["env"][NUMBERS] = str(numbers)
    return Bare(["-c", f"{_HERE}warm_torchrun.main()", *words], **servers, **options)


def write_command(path: Path, numbers: Path) -> dict[str, Any]:
    """Write the command `torchrun` into a file; returns options of a process that shall find it."""
    path.write_text(
        f"#!{sys.executable} -S\n{_HERE}from pathlib import Path\n"
        f"sys.exit(warm_torchrun.start(sys.argv[1:], Path({str(numbers)!r})).wait())\n"
    )
    path.chmod(0o755)
    servers = with_our_servers()
    servers["env"]["PATH"] = f"{path.parent}:{os.environ['PATH']}"
    return servers


def ranks(numbers: Path) -> list[int]:
    """The processes of the ranks, by rank: those that `torchrun` has started last."""
    lines = [line.split() for line in numbers.read_text().splitlines()]
    found = {int(rank): int(pid) for rank, pid in lines}
    return [found[rank] for rank in sorted(found)]


def main() -> None:
    """The program that `start` starts."""
    from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler
    from torch.distributed.run import main as torchrun

    with_our_servers()  # takes them from the environment, which the ranks shall not have them in
    subprocess_handler.Popen = _Rank  # type: ignore[misc]
    torchrun()
