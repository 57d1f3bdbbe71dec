"""The loss has not improved since the first update.

## What it does

Finds training whose loss after two hundred updates is still that of predicting a constant, if the
numbers show why: the learning rate is almost zero, no gradient arrives, gradients vanish on the way
to the first layers, or the updates are far too large.

## Why it breaks training

The model learns nothing. The run looks busy, and its loss, near log(classes) or the variance of the
targets, looks like slow progress on a hard problem.

## Wrong

```python
predictions = model(inputs).sigmoid().round()  # its slope is zero everywhere
loss = nn.functional.binary_cross_entropy(predictions, targets)
```

## Right

```python
loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
```

## Sources

- A. Karpathy, [A Recipe for Training Neural Networks](https://karpathy.github.io/2019/04/25/recipe/)
- X. Glorot and Y. Bengio, [Understanding the difficulty of training deep feedforward neural
  networks](https://proceedings.mlr.press/v9/glorot10a.html), 2010

## How it is detected

In a running program: the losses of the first 64 and the latest 64 updates are compared with each
other, with the error of their means, and with the loss of the best constant prediction for the
observed targets (entropy of the labels, variance, mean distance from the median). A loss that stays
there may be a hard problem, or noise. It is a finding if no weight ever changed by more than a
millionth of its size and no learning rate rises (warm-up); if all gradients are exactly zero; if
the first layer's gradient, relative to its weights, is less than 1e-5 of the last layer's and
predictions hardly differ; or if the loss is twice that of a constant and each update changes a
tenth of the weights. Not reported: a cause that a different rule has found, losses that are
regularised, weighted or not averaged, and losses that do not measure progress (GANs, reinforcement
learning).
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import TrainingCourse
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called

STILL = 1e-6
FADED = 1e-5
LARGE = 0.1
_ALIKE = 0.02


class LossStuck(Rule):
    code = "TH105"
    symptom_of = ("TL1", "TL2", "TL3", "TL4", "TL5", "TL6", "TL7", "TH101", "TH102")

    def on_training_course(self, event: TrainingCourse) -> None:
        self.findings = [each for each in self.findings if each.place[:3] != event.place[:3]]
        cause = _cause(event)
        if cause is None:
            return
        why, fix = cause
        self.report(
            event.place,
            f"The loss has not improved in {event.update} updates of"
            f" {called(event.optimizer, 'the optimizer')}: {event.first:.4g} in the"
            f" first 64 updates, {event.latest:.4g} in the latest; predicting a"
            f" constant gives {event.guess:.4g}. {why}",
            fix=fix,
        )


def _cause(event: TrainingCourse) -> tuple[str, str] | None:
    first, latest, error = event.first, event.latest, event.error
    guess, rate = event.guess, event.sizes.most_rate
    unmoved = latest > first - 2 * error - 1e-3 * first
    if unmoved and event.sizes.gradient == 0 and latest > 0.5 * guess:
        return (
            ("All gradients are exactly zero: no gradient flows from the loss to the weights."),
            (
                "Look for an operation without a gradient between the model and the loss:"
                " round, argmax, sign, a comparison, a clamp that is always at its bound."
            ),
        )
    if latest < 0.97 * guess or first < 0.9 * guess:
        return None
    steady = rate <= 1.5 * event.sizes.first_rate
    if unmoved and steady and event.sizes.most <= STILL:
        return (
            (
                f"At learning rate {rate:g} no update changed any weights by more than"
                f" {event.sizes.most:.1e} of their size."
            ),
            "Raise the learning rate, by a factor of 10 at a time.",
        )
    faded = event.sizes.faded
    if faded is not None and faded < FADED and _alike(event):
        return (
            (
                "The gradient vanishes: relative to the weights, the first layer's is"
                f" {faded:.1e} of the last layer's, and the predictions within a batch hardly"
                " differ."
            ),
            (
                "Use ReLU or GELU instead of sigmoids, normalisation or residual connections,"
                " and a matching initialisation."
            ),
        )
    if latest >= 2 * guess and latest > 0.9 * first and event.sizes.low >= LARGE:
        return (
            (
                f"At learning rate {rate:g} each update changes the weights by"
                f" {event.sizes.usual:.1e} of their size."
            ),
            "Lower the learning rate, by a factor of 10 at a time.",
        )
    return None


def _alike(event: TrainingCourse) -> bool:
    """The predictions of a batch are nearly equal, on the scale that matters to the loss."""
    spread, guess = event.spread, event.guess
    if spread is None:
        return False
    scale = {"MSELoss": guess**0.5, "L1Loss": guess}.get(event.kind, 1.0)
    return bool(spread < _ALIKE * scale)
