"""A tensor is kept across iterations for logging, with the graph of every batch.

## What it does

Finds losses (or other tensors of the forward pass) that are added up, appended or stored from batch
to batch after their `backward()`: `total_loss += loss`, `losses.append(loss)`; and outputs or
losses of a validation without `no_grad` that are kept from batch to batch.

## Why it breaks training

The tensor keeps its autograd graph, and how much that is depends on what the graph still holds. In
a validation without `no_grad`, and after `backward(retain_graph=True)`, every batch keeps its
activations: memory runs out soon, and this is an error. After a plain `backward()` the activations
are freed, and what stays are the nodes of the graph (`trueloop lab --only 9`). Kept through a whole
run they add up, and freeing or pickling a long chain may raise a `RecursionError` or crash: a
warning. Emptied after each epoch or now and then in the loop (at a log interval, by `pop`), or kept
of at most 1,000 steps that a loop counts, they are hardly to be noticed: advice. The weights are
right as long as the program runs.

## Wrong

```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    total_loss += loss
```

## Right

```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    total_loss += loss.detach()  # or loss.item(), which waits for the device
```

## Sources

- PyTorch, [Frequently asked questions: my model reports "cuda runtime error(2): out of
  memory"](https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory):
  "Don't accumulate history across your training loop"

## How it is detected

In at least two iterations of a loop over batches, a tensor with a graph is added to a sum, list or
table that existed before the iteration, the `backward()` of that iteration went through the same
forward pass, and an update is between the two iterations; or the loop is a validation that builds a
graph which nothing uses (see TL203), or outputs that no gradient is ever taken of are appended in a
training loop. Through a whole run: two epochs add to the same sum or list, or the loop counts the
updates of the run itself, and it is not a method that nobody is seen to call (an agent that trains
on each rollout). In a running program it is advice at first, and a warning when the first graph is
still there in the next epoch, or 1,000 updates later. Not reported: tests, a sum or list that a
later `backward()` uses (losses of one update, policy gradients, truncated back-propagation, outer
losses of meta-learning), one that starts again with each update of an accumulation, a variable that
each iteration overwrites, what an unknown loss returns beside the loss and may be a count, and
anything detached or converted to a number.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    GraphEscaped,
    ManualUpdate,
    ModelForward,
    OptimizerStep,
    TensorRetained,
)
from trueloop.doctor.model.findings import Location, Remedy, Replace, Severity
from trueloop.doctor.model.measurements import MANY_GRAPHS, GraphsRetained
from trueloop.doctor.model.things import Model, Tensor, Turn
from trueloop.doctor.model.vocabulary import names_a_tensor
from trueloop.doctor.rules.shared.recorded_validation import ValidationRule

_FIX = "Store a number (`.item()`) or detach the tensor (`.detach()`)."


@dataclass(eq=False)
class TensorHolder:
    """The containers of tensors of several turns, at one line."""

    kept: list[TensorRetained] = field(default_factory=list)
    done: list[tuple[TensorRetained, Backward]] = field(default_factory=list)
    """Those of them that the backward of their own turn went through."""


class LossTensorKept(ValidationRule):
    code = "TL204"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self.backwards: list[Backward] = []
        self.steps: list[int] = []
        """Updates inside of loops: a loop over the micro-batches of one update ends soon."""
        self.given_away: set[Model] = set()
        self.turns: dict[int, Turn | None] = {}
        """Of each forward, the turn that it was made in."""

    def on_model_forward(self, event: ModelForward) -> None:
        super().on_model_forward(event)
        self.turns[event.serial] = event.turn

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        super().on_optimizer_step(event)
        if event.turn is not None:
            self.steps.append(event.serial)

    def on_manual_update(self, event: ManualUpdate) -> None:
        if event.turn is not None:
            self.steps.append(event.serial)

    def on_backward(self, event: Backward) -> None:
        super().on_backward(event)
        self.backwards.append(event)

    def on_graph_escaped(self, event: GraphEscaped) -> None:
        """Code that cannot be read may take the gradient later."""
        self.given_away.update(event.models)

    def on_graphs_retained(self, event: GraphsRetained) -> None:
        """Graphs of several updates in a row live on, and their owner grows."""
        severity: Severity = "warning" if event.stays else "advice"
        if any(map(_keeps, self.backwards)):
            severity = "error"
        if event.stays:  # it was advice when the graphs were first seen
            self.findings = [each for each in self.findings if each.place != event.place]
        message = _message(event.holder, event.how, severity)
        self.report(event.place, message, fix=_FIX, severity=severity)

    def on_ended(self, event: Ended) -> None:
        for forward in self.recorded(event):
            for kept in self.kept_of(forward):
                if not (kept.tensor.is_loss and _may_be_a_number(kept.tensor)):
                    self._report_validation(kept, forward)
        holders: dict[tuple[object, ...], TensorHolder] = {}
        for kept in self.retained:
            key = (kept.holder, *kept.place[:3], *(place[:3] for place in kept.stack[-1:]))
            holder = holders.setdefault(key, TensorHolder())
            holder.kept.append(kept)
            own = self._own_backward(kept)
            if own is not None:
                holder.done.append((kept, own))
        for holder in holders.values():
            if not self._is_used(holder):
                if self._outlives_an_update([kept for kept, _ in holder.done]):
                    severity = _severity(holder, whole_program=event.whole_program)
                    self._report(*holder.done[0], severity)
                elif not holder.done and self._is_observed(holder):
                    self._report_observed(holder.kept[0])
            elif not holder.done:
                # One option sends the stored loss back later, the other at once.
                self.refute(holder.kept[0].place)

    def _is_observed(self, holder: TensorHolder) -> bool:
        """Outputs of a model that trains are collected in a training loop, and no gradient is ever
        taken through them."""
        known = self.forwards.by_serial
        return all(
            kept.how == "append"
            and not kept.guards
            and kept.tensor.known
            and kept.tensor.graph is True
            and kept.turn is not None
            and kept.turn.loop in self.learning
            and not kept.tensor.inputs
            and kept.tensor.models.isdisjoint(self.given_away)
            and bool(kept.tensor.forwards)
            and kept.tensor.forwards.isdisjoint(self.forwards.used)
            and all(
                serial in known and known[serial].model in self.trained
                for serial in kept.tensor.forwards
            )
            for kept in holder.kept
        ) and self._outlives_an_update(holder.kept)

    def _own_backward(self, kept: TensorRetained) -> Backward | None:
        """The backward of the same turn that the tensor's graph was made for."""
        for event in self.backwards:
            if event.turn == kept.turn and _same_graph(event.loss, kept.tensor):
                return event
        return None

    def _outlives_an_update(self, kept: list[TensorRetained]) -> bool:
        """The addition of one iteration is still there when a later one adds to it, after an
        update."""
        for earlier, later in itertools.pairwise(kept):
            if earlier.turn == later.turn or earlier.since != later.since:
                continue
            if any(earlier.serial < step < later.serial for step in self.steps):
                return True
        return False

    def _is_used(self, holder: TensorHolder) -> bool:
        """A backward of a different iteration goes through the stored tensor."""
        for kept in holder.kept:
            for event in self.backwards:
                later = event.turn != kept.turn and event.serial > kept.serial
                if later and self._goes_through(event, kept):
                    return True
        return False

    def _goes_through(self, event: Backward, kept: TensorRetained) -> bool:
        """Through what its turn computed, and not only through what all turns share."""
        if event.loss is None or event.loss is kept.tensor:
            return True
        common = event.loss.forwards & kept.tensor.forwards
        return any(self.turns.get(serial, kept.turn) == kept.turn for serial in common)

    def _report(self, kept: TensorRetained, own: Backward, severity: Severity) -> None:
        place = _where(kept, own)
        turn = kept.turn
        assert turn is not None
        direct = place is kept.place
        self.report(
            place,
            _message(kept.holder, kept.how, severity),
            fix=_FIX,
            related=[] if direct else [(kept.place, "stored here")],
            remedies=_remedy(kept) if direct else [],
            severity=severity,
        )

    def _report_observed(self, kept: TensorRetained) -> None:
        self.report(
            kept.place,
            f"`{kept.holder}` collects outputs with their autograd graphs in a training loop, and"
            " no `backward()` goes through them: the activations of all these calls stay in"
            " memory.",
            fix="Call the model under `torch.no_grad()` here, or store `.detach()` of its output.",
            remedies=_remedy(kept),
        )

    def _report_validation(self, kept: TensorRetained, forward: ModelForward) -> None:
        self.report(
            kept.place,
            f"`{kept.holder}` {_DOES[kept.how]} a tensor with its autograd graph for each batch of"
            " this validation, which runs without `no_grad`: the activations of all its batches"
            " stay in memory.",
            fix="Put `with torch.no_grad():` around the loop, or `@torch.no_grad()` on the"
            " function.",
            related=[(forward.place, "autograd records this forward pass")],
        )


