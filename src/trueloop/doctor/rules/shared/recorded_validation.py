"""Passes over validation data in which autograd records, and what they keep of their outputs."""

from __future__ import annotations

import re

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    EscapedToUnknown,
    FlagsSet,
    GradTaken,
    GraphEscaped,
    ModelForward,
    ModeSet,
    OptimizerStep,
    TensorRetained,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import OpaqueObject, Unknown, Value, contents
from trueloop.doctor.model.things import Loop, Model, Tensor
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.own_parameters import has_parameters, owners_of_parameters
from trueloop.doctor.rules.shared.passes import (
    Forwards,
    loops_of,
    named_validation,
    names_validation,
    pass_of,
    wholes,
)


class ValidationRule(Rule):
    """A rule about such passes: it hears what shows them."""

    def __init__(self) -> None:
        super().__init__()
        self.forwards = Forwards()
        self.candidates: list[ModelForward] = []
        self.learning: set[Loop] = set()
        self.evaluating: set[Model] = set()
        self.frozen: set[Model] = set()
        self._always_frozen: set[Model] = set()
        """Those of them that no option decides."""
        self.trained: set[Model] = set()
        self.retained: list[TensorRetained] = []
        self._given: set[Location] = set()
        """Where code that cannot be read gets a tensor with a graph."""

    def on_mode_set(self, event: ModeSet) -> None:
        if event.training is False:
            self.evaluating.add(event.model)
        else:
            self.evaluating.discard(event.model)

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is False:
            self.frozen.add(event.model)
            if not (event.guards or event.by_name or event.thawed_later):
                self._always_frozen.add(event.model)
        else:
            self.frozen.discard(event.model)
            self._always_frozen.discard(event.model)

    def on_model_forward(self, event: ModelForward) -> None:
        self.forwards.add(event)
        if event.grad and pass_of(event) is not None and self._records(event):
            self.candidates.append(event)

    def may_record(self, event: ModelForward) -> bool:
        """Nothing says that no graph is built, or that it is for the sake of the inputs."""
        if not event.grad_known or self._is_frozen(event.model):
            return False
        if event.on_models and not event.model.complete:
            return False  # a method of learning from few samples: it may take gradients itself
        if any(isinstance(each, Tensor) and _is_special(each) for each in event.inputs):
            return False
        return not _has_nothing_to_record(event)

    def _records(self, event: ModelForward) -> bool:
        """A graph is certainly built, and not for the sake of the inputs."""
        if not self.may_record(event):
            return False
        asleep = any(model.covers(event.model) for model in self.evaluating)
        if asleep and event.training is False:
            return True
        turn = pass_of(event)
        over_data = turn is not None and (turn.loop.kind == "batches" or cuts_rows(turn.loop))
        return over_data and named_validation(event)

    def on_backward(self, event: Backward) -> None:
        used = self.forwards.through(event)
        self.trained.update(self.forwards.by_serial[serial].model for serial in used)
        self.learning.update(loops_of(event))

    def on_grad_taken(self, event: GradTaken) -> None:
        self.forwards.through(event)
        self.learning.update(loops_of(event))

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self.learning.update(loops_of(event))

    def on_graph_escaped(self, event: GraphEscaped) -> None:
        self._given.add(event.place)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        # `gradient_update_parameters(model, loss)` of a package: with both it may take gradients.
        # `layer(x)`, with a layer that is not known, does not.
        named = not event.callee.startswith("<")
        model = any(isinstance(each, Model) for each in event.things)
        if named and model and event.place in self._given:
            self.learning.update(loops_of(event))

    def on_tensor_retained(self, event: TensorRetained) -> None:
        if event.tensor.graph and event.turn is not None and event.container is not None:
            models = event.tensor.models
            if not models or not all(map(self._is_frozen, models)):
                self.retained.append(event)

    def _is_frozen(self, model: Model) -> bool:
        return _are_all_in(self.frozen, model)

    def never_records(self, event: ModelForward) -> bool:
        """It runs without gradients, or all its weights are frozen, whatever the options are."""
        if not event.grad:
            return True
        frozen = _are_all_in(self._always_frozen, event.model)
        return frozen and not any(_learns_for(model, event.model) for model in self.trained)

    def recorded(self, end: Ended) -> list[ModelForward]:
        """The first forward of each pass that builds a graph which nothing uses, and which no
        function hands to its caller as part of a loss."""
        returned = _forwards_behind(end.handed_on) if not end.whole_program else frozenset()
        found: dict[Loop, ModelForward] = {}
        for forward in self.candidates:
            turn = pass_of(forward)
            if turn is None:  # of a loop that turned out to be one over epochs
                continue
            if turn.loop in self.learning or turn.loop in found:
                continue
            if forward.serial in self.forwards.used:
                continue
            if forward.serial in returned and not names_validation(forward.place.function):
                continue
            if any(_learns_for(model, forward.model) for model in self.trained):
                found[turn.loop] = forward
        return list(found.values())

    def keeps_little(self, forward: ModelForward) -> bool:
        """Only one linear layer learns (a probe): its graph has the layer's input, which is in
        memory anyway."""
        if forward.learning is not None:
            return forward.learning == 1 and not wholes(forward.model)
        whole = [forward.model, *wholes(forward.model)][-1]
        family = whole.family()
        learning = [each for each in owners_of_parameters(whole) if not self._is_frozen(each)]
        is_linear = [each.kind for each in learning] == ["torch.nn.Linear"]
        return is_linear and all(map(_is_known, family))

    def kept_of(self, forward: ModelForward) -> list[TensorRetained]:
        """Tensors of a pass that outlive their turn with the graph of its forward, the first of
        each line; none if they are let go again in the next turn."""
        turn = pass_of(forward)
        loop = turn.loop if turn is not None else None
        found: dict[tuple[object, ...], list[TensorRetained]] = {}
        for kept in self.retained:
            inside = kept.turn is not None and kept.turn.loop is loop
            if inside and not kept.tensor.forwards.isdisjoint(self.forwards.by_serial):
                found.setdefault((kept.place, kept.since), []).append(kept)
        several = [each for each in found.values() if len({kept.turn for kept in each}) > 1]
        return list({each[0].place: each[0] for each in several}.values())


