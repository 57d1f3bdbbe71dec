"""Values that all ranks compute together. Every rank must make the same calls in the same order."""

from __future__ import annotations

from typing import Any, Literal

import torch.distributed as dist
from torch import Tensor

from trueloop.ranks.group import data_parallel, is_distributed, rank, world_size
from trueloop.ranks.progress import waiting

How = Literal["sum", "mean", "max", "min"]
_OPS = {"sum": "SUM", "mean": "SUM", "max": "MAX", "min": "MIN"}


def reduced(value: Tensor, how: How = "sum", what: str = "a sum over all ranks") -> Tensor:
    """The sum, mean, maximum or minimum of `value` over all ranks, element by element, on its own
    device; `value` itself in one process. `what` names it where a rank waits for the others."""
    if not is_distributed():
        return value
    value = value.detach().clone()
    with waiting(what):
        dist.all_reduce(value, op=getattr(dist.ReduceOp, _OPS[how]))
    return value / world_size() if how == "mean" else value


def sum_over_ranks(value: Tensor) -> Tensor:
    """The sum of `value` over all ranks, on its own device; `value` itself in one process."""
    return reduced(value)


class PendingSum:
    """A sum over all ranks that is under way."""

    def __init__(self, value: Tensor, what: str, group: dist.ProcessGroup | None = None) -> None:
        self._value = value
        self._what = what
        self._work: Any = None
        if is_distributed():
            self._value = value.detach().clone()
            self._work = dist.all_reduce(self._value, group=group, async_op=True)

    def result(self) -> Tensor:
        """The sum. On the CPU it is waited for; on an accelerator its stream waits, not the
        host."""
        if self._work is not None:
            with waiting(self._what):
                self._work.wait()
            self._work = None
        return self._value


def start_sum(value: Tensor, what: str, group: dist.ProcessGroup | None = None) -> PendingSum:
    """Begin a sum over all ranks; what is computed before `result` is asked for hides its time.
    `group` is one of all ranks: `host_group` for a tensor on the CPU beside a training on GPUs."""
    return PendingSum(value, what, group)


def host_group() -> dist.ProcessGroup:
    """A group of all ranks for what stays on their hosts; every rank must make it."""
    group: dist.ProcessGroup = dist.new_group(backend="gloo")
    return group


def gathered(value: Any, what: str = "what each rank has to say") -> list[Any]:
    """`value` of every rank, by rank; [value] in one process. Any object that can be pickled."""
    if not is_distributed():
        return [value]
    found: list[Any] = [None] * world_size()
    with waiting(what):
        dist.all_gather_object(found, value)
    return found


def of_each_part(value: Any, what: str) -> list[Any]:
    """`value` of each part of the batch (`data_parallel`), by the parts' numbers; of ranks that
    take the same part, that of the first."""
    pairs = gathered((data_parallel()[0], value), what)
    by_part = dict(reversed(pairs))
    return [by_part[number] for number in sorted(by_part)]


def from_main(value: Any, what: str = "what rank 0 has decided") -> Any:
    """The `value` of rank 0 on every rank; `value` itself in one process."""
    if not is_distributed():
        return value
    found = [value if rank() == 0 else None]
    with waiting(what):
        dist.broadcast_object_list(found, src=0)
    return found[0]


def barrier(what: str) -> None:
    """Return when every rank has come here."""
    if is_distributed():
        gathered(None, what)
