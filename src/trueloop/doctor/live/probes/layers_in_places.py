"""Layers that a container has in several places."""

from __future__ import annotations

import ast
from types import FrameType
from typing import TYPE_CHECKING

from torch import nn

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.user_frames import Site
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.provenance import Repeated
from trueloop.doctor.live.probes import class_source
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model import layer_repetition, vocabulary
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.value_events import LayerInPlaces

if TYPE_CHECKING:
    from torch.optim import Optimizer


class LayersInPlaces(Probe):
    """Looks at an optimizer's parameters when it is made: the layers that containers had twice by
    then, where the source does not mean it."""

    def made(self, optimizer: Optimizer, frame: FrameType) -> None:
        repeated = self.watcher.registrations.repeated
        if not len(repeated):
            return
        held = {id(each) for each in inspection.parameters_of(optimizer) if each.requires_grad}
        for layer, found in repeated.items():
            container = found.container()
            trained = [each for each in inspection.weights(layer) if id(each) in held]
            if container is None or not trained:
                continue
            places = sum(each is layer for each in container._modules.values())
            place = _mistake(found) if places > 1 else None
            if place is None:
                continue
            numel = sum(each.numel() for each in trained)
            measured = LayerInPlaces(
                place=place, kind=type(layer).__name__, places=places,
                container=_kind_of(container), numel=numel,
            )  # fmt: skip
            self.watcher.measure(measured)


def _kind_of(container: nn.Module) -> str:
    return next(
        each.__name__ for each in type(container).__mro__
        if each.__name__ in vocabulary.CONTAINERS
    )  # fmt: skip


def _mistake(found: Repeated) -> Location | None:
    """The expression that repeats the layer, if nothing shows that it is meant."""
    sites = [each for each in found.sites if each.kind == "user"]
    if not sites:
        return None
    inner = sites[-1]
    source = source_map.source_of(inner.code.co_filename)
    statement = source.statement_at(inner.line)
    if source.tree is None or statement is None:
        return None
    sharing = vocabulary.lines_of_sharing(source.text)
    for each in layer_repetition.behind(source.tree, statement):
        verdict = layer_repetition.judge(source.tree, sharing, each)
        handed = verdict.parameter and _is_made_in_call(sites, verdict.parameter)
        if verdict.by_mistake or handed:
            return class_source.place_of(source.path, each.node, inner.code.co_name)
    return None


def _is_made_in_call(sites: list[Site], parameter: str) -> bool:
    """The caller of the function makes the layer in the call: `repeat(nn.Linear(4, 4), n)`."""
    if len(sites) < 2:
        return False
    inner, outer = sites[-1].code, sites[-2]
    statement = source_map.source_of(outer.code.co_filename).statement_at(outer.line)
    index = inner.co_varnames.index(parameter)
    for call in walk(statement) if statement is not None else ():
        if not isinstance(call, ast.Call):
            continue
        if getattr(call.func, "attr", getattr(call.func, "id", "")) != inner.co_name:
            continue
        named = [each.value for each in call.keywords if each.arg == parameter]
        given = [*named, *call.args[index : index + 1]]
        return bool(given) and isinstance(given[0], ast.Call)
    return False
