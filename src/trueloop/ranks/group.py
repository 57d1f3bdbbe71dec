"""The process group: joined as `torchrun` describes it, left however the run ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from trueloop.errors import ConfigError
from trueloop.ranks import failure
from trueloop.ranks.progress import waiting
from trueloop.ranks.rank_watcher import RankWatcher
from trueloop.ranks.rendezvous import met

_NAMES = ("RANK", "MASTER_ADDR", "MASTER_PORT")
_EARLY = timedelta(seconds=10)
_CLOSING_SECONDS = 2.0
_MANY = 64
_AVAILABLE = dist.is_available()
_store: Store | None = None
_watcher: RankWatcher | None = None


def is_distributed() -> bool:
    """Whether a process group of more than one rank is up."""
    # Asked in every update: `is_available` does not change.
    return _AVAILABLE and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    """This process's rank in the group; 0 in one process."""
    return dist.get_rank() if is_distributed() else 0


def world_size() -> int:
    """How many ranks train together; 1 in one process."""
    return dist.get_world_size() if is_distributed() else 1


def is_main() -> bool:
    """Whether this is the rank that writes files and prints (rank 0)."""
    return rank() == 0


def local_rank() -> int:
    """This process's number on its host, as the launcher says; 0 without one."""
    return _number("LOCAL_RANK", 0)


def local_world_size() -> int:
    """How many processes the launcher says it started on this host; 1 without one."""
    return max(_number("LOCAL_WORLD_SIZE", 1), 1)


def _on_host(number: int, size: int) -> range:
    """The ranks that may run on this host: torchrun numbers them host by host. All, where the
    launcher does not say how many it has started here."""
    if "LOCAL_RANK" not in os.environ or "LOCAL_WORLD_SIZE" not in os.environ:
        return range(size)
    first = number - local_rank()
    return range(max(first, 0), min(first + local_world_size(), size))


def launched_ranks() -> int:
    """How many processes the launcher (`torchrun`) says it started; 1 without one."""
    return max(_number("WORLD_SIZE", 1), 1)


def data_parallel() -> tuple[int, int]:
    """(number, count): which part of each global batch this rank takes, of how many parts."""
    return rank(), world_size()


def store() -> Store | None:
    """The key-value store of the group that `joined` made; None outside one.

    Its calls are seen by all ranks while they compute; a rank that has died answers none.
    """
    return _store


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.strip().isdecimal():
        raise ConfigError(f"the environment has {name}={text!r}: start the processes with torchrun")
    return int(text)


@contextmanager
def joined(device: torch.device, *, minutes: float = 30.0) -> Iterator[None]:
    """Within it, the ranks that `torchrun` started are one process group; without effect in one
    process, or where the program has made its own group.

    CPU tensors travel by gloo, those of CUDA by nccl. A collective that takes longer than `minutes`
    raises.

    An exception on one rank, or its death, ends all of them within 20 seconds. It is raised on only
    by that rank (with its rank as a note); the others leave with a `SystemExit` of the same status,
    without a word. If a rank has died, one of the others raises `RankError`.

    Raises `ConfigError` where the environment does not say how to meet the others.
    """
    global _store, _watcher
    if launched_ranks() == 1 or dist.is_initialized():
        yield
        return
    timeout = timedelta(minutes=minutes)
    found, number, size = _launchers_store(timeout)
    failure.forget()
    _store = met(found, number, size, timeout)
    _watcher = RankWatcher(_store, number, size, _on_host(number, size))
    _watcher.start()
    try:
        with waiting("the other ranks, to make one group with them"):
            _init(device, PrefixStore("group", _store), number, size, timeout)
        yield
    except BaseException as error:
        instead = _watcher.leave(error)
        # The dead do not answer: what a process group waits for may never come.
        closing = threading.Thread(target=_destroy, daemon=True)
        closing.start()
        closing.join(_CLOSING_SECONDS)
        if instead is not error:
            raise instead from None
        raise
    else:
        _watcher.end()
        _destroy()
    finally:
        _store, _watcher = None, None


def _launchers_store(timeout: timedelta) -> tuple[Store, int, int]:
    """The launcher's key-value store, this process's rank, and the number of ranks."""
    missing = [name for name in _NAMES if name not in os.environ]
    if missing:
        raise ConfigError(
            f"the environment has WORLD_SIZE={launched_ranks()} and no {missing[0]}: start the "
            "processes with torchrun, or unset WORLD_SIZE"
        )
    found: tuple[Store, int, int] = next(rendezvous("env://", timeout=timeout))
    return found


def _init(device: torch.device, store: Store, number: int, size: int, timeout: timedelta) -> None:
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if size >= _MANY:
        # A training has three groups of gloo's, and each would connect every rank with all others.
        os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
        store=store,
        rank=number,
        world_size=size,
        timeout=timeout,
    )


def _destroy() -> None:
    with suppress(RuntimeError):  # of a group whose other ranks are gone
        if dist.is_initialized():
            dist.destroy_process_group()


def all_raise(error: BaseException) -> bool:
    """Whether every rank raises this error at this place (a loss that is NaN is one of all ranks, a
    file that only one host lacks is not), so that they can still work together; True in one
    process. An error of one rank is to be raised on at once."""
    return _watcher is None or _watcher.all_raise(error)


def stop_signal() -> int | None:
    """The signal that some rank has got, for which all are to end; None if there is none."""
    return None if _watcher is None else _watcher.stop_signal


def look() -> None:
    """Learn now, and not at the thread's next look, whether any rank has failed."""
    if _watcher is not None:
        _watcher.look()


def ask_to_stop(number: int) -> None:
    """Let all ranks know within about a second that this one has got a signal."""
    if _watcher is not None:
        _watcher.ask_to_stop(number)


def has_stopped() -> None:
    """A run has ended for a signal, as all ranks have agreed: the signal does not end the next."""
    if _watcher is not None:
        _watcher.has_stopped()


def watcher_of_group() -> RankWatcher | None:
    """The thread that looks after the other ranks; None outside of `joined`."""
    return _watcher


def fail_before_joining(error: BaseException) -> None:
    """Tell the other ranks of a failure of a process that has never joined them.

    Afterwards `failure.speaks` is true only on one rank. Without effect in one process, or where
    the failure is known.
    """
    if failure.known is not None or launched_ranks() == 1:
        return
    message, status = failure.words_of(error), failure.status_of(error)
    own = failure.RankFailure(_number("RANK", 0), message, status)
    try:
        found, number, size = _launchers_store(_EARLY)
        store = met(found, number, size, _EARLY, complete=False)
        failure.report_mistake(store, number, message)
        if not failure.claim(store, own):
            failure.linger(store, lambda rank: False)
        else:
            failure.is_everyones = failure.all_raise(store, number, size, message)
    except (RuntimeError, ValueError):  # no process left to inform
        failure.learn(own, mine=True)
