"""A gradient penalty is added to the loss, but its gradient was taken without a graph.

## What it does

Finds `torch.autograd.grad(...)` without `create_graph=True` whose result becomes a term of a loss:
a gradient penalty, forces in a loss of forces, the second derivative in a residual.

## Why it breaks training

Without `create_graph=True` the result is a constant to the next `backward()`. The term changes the
number that is printed, but no parameter: its gradient is zero. A WGAN with such a penalty trains
without a Lipschitz constraint, and an energy model never learns its forces. Nothing raises, because
the rest of the loss has a graph.

## Wrong

```python
gradients = torch.autograd.grad(scores, inputs, torch.ones_like(scores), retain_graph=True)[0]
penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
loss = fake.mean() - real.mean() + 10 * penalty
```

## Right

```python
gradients = torch.autograd.grad(scores, inputs, torch.ones_like(scores), create_graph=True)[0]
penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
loss = fake.mean() - real.mean() + 10 * penalty
```

## Sources

- PyTorch, [torch.autograd.grad](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html):
  with `create_graph`, the graph of the derivative is constructed, "allowing to compute higher order
  derivative products"
- PyTorch, [Automatic mixed precision examples: gradient
  penalty](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-penalty)
- Gulrajani et al., [Improved training of Wasserstein GANs](https://arxiv.org/abs/1704.00028), 2017

## How it is detected

What is computed of such a gradient is added to a loss on which `backward()` is called, or to other
outputs of the same model, as in the residual of a differential equation. In a running program the
source of the functions that are being called shows where the gradient goes, and the graph of the
loss that a term of it has no graph. Not reported: weights (`weight * loss`), steps on parameters or
inputs (first-order MAML, adversarial examples), targets, and what is detached, taken under
`no_grad` or only printed.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward
from trueloop.doctor.model.findings import Location, Remedy, Replace
from trueloop.doctor.model.measurements import ConstantTerm
from trueloop.doctor.rules.base import Rule


class PenaltyWithoutGraph(Rule):
    code = "TL410"

    def on_backward(self, event: Backward) -> None:
        for term in event.loss.constant_terms if event.loss is not None else ():
            remedy = (
                Replace(term.option, "True")
                if term.option.line
                else Replace(term.last_argument, "{}, create_graph=True")
            )
            self._report(term.place, event.place, [remedy])

    def on_constant_term(self, event: ConstantTerm) -> None:
        self._report(event.gradient, event.place, [])

    def _report(self, place: Location, backward: Location, remedies: list[Remedy]) -> None:
        self.report(
            place,
            "This gradient is taken without `create_graph=True` and added to a loss: it is a"
            " constant there, which `backward()` passes over, so the term trains nothing.",
            fix="Write `create_graph=True`.",
            related=[(backward, "computes no gradient of this term")],
            remedies=remedies,
        )
