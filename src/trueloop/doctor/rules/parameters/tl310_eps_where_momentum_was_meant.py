"""The second argument of a batch norm is `eps`, and a momentum was given for it.

## What it does

Finds `nn.BatchNorm1d(n, 0.8)` and its like: a second argument without a name that is 0.01 or more.

## Why it breaks training

The arguments of a batch norm are `num_features, eps, momentum`. `eps` is added to the variance, to
keep the division from zero: it is 1e-5 by default. With 0.8 a channel of variance 1 leaves the
layer with variance 0.56, and one of variance 0.01 with 0.012 instead of 1: channels with small
activations are hardly normalised at all. The momentum keeps its default of 0.1. Nothing raises. The
line often comes from Keras, where `BatchNormalization(momentum=0.8)` has the same meaning as
`momentum=0.2` in torch.

## Wrong

```python
nn.BatchNorm2d(128, 0.8)
```

## Right

```python
nn.BatchNorm2d(128, momentum=0.2)
```

## Sources

- PyTorch, [BatchNorm2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html):
  `BatchNorm2d(num_features, eps=1e-05, momentum=0.1, ...)`, and "this `momentum` argument is
  different from one used in optimizer classes and the conventional notion of momentum"
- Keras,
  [BatchNormalization](https://keras.io/api/layers/normalization_layers/batch_normalization/):
  `moving_mean * momentum + mean(batch) * (1 - momentum)`

## How it is detected

The second argument of `BatchNorm1d`, `BatchNorm2d`, `BatchNorm3d` or `SyncBatchNorm` is given by
its position and is a known number from 0.01 to 1. Not reported: `eps=0.8` (somebody wrote the
name), a variable that is called `eps`, and a call that gives the momentum as well.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Made
from trueloop.doctor.model.findings import Location, Replace
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule

_LEAST, _MOST = 0.01, 1.0
_CERTAIN = 0.5
"""Torch's momentum is seldom larger, and that of Keras seldom smaller."""


class EpsWhereMomentumWasMeant(Rule):
    code = "TL310"

    def on_made(self, event: Made) -> None:
        layer = event.thing
        if not isinstance(layer, Model) or layer.eps is None:
            return
        if _LEAST <= layer.eps.value <= _MOST:
            self._report(event, layer.kind.rpartition(".")[2], layer.eps.value, layer.eps.place)

    def _report(self, event: Made, kind: str, value: float, place: Location) -> None:
        other = f"{1 - value:.4g}"
        keras = (
            f" (`momentum={other}` if the number comes from Keras, which counts the other way)"
            if value >= _CERTAIN
            else ""
        )
        self.report(
            event.place,
            f"The second argument of `{kind}` is `eps`, not the momentum: {value:g} is added to"
            " the variance, so that channels with small activations are hardly normalised.",
            fix=f"Write `momentum={value:g}`{keras}.",
            remedies=[Replace(place, "momentum={}")] if value < _CERTAIN else [],
        )
