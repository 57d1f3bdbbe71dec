"""The training loss falls, and the validation loss has risen from its minimum.

## What it does

Follows the validation loss that the program computes, from evaluation to evaluation, and the
training loss between them.

## Why it breaks training

After the minimum the model learns what is true only for the training data. The weights at the end
are worse than those of the minimum, and the epochs in between were wasted.

## Wrong

```python
for epoch in range(100):
    train(model)
    print(evaluate(model))
torch.save(model.state_dict(), "model.pt")
```

## Right

```python
best = float("inf")
for epoch in range(100):
    train(model)
    loss = evaluate(model)
    if loss < best:
        best, since = loss, epoch
        torch.save(model.state_dict(), "model.pt")
    elif epoch - since == 5:
        break
```

## Sources

- L. Prechelt, [Early Stopping, But When?](https://link.springer.com/chapter/10.1007/3-540-49430-8_3),
  1998
- I. Goodfellow, Y. Bengio and A. Courville, [Deep Learning, section
  7.8](https://www.deeplearningbook.org/contents/regularization.html), 2016

## How it is detected

In a running program: a loss function of the training's kind is called without gradients on outputs
of the trained model. All its calls between two updates are one evaluation. The validation loss has
fallen to its minimum by at least a twentieth; in five evaluations since (twelve if the loop may end
early) its mean over three has risen from the lowest such mean by 15% of the minimum and by a tenth
of its whole fall, the latest four have stayed above half of that rise, and the rise is four times
as large as the noise of the loss; meanwhile the training loss has fallen by a tenth. The finding is
withdrawn if the validation loss falls again. Not reported: losses near zero, a validation loss that
rises from the first evaluation on, and evaluations of different length.
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import ValidationCourse
from trueloop.doctor.rules.base import Rule


class Overfitting(Rule):
    code = "TH104"

    def on_validation_course(self, event: ValidationCourse) -> None:
        self.findings = [each for each in self.findings if each.place[:3] != event.place[:3]]
        first, best, last = event.first, event.best, event.last
        rise, fall = last - event.lowest, first - best
        since = event.count - event.best_number
        if best <= 0 or since < (12 if event.stops else 5) or fall < 0.05 * best:
            return
        is_clear = rise >= max(0.15 * best, 0.1 * fall, 4 * event.noise)
        if not is_clear or event.low < best + 0.5 * rise:
            return
        before, training = event.best_training, event.training
        if not 0 < training <= 0.9 * before:
            return
        self.report(
            event.place,
            f"The validation loss ({event.kind}) was lowest, {best:.3g}, after update"
            f" {event.best_update} (evaluation {event.best_number} of"
            f" {event.count}). It has risen to {last:.3g} by update"
            f" {event.last_update}, while the training loss fell from {before:.3g} to"
            f" {training:.3g}: the model overfits.",
            fix="Keep the weights of the lowest validation loss and stop early; more data,"
            " augmentation, weight decay or dropout delay overfitting.",
        )
