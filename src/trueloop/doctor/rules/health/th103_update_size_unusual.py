"""The updates are far larger, or far smaller, than weights can learn by.

## What it does

Compares the size of each update with the size of the weights that it changes. A thousandth is
usual; a tenth of the weights and more with every update, or a fifty-thousandth and less, is not.

## Why it breaks training

An update of a tenth of the weights forgets what it builds on: after ten of them nothing is left of
what was there. An update of a fifty-thousandth needs fifty thousand of its kind to get anywhere. In
both cases the learning rate is wrong by orders of magnitude, and the loss, which falls a little or
not at all, does not say in which direction.

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

While the program runs, in the updates that are looked at: norm of the change over the norm of the
weights before it, for up to eight matrices of one optimizer. Too large: after the first twenty
updates the median of the matrices is above a tenth in three quarters of the updates, and after two
hundred the loss is no better than guessing a constant. Too small: no matrix has ever changed by
more than a fifty-thousandth, no learning rate has risen, gradients are not zero, and after two
hundred updates the loss is still within a tenth of that of guessing. Silent wherever the loss
is below that (fine-tuning, a late stage of a schedule), on warm-up, and for losses that are no
measure of progress.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called

LARGE = 0.1
SMALL = 2e-5


class UpdateSizeUnusual(Rule):
    code = "TH103"
    symptom_of = ("TL1", "TL2", "TL3", "TL4", "TL5", "TL6", "TL7", "TH101", "TH102", "TH105")

    def on_measured(self, event: Measured) -> None:
        if event.what != "course":
            return
        self.findings = [each for each in self.findings if each.place[:3] != event.place[:3]]
        values = event.values
        first, latest, guess = values["first"], values["latest"], values["guess"]
        if min(first, latest) < 0.9 * guess:
            return
        if values["low"] >= LARGE and latest >= 0.95 * guess:
            self._tell(event, values["usual"], "more than a tenth", "Lower")
        steady = values["most rate"] <= 1.5 * values["first rate"]
        small = values["most"] <= SMALL and values["gradient"] > 0
        if small and steady and latest > 0.9 * first:
            self._tell(event, values["most"], "less than a fifty-thousandth", "Raise")

    def _tell(self, event: Measured, size: float, share: str, turn: str) -> None:
        values = event.values
        rate = values["most rate"]
        self.report(
            event.place,
            f"{called(event.subject, 'The optimizer')} changes the weights by {size:.1e}"
            f" of their size per update, {share} (about 1e-3 is usual), in"
            f" {values['looked']} sampled updates up to update {values['update']}. The"
            f" learning rate is {rate:g}; the loss was {values['first']:.3g} at first and"
            f" is now {values['latest']:.3g}.",
            fix=f"{turn} the learning rate, by a factor of 10 at a time.",
        )
