"""`NLLLoss` gets logits or probabilities instead of log-probabilities.

## What it does

Finds a call of `NLLLoss` or `F.nll_loss` whose input is certainly not a log-probability: it comes
directly from a linear or convolution layer, a softmax, or a sigmoid.

## Why it breaks training

`NLLLoss` picks the target's entry and negates it; it takes no logarithm. For logits it has no
minimum: the loss goes to minus infinity while the network raises the target's logit without bound
and never lowers the others. For probabilities it is at best -1, with gradients that vanish where
the prediction is wrong. A negative loss is the sign.

## Wrong

```python
def forward(self, x):
    return self.fc(x)

loss = F.nll_loss(model(inputs), labels)
```

## Right

```python
def forward(self, x):
    return F.log_softmax(self.fc(x), dim=1)

loss = F.nll_loss(model(inputs), labels)
```

Or keep the logits and use `F.cross_entropy(model(inputs), labels)`, which is the same.

## Sources

- PyTorch, [NLLLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html):
  "The input given through a forward call is expected to contain log-probabilities of each class".
- PyTorch, [torch.nn.functional.nll_loss](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.nll_loss.html)

## How it is detected

The input comes directly from a layer of torch, a softmax or a sigmoid; views, casts, indexing and
matrix products with a layer's output (of a graph's links, say) are followed. Any other arithmetic
may be the missing logarithm and is not reported, like the output of a model that cannot be read. If
the same call gets log-probabilities on a different path of the program, nothing is reported.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.things import Tensor
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.activations import NO_LOGARITHMS, InputOrigins, activation_of

_LOGARITHMS = ("log_softmax", "log", "logsigmoid")


class NllOnWrongInput(Rule):
    code = "TL403"

    def __init__(self) -> None:
        super().__init__()
        self.sources = InputOrigins()

    def on_loss(self, event: Loss) -> None:
        criterion, source = event.criterion, event.input
        if not criterion.known or criterion.kind != "NLLLoss" or not isinstance(source, Tensor):
            return
        if source.activation is not None and source.activation.kind in _LOGARITHMS:
            self.refute(event.place)
        activation = activation_of(event, source)
        if activation is None:
            return
        if activation.kind in NO_LOGARITHMS and self.sources.is_new(
            activation, event.place, source.models
        ):
            logits = activation.kind in ("linear", "product")
            self.report(
                event.place,
                (
                    f"`{criterion.name or criterion.kind}` gets"
                    f" {NO_LOGARITHMS[activation.kind]}, but expects log-probabilities and"
                    " takes no logarithm itself: "
                )
                + (
                    "the loss has no lower bound."
                    if logits
                    else "the loss stays between -1 and 0, and gradients are small."
                ),
                related=[(activation.place, "computes its input")],
                fix="Use cross_entropy, which applies log_softmax itself."
                if logits
                else "Replace softmax with log_softmax.",
            )
