"""Validation builds an autograd graph that nothing uses.

## What it does

Finds a pass over validation or test data in which autograd records every forward pass, although no
gradient is computed.

## Why it breaks training

The scores are right, but every activation is stored for a `backward()` that never runs: validation
is slower and needs about as much memory as training, so a batch size that fits one may not fit the
other. Losses or outputs that are collected in such a pass keep all their graphs, until memory runs
out in the middle of a validation. `model.eval()` does not turn recording off; it only changes
dropout and batch norm.

## Wrong

```python
def validate(model, loader):
    model.eval()
    for images, labels in loader:
        outputs = model(images)
```

## Right

```python
@torch.no_grad()
def validate(model, loader):
    model.eval()
    for images, labels in loader:
        outputs = model(images)
```

## Sources

- PyTorch, [Autograd mechanics: locally disabling gradient
  computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
- PyTorch, [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html): "It
  will reduce memory consumption for computations that would otherwise have `requires_grad=True`"

## How it is detected

A loop over batches calls a model with autograd recording and computes no gradient in any iteration;
the loader, loop or function has a validation name, or the model is in eval mode. The program trains
elsewhere, so recording is certainly on: a function without a visible caller may be called under
`no_grad`. Not reported: outputs whose gradient is computed later, inputs that require gradients
(adversarial examples, saliency), frozen models, and loops over anything but batches.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    FlagsSet,
    GradTaken,
    ModelForward,
    ModeSet,
    OptimizerStep,
)
from trueloop.doctor.model.things import Loop, Model, Tensor
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.passes import (
    Forwards,
    called,
    loops_of,
    named_validation,
    pass_of,
)


class ValidationBuildsGraph(Rule):
    code = "TL203"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self.forwards = Forwards()
        self.candidates: list[ModelForward] = []
        self.learning: set[Loop] = set()
        self.evaluating: set[Model] = set()
        self.frozen: set[Model] = set()
        self.trained: set[Model] = set()

    def on_mode_set(self, event: ModeSet) -> None:
        if event.training is False:
            self.evaluating.add(event.model)
        else:
            self.evaluating.discard(event.model)

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is False:
            self.frozen.add(event.model)
        else:
            self.frozen.discard(event.model)

    def on_model_forward(self, event: ModelForward) -> None:
        self.forwards.add(event)
        if not event.grad:
            self.refute(event.place)
        elif pass_of(event) is not None and self._records(event):
            self.candidates.append(event)

    def _records(self, event: ModelForward) -> bool:
        """A graph is certainly built, and not for the sake of the inputs."""
        if any(frozen.covers(event.model) for frozen in self.frozen):
            return False
        if any(isinstance(each, Tensor) and _is_special(each) for each in event.inputs):
            return False
        asleep = any(model.covers(event.model) for model in self.evaluating)
        if asleep and event.training is False:
            return True
        turn = pass_of(event)
        return turn is not None and turn.loop.kind == "batches" and named_validation(event)

    def on_backward(self, event: Backward) -> None:
        used = self.forwards.through(event)
        self.trained.update(self.forwards.by_serial[serial].model for serial in used)
        self.learning.update(loops_of(event))

    def on_grad_taken(self, event: GradTaken) -> None:
        self.forwards.through(event)
        self.learning.update(loops_of(event))

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self.learning.update(loops_of(event))

    def on_ended(self, event: Ended) -> None:
        reported: set[Loop] = set()
        for forward in self.candidates:
            turn = pass_of(forward)
            if turn is None:  # of a loop that turned out to be one over epochs
                continue
            if turn.loop in self.learning or turn.loop in reported:
                continue
            if forward.serial in self.forwards.used:
                continue
            if any(model.shares_parameters(forward.model) for model in self.trained):
                reported.add(turn.loop)
                self._report(forward)

    def _report(self, forward: ModelForward) -> None:
        self.report(
            forward.place,
            f"Autograd records this forward pass of `{called(forward)}` in validation, but"
            " nothing calls `backward()` on it: the stored activations waste memory and"
            " time.",
            fix=(
                "Put `with torch.no_grad():` around the loop, or `@torch.no_grad()` on the"
                " function."
            ),
        )


def _is_special(tensor: Tensor) -> bool:
    """Its own gradient is wanted; or it is volatile, as torch's older programs say."""
    return bool(tensor.inputs) or tensor.requires_grad or tensor.volatile