_DOES = {"sum": "adds up", "append": "collects", "store": "keeps"}


def _message(holder: str, how: str, severity: Severity) -> str:
    costs = {
        "error": "`backward()` retains it, so the activations of every iteration stay in memory.",
        "warning": "`backward()` is done with it: its nodes stay to the end of the run, and memory"
        " grows with every update.",
        "advice": "`backward()` is done with it. Its nodes stay for an epoch or a few steps, which"
        " costs little.",
    }
    return (
        f"`{holder}` {_DOES[how]} a tensor with its autograd graph in every iteration, although"
        f" {costs[severity]}"
    ).replace("although `backward()` retains", "and `backward()` retains")


def _keeps(backward: Backward) -> bool:
    """The graph keeps its activations after this backward."""
    return backward.retain_graph is True or backward.create_graph is True


def _severity(holder: TensorHolder, *, whole_program: bool) -> Severity:
    """The more the graphs still hold, and the longer they are kept, the worse."""
    # Not under an option, which other runs leave out.
    if any(_keeps(own) and own.guards <= each.guards for each, own in holder.done):
        return "error"
    kept = [each for each, _ in holder.done]
    if not whole_program and "." in kept[0].place.function:
        return "advice"  # a method may run again and again: PPO's epochs over each rollout
    return "warning" if _stays_to_the_end(kept) else "advice"


