"""A verb under `torchrun`: which ranks run it, and which of them print."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout

TOGETHER = frozenset({"train", "resume", "evaluate", "predict", "verify-resume"})
"""Verbs that all ranks run together. Any other is run only by rank 0."""
_IN_ONE_PROCESS = {
    "tune": "trueloop tune measures one process, and starts its trials itself: start it without "
    "torchrun",
}
"""Verbs that several ranks cannot run, and why."""
_OF_LAUNCHER = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
)  # fmt: skip


def run_verb(verb: str, words: Sequence[str]) -> int:
    """Run one verb of the command line, on all ranks where that makes sense; the exit status."""
    with ExitStack() as stack:
        if os.environ.get("WORLD_SIZE", "1").strip() != "1":
            if verb in _IN_ONE_PROCESS:
                return _refuse(_IN_ONE_PROCESS[verb])
            if verb in TOGETHER:
                stack.enter_context(together())
            elif os.environ.get("RANK", "0").strip() != "0":
                return 0
            else:
                stack.enter_context(_alone())
        status = importlib.import_module(f"trueloop.cli.{verb.replace('-', '_')}").main(words)
    assert isinstance(status, int)
    return status


def _refuse(reason: str) -> int:
    """Refuse a verb on all ranks, in one line of rank 0; the exit status."""
    from trueloop.cli import MISTAKE
    from trueloop.errors import ConfigError

    if os.environ.get("RANK", "0").strip() == "0":
        raise ConfigError(reason)
    return MISTAKE


@contextmanager
def together() -> Iterator[None]:
    """All ranks in one process group, of which only rank 0 prints and warns."""
    import torch

    from trueloop import ranks

    number = ranks.local_rank()
    has_own = torch.cuda.is_available() and number < torch.cuda.device_count()
    # CPU tensors travel by gloo in either case, so that --device cpu can still be chosen.
    with ranks.joined(torch.device("cuda", number) if has_own else torch.device("cpu")):
        if ranks.is_main():
            yield
            return
        with open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stdout(nothing):
            warnings.simplefilter("ignore")
            yield


def is_restarted() -> bool:
    """Whether `torchrun` has started the ranks again, after one of them or a host was lost."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0").strip() not in ("", "0")


def launched() -> dict[str, str]:
    """The environment that the launcher of several ranks has set, for a process that one of them
    starts in its place; nothing in one process."""
    if os.environ.get("WORLD_SIZE", "1").strip() == "1":
        return {}
    found = {name: os.environ[name] for name in _OF_LAUNCHER if name in os.environ}
    # The store is there already: of the launcher, or of rank 0.
    return found | {"TORCHELASTIC_USE_AGENT_STORE": "True"}


@contextmanager
def _alone() -> Iterator[None]:
    """Rank 0 as if it had been started by itself: what it starts must not wait for peers."""
    kept = {name: os.environ.pop(name) for name in _OF_LAUNCHER if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
