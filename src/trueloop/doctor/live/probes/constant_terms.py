"""Gradients without a graph that become a term of a loss."""

from __future__ import annotations

from collections import Counter
from types import FrameType
from typing import TYPE_CHECKING

from trueloop.doctor.live.frames import term_flow
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event, GradTaken
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import ConstantTerm

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context
    from trueloop.doctor.live.objects.autograd_graph import GraphNode
    from trueloop.doctor.model.things import Model

_LOOKS = 4
"""Gradients that are followed from one place."""
_NODES = 400
_ADDS = frozenset("Add Sub Stack Cat".split())
_LINEAR = frozenset("Neg Mean Sum View ToCopy Squeeze Unsqueeze Reshape Clone Alias Select".split())


class ConstantTerms(Probe):
    """A result of `autograd.grad` without a graph shows nothing of what is done with it: the source
    says into which loss it goes, and that loss's graph has a term without a graph."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._looks: Counter[Location] = Counter()
        self._sums: dict[tuple[str, int, int], GradTaken] = {}
        """Where `backward` is called on a sum -> the gradient that is a term of it."""

    def gradient_taken(self, event: Event, frame: FrameType) -> None:
        assert isinstance(event, GradTaken)
        self._looks[event.place] += 1
        if self._looks[event.place] <= _LOOKS:
            for backward in term_flow.sums_with(frame):
                self._sums[backward[:3]] = event

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        gradient = self._sums.get(event.place[:3])
        loss = next(autograd_graph.tensors_in(tensors), None)
        if gradient is None or loss is None:
            return
        models = gradient.outputs.models if gradient.outputs is not None else frozenset()
        if self._has_constant_term(autograd_graph.node_of(loss), models):
            self.watcher.measure(ConstantTerm(gradient=gradient.place).at(event))

    def _has_constant_term(self, loss: GraphNode | None, models: frozenset[Model]) -> bool:
        """A tensor without a graph is added to a term of the loss, or to a residual of what the
        same model gave."""
        seen: dict[int, GraphNode] = {}
        waiting = [(loss, True)]
        while waiting and len(seen) < _NODES:
            node, linear = waiting.pop()
            if node is None or id(node) in seen:
                continue
            seen[id(node)] = node
            parts = [each for each, _ in node.next_functions]
            name = autograd_graph.name_of(node)
            if name in _ADDS:
                others = [
                    each for each in parts if each is not None and not hasattr(each, "variable")
                ]
                if None in parts and any(linear or self._leads_to(each, models) for each in others):
                    return True
            elif not (name in _LINEAR or (name in ("Mul", "Div") and None in parts)):
                linear = False
            waiting += [(each, linear) for each in parts]
        return False

    def _leads_to(self, node: GraphNode | None, models: frozenset[Model]) -> bool:
        """The graph below a node has parameters of one of the models."""
        seen: dict[int, GraphNode] = {}
        waiting: list[GraphNode | None] = [node]
        while waiting and len(seen) < _NODES:
            node = waiting.pop()
            if node is None or id(node) in seen:
                continue
            seen[id(node)] = node
            variable = getattr(node, "variable", None)
            owners = self.watcher.things.owners.get(variable) if variable is not None else None
            for owner in (each() for each in owners or ()):
                if owner is not None:
                    found = self.watcher.things.model(owner)
                    if any(each.shares_parameters(found) for each in models):
                        return True
            waiting += [each for each, _ in node.next_functions]
        return False

    def unwatched(self) -> None:
        self._sums.clear()
