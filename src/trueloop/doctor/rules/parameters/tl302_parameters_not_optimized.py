"""Trainable parameters get gradients, but no optimizer holds them.

## What it does

Finds parameters of the model, or of the loss, that get a gradient in every `backward()` and belong
to no optimizer.

## Why it breaks training

An optimizer updates only what it was given. A forgotten part (the decoder beside the encoder, a
second head, learnt weights of a loss) keeps its initial values, and the rest learns around random
weights. Nothing raises; the loss falls more slowly than it should, to a level that is too high.
Gradients that nothing clears keep adding up.

## Wrong

```python
optimizer = torch.optim.Adam(model.encoder.parameters(), lr=1e-3)
```

## Right

```python
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
```

and for parts that should not learn: `model.decoder.requires_grad_(False)`.

## Sources

- PyTorch, [torch.optim: constructing
  it](https://docs.pytorch.org/docs/stable/optim.html#constructing-it): "you have to give it an
  iterable containing the parameters"
- PyTorch, [Transfer learning
  tutorial](https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html): freezing
  with `requires_grad = False`

## How it is detected

In a running program: in four updates a parameter gets a new non-zero gradient and its values stay
the same, the optimizer updates other parameters, and no optimizer holds it or has ever held it.
Weights that were read from a file or look trained are reported only where the program shows that
they are to learn: they were frozen and are not any more, or other weights of the model are frozen
and these are not. Not reported: copied or unpickled weights; modules in eval mode; parameters with
a gradient hook; parameters that an optimizer takes later or that are updated by hand; programs
whose optimizer holds only inputs (an attack) or that have no optimizer.
"""

from __future__ import annotations

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import StrayResolved, UnheldParameter
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class ParametersNotOptimized(Rule):
    code = "TL302"

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Location, list[UnheldParameter]] = {}

    def on_unheld_parameter(self, event: UnheldParameter) -> None:
        self.found.setdefault(event.place, []).append(event)
        self._report(event.place)

    def on_stray_resolved(self, event: StrayResolved) -> None:
        self.refute(event.place)

    def _report(self, place: Location) -> None:
        found = self.found[place]
        self.findings = [each for each in self.findings if each.place != place]
        first = found[0]
        names = [f"`{each.parameter}`" for each in found]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        numbers = sum(each.numel for each in found)
        several = len(names) > 1
        self.report(
            place,
            f"{shown} ({numbers:,} values) of {first.model}"
            f" {'get' if several else 'gets'} a gradient in every `backward()`, but no"
            f" optimizer holds {'them' if several else 'it'}:"
            f" {'they have' if several else 'it has'} not changed in {first.updates}"
            f" updates of {called(first.optimizer, 'the optimizer')}.",
            fix="Pass the parameters to the optimizer, or freeze them with"
            " `requires_grad_(False)`.",
            related=[(first.made, "created here, never updated")],
        )