def _stays_to_the_end(kept: list[TensorRetained]) -> bool:
    """Tensors of one epoch are still there in the next; or the loop is the whole run."""
    if any(each.let_go for each in kept):
        return False
    for earlier, later in itertools.combinations(kept, 2):
        # A loop over parts of an epoch lies between the epochs and the batches.
        if _around(earlier)[:1] != _around(later)[:1] and _is_one_life(earlier, later):
            return True
    first, turn = kept[0], kept[0].turn
    if turn is None or _around(first) or not all(_is_one_life(first, each) for each in kept):
        return False
    loop = turn.loop
    counts = loop.endless or not loop.over or re.match(r"(zip\()?\w*range\(", loop.over) is not None
    size = first.windows[-1].size if first.windows else 1
    few = isinstance(loop.turns, int) and isinstance(size, int) and loop.turns <= MANY_GRAPHS * size
    return loop.loader is None and counts and not few


def _around(kept: TensorRetained) -> tuple[Turn, ...]:
    """The turns of loops around the loop over batches."""
    for position, turn in enumerate(kept.turns):
        if turn == kept.turn:
            return kept.turns[:position]
    return ()


def _is_one_life(earlier: TensorRetained, later: TensorRetained) -> bool:
    """The holder was not emptied in between."""
    if earlier.since is None:
        return earlier.container is later.container
    return earlier.since == later.since


def _same_graph(loss: Tensor | None, tensor: Tensor) -> bool:
    if loss is None:
        return False
    if loss is tensor:
        return True
    return not _may_be_a_number(tensor) and bool(loss.forwards & tensor.forwards)


def _may_be_a_number(tensor: Tensor) -> bool:
    """Of several things that a model or an unknown loss returns, one may be plain numbers."""
    return tensor.position is not None and not names_a_tensor(tensor.name)


def _where(kept: TensorRetained, own: Backward) -> Location:
    """The line of the loop that hands the tensor over, rather than the meter's own line."""
    turn = own.turn
    if kept.place.function == own.place.function or (turn is not None and turn.loop.framework):
        return kept.place
    for place in reversed(kept.stack):
        if place.function == own.place.function:
            return place
    return kept.place


def _remedy(kept: TensorRetained) -> list[Remedy]:
    return [Replace(kept.what, "{}.detach()")] if kept.what.line else []
