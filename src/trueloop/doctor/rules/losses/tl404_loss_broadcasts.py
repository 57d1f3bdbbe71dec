"""A loss compares every prediction with every target: their shapes broadcast.

## What it does

Finds an elementwise loss (`mse_loss`, `l1_loss`, `smooth_l1_loss`, `huber_loss`, or a handwritten
difference or product) of predictions of shape (N, 1) and targets of shape (N,), or the reverse.

## Why it breaks training

Broadcasting gives the difference the shape (N, N): each prediction is compared with the targets of
all samples of the batch. That mean is smallest if every prediction is the mean of the targets. The
model learns a constant, the loss falls to the variance of the targets and stays there, and nothing
raises.

## Wrong

```python
prediction = model(inputs)                   # (N, 1)
loss = ((prediction - targets) ** 2).mean()  # targets: (N,)
```

## Right

```python
prediction = model(inputs).squeeze(1)        # (N,)
loss = F.mse_loss(prediction, targets)
```

## Sources

- PyTorch, [Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)
- PyTorch, [MSELoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html): the
  target has the same shape as the input.

## How it is detected

In a running program: both sides have the same number of elements, one of them has one more
dimension of size 1, and their broadcast shape is larger than both. For a handwritten loss, the
difference or product is read from the graph; a target without a graph must be part of the loader's
batch or a variable of the program. Not reported: shapes with the same number of dimensions ((N, 1)
against (1, N) compares all pairs on purpose), a dimension that was added by `unsqueeze` or
`[:, None]`, pairs of one output, and single samples.
"""

from __future__ import annotations

from math import prod

from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.loss_measurements import BroadcastDifference
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.rules.base import Rule

_ELEMENTWISE = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")


class LossBroadcasts(Rule):
    code = "TL404"

    def on_loss(self, event: Loss) -> None:
        source, target = event.input, event.target
        if event.criterion.kind not in _ELEMENTWISE:
            return
        if not isinstance(source, Tensor) or not isinstance(target, Tensor):
            return
        first, second = _numbers(source.shape), _numbers(target.shape)
        if first is not None and second is not None and _meets_all(first, second):
            self._report(event.place, f"`{event.criterion.kind}`", first, second)

    def on_broadcast_difference(self, event: BroadcastDifference) -> None:
        self._report(event.place, "this loss", event.input, event.target)

    def _report(
        self, place: Location, loss: str, first: tuple[int, ...], second: tuple[int, ...]
    ) -> None:
        whole = _broadcast(first, second)
        self.report(
            place,
            f"In {loss} the predictions have shape {first} and the targets {second}. They"
            f" broadcast to {whole}: every prediction is compared with every target.",
            fix="Make the shapes equal: `prediction.squeeze(1)` or `target.unsqueeze(1)`.",
        )


def _numbers(shape: tuple[object, ...] | None) -> tuple[int, ...] | None:
    if shape is None or not all(isinstance(each, int) for each in shape):
        return None
    return tuple(each for each in shape if isinstance(each, int))


def _meets_all(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """One is the other with a dimension of 1 more, and together they are larger."""
    if abs(len(first) - len(second)) != 1 or prod(first) != prod(second):
        return False
    longer, shorter = sorted((first, second), key=len, reverse=True)
    same = any(
        size == 1 and longer[:at] + longer[at + 1 :] == shorter for at, size in enumerate(longer)
    )
    whole = _broadcast(first, second)
    return same and whole is not None and prod(whole) > prod(first)


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...] | None:
    length = max(len(first), len(second))
    padded = [(1,) * (length - len(each)) + each for each in (first, second)]
    pairs = list(zip(*padded, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(max(pair) for pair in pairs)
