"""Whether any rank wants something, asked of all of them without a wait."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import torch
import torch.distributed as dist

from trueloop.ranks.group import is_distributed
from trueloop.ranks.progress import waiting


class Agreement:
    """A question that every rank asks at the same places of its work, and that has the same answer
    on all of them at the same place.

    The answer is that to an earlier question: it travels while the ranks compute. Where calls
    follow each other fast, only every k-th asks; k is agreed on with the answer, from the slowest
    rank's pace, so that the others' answer is known about `seconds` later.
    """

    most_calls: ClassVar[int] = 1000
    """From one question to the next, at the most."""

    def __init__(self, seconds: float = 0.2) -> None:
        self._seconds = seconds
        self._group: dist.ProcessGroup | None = None
        self._work: Any = None
        self._vector = torch.zeros(2)
        self._calls = 0
        self._next = 1
        self._asked_at = time.monotonic()
        self._asked_call = 0

    def ask(self, wanted: bool) -> bool:
        """Whether any rank wanted it at an earlier call; in one process, `wanted` itself."""
        if not is_distributed():
            return wanted
        self._calls += 1
        if self._calls < self._next:
            return False
        every = 1
        if self._work is not None:
            with waiting("the other ranks' word on whether to stop"):
                self._work.wait()
            self._work = None
            if self._vector[0] > 0:
                return True
            every = int(-self._vector[1])
        self._next = self._calls + every
        self._begin(wanted)
        return False

    def settle(self) -> bool:
        """The answer to the last question, waited for; False if none is open."""
        if self._work is None:
            return False
        with waiting("the other ranks' word on whether to stop"):
            self._work.wait()
        self._work = None
        return bool(self._vector[0] > 0)

    def _begin(self, wanted: bool) -> None:
        if self._group is None:
            # Its own group: it does not wait for gradients, and needs no accelerator.
            self._group = dist.new_group(backend="gloo")
        now, calls = time.monotonic(), self._calls - self._asked_call
        pace = max(now - self._asked_at, 1e-6) / max(calls, 1)
        self._asked_at, self._asked_call = now, self._calls
        every = min(max(int(self._seconds / pace), 1), self.most_calls)
        self._vector = torch.tensor([float(wanted), -float(every)])
        self._work = dist.all_reduce(
            self._vector, op=dist.ReduceOp.MAX, group=self._group, async_op=True
        )
