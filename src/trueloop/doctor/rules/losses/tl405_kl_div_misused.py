"""`KLDivLoss` gets something other than log-probabilities, or averages over the classes.

## What it does

Finds a call of `KLDivLoss` or `F.kl_div` whose input is certainly not a log-probability (logits, or
from a softmax), whose target is a log-probability without `log_target=True`, or whose reduction is
`"mean"`, the default.

## Why it breaks training

The loss is `target * (log(target) - input)`: it expects the input to be a logarithm. For
probabilities or logits the result is not a divergence: it can be negative, and its minimum is not
where both agree. `reduction="mean"` also divides by the number of classes: the divergence is too
small by that factor, and a distillation that looks balanced has hardly any effect. Nothing raises,
and the curve still falls.

## Wrong

```python
loss = F.kl_div(F.softmax(student / T, dim=1), F.softmax(teacher / T, dim=1))
```

## Right

```python
loss = F.kl_div(
    F.log_softmax(student / T, dim=1), F.softmax(teacher / T, dim=1), reduction="batchmean"
)
```

## Sources

- PyTorch, [KLDivLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html):
  "this loss expects the argument input in the log-space", and "reduction = "mean" doesn't return
  the true KL divergence value, please use reduction = "batchmean"".
- Hinton, Vinyals, Dean, [Distilling the Knowledge in a Neural Network](https://arxiv.org/abs/1503.02531)

## How it is detected

The input, or the target, comes directly from a layer, a softmax or a log_softmax; other arithmetic
in between is not reported. A reduction of `"mean"` is advice, since the weight of the term may make
up for it. A reduction set by an option is not checked, and `"sum"` and `"none"` are accepted.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Loss
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.activations import NO_LOGARITHMS, activation_of


class KlDivMisused(Rule):
    code = "TL405"

    def on_loss(self, event: Loss) -> None:
        criterion = event.criterion
        if not criterion.known or criterion.kind != "KLDivLoss":
            return
        name = criterion.name or criterion.kind
        source, target = activation_of(event, event.input), activation_of(event, event.target)
        if source is not None and source.kind in NO_LOGARITHMS:
            self.report(
                event.place,
                f"`{name}` gets {NO_LOGARITHMS[source.kind]}, but its input must be"
                " log-probabilities: the result is not a divergence and can be negative.",
                related=[(source.place, "computes its input")],
                fix="Pass log_softmax of the logits as input.",
            )
        elif target is not None and target.kind == "log_softmax" and _log_target(event) is False:
            self.report(
                event.place,
                f"The target of `{name}` is a log-probability. Without log_target=True it"
                " is read as a probability, and its logarithm is NaN.",
                related=[(target.place, "computes its target")],
                fix="Pass log_target=True.",
            )
        elif criterion.reduction == "mean" and criterion.reduction_written:
            self._report_mean(event)

    def _report_mean(self, event: Loss) -> None:
        criterion = event.criterion
        self.report(
            event.place,
            f'`{criterion.name or criterion.kind}` reduces with "mean", which divides by the'
            " number of classes as well as by the batch size: the loss is too small by a factor"
            " of the number of classes.",
            related=[(criterion.made, "created here")] if criterion.made != event.place else [],
            fix='Use reduction="batchmean".',
            severity="advice",
        )


def _log_target(event: Loss) -> bool | None:
    given: bool | None = event.criterion.arguments.get("log_target", False)
    return given