def _forwards_behind(values: tuple[Value, ...]) -> frozenset[int]:
    tensors = (part for each in values for part in (each, *contents(each)))
    return frozenset(
        serial
        for each in tensors
        if isinstance(each, Tensor) and each.graph
        for serial in each.forwards
    )


def _are_all_in(frozen: set[Model], model: Model) -> bool:
    """One of them has the module, or all of its parts that have parameters are in some of them: a
    wrapper around it is not frozen itself."""
    if not frozen or any(each.covers(model) for each in frozen):
        return bool(frozen)
    inner = model
    while inner.wraps is not None:
        inner = inner.wraps
    owners = owners_of_parameters(inner) or [inner]
    return all(any(each.covers(owner) for each in frozen) for owner in owners)


def _is_known(member: Model) -> bool:
    """A layer of torch's own, or of a class that can be read: nothing else learns in it."""
    if member.samples or not member.complete:
        return False
    if member.cls is None:
        return member.kind.startswith("torch.nn.")
    named = member.attributes.items()
    values = [each for name, each in named if not member.cls.keeps_tensor(name)]
    parts = [part for each in values for part in contents(each)]  # layers in a list, which learn
    return not any(isinstance(each, (OpaqueObject, Unknown, Model)) for each in (*values, *parts))


def _has_nothing_to_record(event: ModelForward) -> bool:
    """A module without parameters (a loss, a distance) works on tensors without a graph."""
    model, family = event.model, event.model.family()
    tensors = [each for each in event.inputs if isinstance(each, Tensor)]
    unknown = [each for each in event.inputs if isinstance(each, Unknown)]
    behind = (part for each in unknown for part in each.of if isinstance(part, Tensor))
    if has_parameters(model) or any(each.graph is not False for each in (*tensors, *behind)):
        return False
    is_bare = model.cls is not None and model.complete and not model.children
    empty = any(each.kind.startswith("torch.nn.Module") and not each.children for each in family)
    if is_bare and len(tensors) > 1:
        return True
    return bool(tensors or unknown) and all(map(_is_known, family)) and not empty


def cuts_rows(loop: Loop) -> bool:
    """It goes over the parts of a tensor: `x.split(64)`, `range(0, len(x), 64)`."""
    return _PARTS.search(loop.over) is not None


_PARTS = re.compile(r"\.(split|chunk)\(|^range\([^,]+,[^,]+,[^,]+\)$")


def _learns_for(trained: Model, model: Model) -> bool:
    """It is trained itself; or a copy of it, which its weights are made of (federated learning)."""
    copied = trained.copy_of
    return trained.shares_parameters(model) or (
        copied is not None and copied.shares_parameters(model)
    )


def _is_special(tensor: Tensor) -> bool:
    """Its own gradient is wanted; or it is volatile, as torch's older programs say."""
    return bool(tensor.inputs) or tensor.requires_grad or tensor.volatile
