"""The window of all ranks: their micro-batches together give the gradient of their union.

With W ranks of which rank r has, in its i-th of A micro-batches, the mean loss L_ri over n_ri
samples or tokens, the gradient of the union is that of sum(n_ri L_ri) / sum(n_ri). The ranks'
gradients are averaged, so each micro-batch is weighted by n_ri / (A · reference), and what is left
over, W · A · reference / sum(n_ri), is applied once to the gradient. `reference` is one number that
all ranks have agreed on: with even batches it is the count of each, the weight is 1/A and the
factor exactly 1, as in a loop by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from trueloop import ranks
from trueloop.device import is_immediate
from trueloop.errors import RunError
from trueloop.records import LossOutput, resolve_count
from trueloop.shapes import COUNT, FINITE, Shape, Where
from trueloop.step.accumulate import MicroBatchWindow, Number, is_zero, times
from trueloop.step.deferred_reads import DeferredReads

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_HEAD, _PER_PART = 5, 3
"""Numbers in the vector: total, samples, tokens, weighted loss, unknown names; then, for each named
part, its weighted sum, the sum of its counts, and in how many micro-batches it was."""


class GlobalWindow(MicroBatchWindow):
    """The micro-batches of one update on all ranks.

    What the update needs of the other ranks is one small vector, summed while the last backward
    runs: counts, samples, tokens, the loss and its named parts. On the CPU it is read then; on an
    accelerator nothing of it is read by the host. Samples and tokens are then summed by the hosts,
    which know them: a run is counted in them.
    """

    AGREED: ClassVar[Shape] = {
        "reference": Where(FINITE, lambda n: n > 0, "a number above 0"),
        "ranks": COUNT,
    }
    """The form of the state that `load_agreed` takes."""

    def __init__(self, size: int) -> None:
        self._reference_of_all: float | None = None
        self._names: list[str] = []
        """The named parts that all ranks know of."""
        self._ask_names = True
        self._unknown: DeferredReads[None] = DeferredReads()
        self._host_group: ProcessGroup | None = None
        super().__init__(size)

    def close(self) -> None:
        """Empty the window for the next update."""
        super().close()
        self._seen: dict[str, int] = {}
        """Per name, the micro-batches of this rank that have the part."""
        self._sum: ranks.PendingSum | None = None
        self._counts: ranks.PendingSum | None = None

    def add(self, output: LossOutput, samples: int, stand_in: bool = False) -> Tensor:
        """Take in one micro-batch's mean loss and its parts; returns the loss to call backward on.

        A stand-in counts for nothing, whatever its loss is.
        """
        loss, n = output.loss, self._count(output, samples, stand_in)
        if self._reference_of_all is None:
            self._reference_of_all = _first_count(n)
        reference = self._reference_of_all
        self.is_weightless = is_zero(n)
        self.micro_batches += 1
        self.samples += samples
        self.losses.append(torch.zeros_like(loss.detach()) if stand_in else loss.detach())
        self.total = self.total + n
        self._weighted = self._weighted + times(loss.detach(), n)
        if stand_in:
            return loss  # whose gradient goes nowhere
        for name, part in output.parts.items():
            total, weight = self._parts.get(name, (0.0, 0))
            self._parts[name] = (total + times(part, n), (weight or 0) + n)
            self._seen[name] = self._seen.get(name, 0) + 1
        if not isinstance(n, Tensor) and n == reference:
            return loss if self.size == 1 else loss / self.size
        return loss * (n / (self.size * reference))

    def _count(self, output: LossOutput, samples: int, stand_in: bool) -> Number:
        n: Number = 0 if stand_in else resolve_count(output.count, samples)
        if not isinstance(n, Tensor):
            return n
        if is_immediate(n.device):
            return n.item()
        return n.detach().reshape(()).to(output.loss.device, torch.float64)

    def begin_sum(self) -> None:
        """Start the sum over all ranks: after the last micro-batch's `add`, before its backward."""
        if self._ask_names:
            self._names = _all_names([*self._names, *self._parts])
            self._ask_names = False
        numbers: list[Number] = [self.total, self.samples, self.tokens, self._weighted]
        numbers.append(len(self._parts.keys() - set(self._names)))
        for name in self._names:
            total, weight = self._parts.get(name, (0.0, 0))
            numbers += [total, weight or 0, self._seen.get(name, 0)]
        vector = _vector(numbers, self.losses[-1].device)
        self._sum = ranks.start_sum(vector, "the loss of all ranks")
        if is_immediate(vector.device):
            return
        if self._host_group is None:
            self._host_group = ranks.host_group()
        counts = torch.tensor([self.samples, self.tokens])
        self._counts = ranks.start_sum(counts, "the samples of all ranks", self._host_group)

    def finish_sum(self) -> None:
        """Take over what all ranks have together."""
        assert self._sum is not None
        vector = self._sum.result()
        if is_immediate(vector.device):
            self._read(vector)
        else:
            self._keep(vector)
        wide = torch.promote_types(self.losses[-1].dtype, torch.float32)
        self.mean = (vector[3] / vector[0]).to(wide)
        self._weighted = vector[3]
        self._parts = {name: (total.to(wide), None) for name, (total, _) in self._parts.items()}

    def _read(self, vector: Tensor) -> None:
        """On the CPU: plain numbers, and the parts that any rank has in this update."""
        self.total, samples, tokens, _, unknown, *_ = vector.tolist()
        self.samples, self.tokens = int(samples), int(tokens)
        found: dict[str, tuple[Tensor, Number | None]] = {
            name: (vector[k] / vector[k + 1], None)
            for name, k in self._places()
            if vector[k + 2] > 0
        }
        if unknown:
            mine = {
                name: (float(total), float(weight or 0))
                for name, (total, weight) in self._parts.items()
                if name not in self._names
            }
            found |= _means(ranks.gathered(mine, "new parts of the loss"))
            self._names = [*self._names, *(name for name in found if name not in self._names)]
        self._parts = found

    def _keep(self, vector: Tensor) -> None:
        """On an accelerator: the parts that this rank has; names that not all ranks know yet are
        asked for when word of them has arrived."""
        assert self._counts is not None
        self.total = vector[0]
        self.samples, self.tokens = self._counts.result().tolist()
        self._parts = {
            name: (vector[k] / vector[k + 1], None)
            for name, k in self._places()
            if name in self._parts
        }
        self._unknown.send(vector[4], None)

    def refresh_names(self) -> None:
        """Agree on the names of new parts, if word of any has arrived; before a window's first
        batch, on every rank."""
        for unknown, _ in self._unknown.due():
            if unknown > 0:
                self._ask_names = True

    def _places(self) -> list[tuple[str, int]]:
        """Each known name, and where its numbers begin in the vector."""
        return [(name, _HEAD + _PER_PART * k) for k, name in enumerate(self._names)]

    def correction(self) -> float | Tensor:
        """The factor that the averaged gradient still needs: 1.0 for even batches."""
        assert self._reference_of_all is not None
        whole = ranks.world_size() * self.size * self._reference_of_all
        if isinstance(self.total, Tensor):
            return torch.where(self.total > 0, whole / self.total, float("nan"))
        return whole / self.total if self.total > 0 else float("nan")

    def means(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss and its named parts: of all ranks once they are summed, before that of
        this rank's window so far."""
        if self.mean is not None:
            return self.mean, {name: part for name, (part, _) in self._parts.items()}
        assert isinstance(self._weighted, Tensor)
        parts = self._parts.items()
        return self._weighted / self.total, {n: t / w for n, (t, w) in parts if w is not None}

    def agreed(self) -> dict[str, Any] | None:
        """The window that the ranks have agreed on once for the whole run; None before the first
        batch."""
        if self._reference_of_all is None:
            return None
        return {"reference": self._reference_of_all, "ranks": ranks.world_size()}

    def load_agreed(self, state: dict[str, Any] | None) -> None:
        """Load what `agreed` returned; a different number of ranks agrees again."""
        same = state is not None and state["ranks"] == ranks.world_size()
        self._reference_of_all = state["reference"] if same and state is not None else None
        self._names, self._ask_names = [], True

    def state_dict(self) -> dict[str, Any]:
        """Of a window that is closed: each rank has its own micro-batches in an open one."""
        if self.is_open:
            raise RunError(
                "an accumulation window is open, and each rank has a different part of it: save "
                "the state after an update, where step.is_accumulating is False"
            )
        return super().state_dict()


def _first_count(n: Number) -> float:
    """The count of the first rank that has any in the run's first micro-batch; the same on all."""
    counts = ranks.gathered(float(n), "the first batch's count")
    return next((count for count in counts if count > 0), 1.0)


def _all_names(mine: list[str]) -> list[str]:
    """The names of the loss's parts on all ranks, in the same order on each."""
    found = ranks.gathered(mine, "the names of the loss's parts")
    return list(dict.fromkeys(name for names in found for name in names))


def _means(found: list[dict[str, tuple[float, float]]]) -> dict[str, tuple[Tensor, None]]:
    """The mean of each part over the ranks that have it, from its sums and counts."""
    names = dict.fromkeys(name for one in found for name in one)
    sums = {
        name: [sum(one[name][k] for one in found if name in one) for k in (0, 1)] for name in names
    }
    return {
        name: (torch.tensor(total, dtype=torch.float64) / weight, None)
        for name, (total, weight) in sums.items()
    }


def _vector(numbers: list[Number], device: torch.device) -> Tensor:
    """Numbers and scalars as one vector, in double precision."""
    if is_immediate(device):
        return torch.tensor([float(number) for number in numbers], dtype=torch.float64)
    return torch.stack(
        [
            number.detach().double()
            if isinstance(number, Tensor)
            # A fill, which an accelerator does without a wait.
            else torch.full((), float(number), dtype=torch.float64, device=device)
            for number in numbers
        ]
    )
