"""How far training has come from its first update: the losses, and the size of the updates."""

from __future__ import annotations

import math
import weakref
from collections import Counter, deque
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.model.measurements import UpdateSizes

if TYPE_CHECKING:
    from torch.optim import Optimizer

_EXACT = (torch.float32, torch.float64)
_MATRICES = 8
_NUMBERS = 32_768
"""Of a matrix, that are looked at."""
_WINDOW = 64
_CLASSES = 4096
_TARGETS = 200_000


class LossMeans(NamedTuple):
    first: float
    latest: float
    error: float
    """Standard error of their difference."""


class LossHistory:
    """Losses of the first updates and of the latest ones."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=_WINDOW)

    def add(self, losses: list[float]) -> None:
        room = _WINDOW - len(self._first)
        self._first += losses[:room]
        self._latest += losses[room:]

    def means(self) -> LossMeans | None:
        """Both means, and the error of their difference; None where there are too few losses."""
        first, latest = self._first, list(self._latest)
        if len(latest) < 16 or not all(map(math.isfinite, (*first, *latest))):
            return None
        error = math.sqrt(_variance(first) / len(first) + _variance(latest) / len(latest))
        return LossMeans(fmean(first), fmean(latest), error)


def _variance(values: list[float]) -> float:
    middle = fmean(values)
    return sum((each - middle) ** 2 for each in values) / (len(values) - 1)


class ConstantBaseline:
    """The loss of the best constant prediction, by the targets that were seen."""

    def __init__(self) -> None:
        self._labels: Counter[int] = Counter()
        self._losses: deque[float] = deque(maxlen=_WINDOW)
        self.known = True

    def see(self, kind: str, given: dict[str, Any]) -> None:
        """The arguments of one call of a loss function."""
        source, target = given.get("input"), given.get("target")
        plain = given.get("weight") is None and given.get("pos_weight") is None
        if (
            not plain
            or not inspection.is_tensor(target)
            or not 4 <= target.numel() <= _TARGETS
            or source is None
            or source.dim() < 1
        ):
            self.known = False
        elif kind in ("CrossEntropyLoss", "NLLLoss") and not target.is_floating_point():
            self._count(target, given.get("ignore_index", -100))
        elif kind in _CONSTANTS and target.shape == source.shape:
            values = parameter_stats.local(target).double()
            values = values.reshape(len(values), -1) if values.dim() else values.reshape(1, 1)
            self._losses.append(float(_CONSTANTS[kind](values)))
        else:
            self.known = False

    def _count(self, target: torch.Tensor, ignored: int) -> None:
        values = parameter_stats.local(target)
        labels, counts = values.unique(return_counts=True)  # type: ignore[no-untyped-call]
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            if label != ignored:
                self._labels[label] += count
        if len(self._labels) > _CLASSES:
            self.known = False
            self._labels.clear()

    @property
    def loss(self) -> float | None:
        if not self.known:
            return None
        if self._labels:
            total = sum(self._labels.values())
            return -sum(n / total * math.log(n / total) for n in self._labels.values())
        return fmean(self._losses) if self._losses else None


def _entropy(values: torch.Tensor) -> torch.Tensor:
    share = values.mean(0).clamp(1e-12, 1 - 1e-12)
    return -(share * share.log() + (1 - share) * (1 - share).log()).mean()


def _distance(values: torch.Tensor) -> torch.Tensor:
    return (values - values.median(0).values).abs().mean()


_CONSTANTS = {
    "MSELoss": lambda values: values.var(0).mean() if len(values) > 1 else values.mean() * 0,
    "L1Loss": _distance,
    "BCEWithLogitsLoss": _entropy,
    "BCELoss": _entropy,
}


class Sizes:
    """Of the updates, and of the gradients, against the weights that they are of."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, torch.Tensor]] = []
        self._usual: deque[float] = deque(maxlen=_WINDOW)
        self._faded: deque[float] = deque(maxlen=_WINDOW)
        self._gradient = 0.0
        self.most = 0.0
        """The largest ratio that was ever seen."""
        self.count = 0
        self.first_rate: float | None = None
        self.most_rate = 0.0

    def before(self, optimizer: Optimizer) -> None:
        """An optimizer is about to step."""
        held = [
            each
            for each in inspection.parameters_of(optimizer)
            if each.requires_grad and each.dim() > 1 and each.numel() and each.dtype in _EXACT
        ]
        if len(held) > _MATRICES:
            last = len(held) - 1
            held = [held[i * last // (_MATRICES - 1)] for i in range(_MATRICES)]
        self._before = [(weakref.ref(p), _some(p).clone()) for p in held]

    def after(self, optimizer: Optimizer, update: int) -> None:
        """It has stepped; its gradients are still there."""
        before, self._before = self._before, []
        alive = [(reference(), was) for reference, was in before]
        pairs = [(p, was) for p, was in alive if p is not None and p.grad is not None]
        if not pairs:
            return
        numbers = _sizes(pairs)
        changes = [change / size for change, size, _ in numbers if size > 0]
        slopes = [slope / size for _, size, slope in numbers if size > 0]
        if not changes or not all(map(math.isfinite, (*changes, *slopes))):
            return
        self.count += 1
        self.most = max(self.most, *changes)
        self._gradient = max(self._gradient, *(slope for *_, slope in numbers))
        if update > 20:
            self._usual.append(median(changes))
        if len(slopes) > 1 and slopes[-1] > 0:
            self._faded.append(slopes[0] / slopes[-1])
        rate = max(parameter_stats.rates(optimizer), default=0.0)
        self.first_rate = rate if self.first_rate is None else self.first_rate
        self.most_rate = max(self.most_rate, rate)

    def forget(self) -> None:
        """Nobody looks any more."""
        self._before = []

    def measured(self) -> UpdateSizes | None:
        if self.count < 20 or len(self._usual) < 16 or self.first_rate is None:
            return None
        usual = sorted(self._usual)
        return UpdateSizes(
            most=self.most,
            usual=median(usual),
            low=usual[len(usual) // 4],
            gradient=self._gradient,
            faded=median(self._faded) if len(self._faded) >= 16 else None,
            first_rate=self.first_rate,
            most_rate=self.most_rate,
            looked=self.count,
        )


def _some(tensor: torch.Tensor) -> torch.Tensor:
    return parameter_stats.local(tensor).reshape(-1)[:_NUMBERS]


def _sizes(pairs: list[tuple[Any, torch.Tensor]]) -> list[tuple[float, float, float]]:
    """Of parameters and what they were: norms of the change, of the weights before it, and of the
    gradient."""
    before = [was for _, was in pairs]
    slopes = [_some(p.grad).to(was.dtype) for p, was in pairs]
    changes = [_some(p) - was for p, was in pairs]
    norms = torch._foreach_norm([*changes, *before, *slopes])
    device = norms[0].device
    flat = torch.stack([each.to(device, torch.float32) for each in norms]).tolist()
    count = len(pairs)
    return list(zip(flat[:count], flat[count : 2 * count], flat[2 * count :], strict=True))


def spread(output: torch.Tensor) -> float | None:
    """How far predictions of a batch differ: the mean over all outputs of their deviation."""
    values = parameter_stats.local(output)
    if values.dim() == 0 or len(values) < 4 or not values.is_floating_point():
        return None
    return float(values.float().std(0).mean())
