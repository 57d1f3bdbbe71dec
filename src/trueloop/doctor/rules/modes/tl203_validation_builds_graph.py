"""Validation builds an autograd graph that nothing uses.

## What it does

Finds a pass over validation or test data in which autograd records every forward pass, although no
gradient is computed.

## Why it breaks training

The scores are right, but every activation is stored for a `backward()` that never runs: validation
is slower and needs about as much memory as training, so a batch size that fits one may not fit the
other. (TL204 reports such a pass where its losses or outputs are collected with their graphs.)
`model.eval()` does not turn recording off; it only changes
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
elsewhere, or it only predicts, over a loader, with a network in eval mode that can be read, so
recording is certainly on: a function without a visible caller may be called under `no_grad`. In
source it counts too where a loop over batches or over slices of rows calls such a network and
detaches the output itself, which has a graph for all that its author knew. Not
reported: outputs whose gradient is computed later, inputs that require gradients (adversarial
examples, saliency), frozen models, models of which only one linear layer learns (a probe: the
graph holds that layer's input), outputs that a function without a visible caller returns, unless it
is named for validation, something unknown that is handed a network, with or without its loss
(few-shot methods take gradients themselves), loops over anything but batches, policies that act in
an environment (`env.step(action)`), loops that a count ends after a few batches, and passes in a
block of `torch.enable_grad()` or `torch.set_grad_enabled(True)`, which is somebody's decision; a
test that comes out true (`set_grad_enabled(phase != "test")`) is not.
"""

from __future__ import annotations

import itertools

from trueloop.doctor.model.events import Ended, GraphEscaped, ModelForward, Used
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Loop, Model, Tensor, Turn
from trueloop.doctor.model.vocabulary import WITHOUT_FRACTION
from trueloop.doctor.rules.shared.passes import (
    called,
    is_method_of_whole,
    is_of_library,
    pass_of,
    wholes,
)
from trueloop.doctor.rules.shared.recorded_validation import ValidationRule, cuts_rows
from trueloop.doctor.rules.shared.trials import looks_at_few


class ValidationBuildsGraph(ValidationRule):
    code = "TL203"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self._asleep: list[ModelForward] = []
        """Recorded forwards in eval mode, in loops over batches or rows."""
        self._detached: set[tuple[int, Turn]] = set()
        """Forwards of which something was detached, and in which turn."""
        self._given_away: set[Model] = set()
        """Models whose outputs code that cannot be read was given: it may take a gradient."""

    def on_graph_escaped(self, event: GraphEscaped) -> None:
        super().on_graph_escaped(event)
        self._given_away.update(event.models)

    def on_used(self, event: Used) -> None:
        if event.what == "torch.Tensor.detach" and isinstance(event.subject, Tensor):
            forwards = event.subject.forwards if event.grad else ()
            self._detached.update(itertools.product(forwards, event.turns))

    def on_model_forward(self, event: ModelForward) -> None:
        super().on_model_forward(event)
        if event.grad and event.training is False and self.may_record(event):
            self._asleep.append(event)
        if self.never_records(event):
            self.refute(event.place)
            self.settle(event.place)

    def on_ended(self, event: Ended) -> None:
        validations = self.recorded(event)
        for forward in validations:
            if not (self.kept_of(forward) or self._costs_little(forward)):
                self._report(forward, "validation")
        trains = self.trained or self.learning or self.forwards.used or event.unread_backward
        found: dict[Loop | None, ModelForward] = {}
        for forward in self.candidates if event.whole_program and not trains else ():
            if self._predicts(forward) and not (looks_at_few(forward) or _acts(forward)):
                turn = pass_of(forward)
                found.setdefault(turn.loop if turn is not None else None, forward)
        heard = {turn.loop for forward in validations for turn in forward.turns}
        for forward in self._asleep:
            turn = self._detaching_turn(forward)
            if turn is None or turn.loop in heard:
                continue
            if not self._costs_little(forward):
                found.setdefault(turn.loop, forward)
        for forward in found.values():
            self._report(forward, "prediction")

    def _costs_little(self, forward: ModelForward) -> bool:
        return looks_at_few(forward) or _acts(forward) or self.keeps_little(forward)

    def _detaching_turn(self, forward: ModelForward) -> Turn | None:
        """The turn of a pass over data that itself takes its output off the graph: whoever wrote
        this had no caller in mind that turns recording off."""
        loops = {turn.loop for turn in forward.turns}
        learns = forward.serial in self.forwards.used or not loops.isdisjoint(self.learning)
        kept = forward.model in self._given_away or self.kept_of(forward)
        if learns or kept or not _is_known(forward.model):
            return None
        turns = (turn for turn in forward.turns if turn.loop.loader or cuts_rows(turn.loop))
        return next((turn for turn in turns if (forward.serial, turn) in self._detached), None)

    def _predicts(self, forward: ModelForward) -> bool:
        """It goes over data in eval mode, and what it does inside is known."""
        turn = pass_of(forward)
        over_data = turn is not None and turn.loop.loader is not None
        output = forward.output
        frozen = isinstance(output, Tensor) and output.graph is False  # its weights
        if isinstance(output, Tensor) and output.dtype in WITHOUT_FRACTION:
            frozen = forward.learning == 0  # classes or tokens never have a graph
        asleep = forward.training is False and not frozen
        return over_data and _is_known(forward.model) and asleep and forward.result_used

    def _report(self, forward: ModelForward, where: str) -> None:
        place, name = forward.place, called(forward)
        if where == "prediction" or is_method_of_whole(place.function, forward.model):
            place, name = _call_in_the_loop(forward, name)
        self.report(
            place,
            f"Autograd records this forward pass of `{name}` in {where}, but"
            " nothing calls `backward()` on it: the stored activations waste memory and"
            " time.",
            fix=(
                "Put `with torch.no_grad():` around the loop, or `@torch.no_grad()` on the"
                " function."
            ),
        )


def _acts(forward: ModelForward) -> bool:
    """A policy acts in an environment: it gets one observation at a time, and its graph is gone
    with the next."""
    return bool(forward.turns) and forward.turns[-1].loop.acts


def _is_known(model: Model) -> bool:
    """Its own code is read, or is that of a library or made for Lightning, which does nothing that
    matters here."""
    trained = model.cls is not None and model.cls.lookup("training_step") is not None
    return trained or is_of_library(model) or all(member.complete for member in model.family())


def _call_in_the_loop(forward: ModelForward, name: str) -> tuple[Location, str]:
    """The call in the loop over data that leads to a forward of a part, and the name of the whole:
    `model.encode(x)` calls several parts."""
    turn = pass_of(forward)
    loop = turn.loop.place if turn is not None else forward.place
    for each in forward.stack:
        if each.path == loop.path and loop.line <= each.line <= loop.end_line:
            whole = [forward.model, *wholes(forward.model)][-1]
            return each, whole.name or name
    return forward.place, name
