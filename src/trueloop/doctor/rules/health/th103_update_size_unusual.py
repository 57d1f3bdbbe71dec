"""The updates are far too large or far too small for the weights.

## What it does

Compares the size of each update with the size of the weights. A ratio of 1e-3 is usual; 0.1 or
more, or 2e-5 or less, with every update is not.

## Why it breaks training

After ten updates of a tenth of the weights nothing of the old weights is left. Updates of 2e-5 need
fifty thousand of their kind for a change of the same size as the weights. In both cases the
learning rate is wrong by orders of magnitude, and the loss, which falls a little or not at all,
does not show the direction.

## Wrong

```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-7)
```

## Right

```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```

## Sources

- A. Karpathy, [CS231n: ratio of weights to updates](https://cs231n.github.io/neural-networks-3/#ratio):
  "this ratio should be somewhere around 1e-3"

## How it is detected

In a running program, in sampled updates: norm of the change over norm of the weights before it, for
up to eight matrices of one optimizer. Too large: after the first twenty updates the median over the
matrices is above 0.1 in three quarters of the updates, and after two hundred the loss is not better
than that of predicting a constant. Too small: no matrix ever changed by more than 2e-5, no learning
rate has risen, gradients are not zero, and after two hundred updates the loss is still within a
tenth of that of predicting a constant. Not reported: a loss below that (fine-tuning, a late stage
of a schedule), warm-up, and losses that do not measure progress.
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import TrainingCourse
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called

LARGE = 0.1
SMALL = 2e-5


class UpdateSizeUnusual(Rule):
    code = "TH103"
    symptom_of = ("TL1", "TL2", "TL3", "TL4", "TL5", "TL6", "TL7", "TH101", "TH102", "TH105")

    def on_training_course(self, event: TrainingCourse) -> None:
        self.findings = [each for each in self.findings if each.place[:3] != event.place[:3]]
        first, latest, guess = event.first, event.latest, event.guess
        if min(first, latest) < 0.9 * guess:
            return
        if event.sizes.low >= LARGE and latest >= 0.95 * guess:
            self._report(event, event.sizes.usual, "more than a tenth", "Lower")
        steady = event.sizes.most_rate <= 1.5 * event.sizes.first_rate
        small = event.sizes.most <= SMALL and event.sizes.gradient > 0
        if small and steady and latest > 0.9 * first:
            self._report(event, event.sizes.most, "less than a fifty-thousandth", "Raise")

    def _report(self, event: TrainingCourse, size: float, share: str, turn: str) -> None:
        rate = event.sizes.most_rate
        self.report(
            event.place,
            f"{called(event.optimizer, 'The optimizer')} changes the weights by {size:.1e}"
            f" of their size per update, {share} (about 1e-3 is usual), in"
            f" {event.sizes.looked} sampled updates up to update {event.update}. The"
            f" learning rate is {rate:g}; the loss was {event.first:.3g} at first and"
            f" is now {event.latest:.3g}.",
            fix=f"{turn} the learning rate, by a factor of 10 at a time.",
        )
