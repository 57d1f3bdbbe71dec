"""Parameters that get gradients and are updated by nobody."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.manual_edits import gradient_state
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import class_source, parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import (
    HiddenParameter,
    StaleParameter,
    StrayParameter,
    StrayResolved,
    UnheldParameter,
)

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_UPDATES = 4
"""Updates in which a parameter gets a gradient and does not change."""
_OWN = ("parameters", "named_parameters", "state_dict", "modules", "children", "_apply")


@dataclass(eq=False)
class UntrackedParameter:
    """A parameter that gets gradients and belongs to no optimizer."""

    count: int = 0
    sums: tuple[float, ...] | None = None
    done: bool = False
    reported: Location | None = None


@dataclass(eq=False)
class Hidden:
    """A module that is called in the forward of one in which it is not registered."""

    outer: Any
    """Weak reference to the module with the attribute."""
    attribute: str
    kind: str


class UntrackedParameters(Probe):
    """Follows parameters that get gradients although no optimizer has ever had them."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self.strays = WeakMap[UntrackedParameter]()
        self.ever = WeakMap[bool]()
        """Parameters that an optimizer has, or has had."""
        self.frozen = WeakMap[bool]()
        """Parameters without an optimizer that have been frozen during a backward."""
        self.hidden = WeakMap[Hidden]()
        self._met = WeakMap[bool]()
        self._before: list[tuple[Any, Any]] = []
        self._received: list[Any] = []

    # ------------------------------------------------------------------ who holds what

    def made(self, optimizer: Optimizer, frame: FrameType) -> None:
        for parameter in inspection.parameters_of(optimizer):
            if self.ever.get(parameter) is None:
                self.ever.put(parameter, True)
                self._acquit(parameter, frame)

    def _acquit(self, parameter: torch.Tensor, frame: FrameType) -> None:
        stray = self.strays.get(parameter)
        if stray is None:
            return
        stray.done = True
        if stray.reported is not None:
            self.watcher.measure(StrayResolved(place=stray.reported))

    def called(self, module: nn.Module, outer: list[Any], output: object) -> None:
        if self._met.get(module) is not None:
            return
        self._met.put(module, True)
        things = self.watcher.things
        if things.parents.get(module) and things.root_of(module) is not module:
            return
        if not any(p.requires_grad for p in inspection.weights(module)):
            return
        for holder in reversed(outer):
            found = _plain_holder(holder, module)
            if found is not None:
                self.hidden.put(module, Hidden(weakref.ref(holder), *found))
                return

    # ------------------------------------------------------------------ gradients

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        self._before = []
        optimizers = self.watcher.things.live_optimizers()
        if not optimizers:
            return
        for each in optimizers:
            self.made(each, frame)
        for parameter, _ in list(self.watcher.things.owners.items()):
            if self.ever.get(parameter) is not None:
                continue
            if not parameter.requires_grad:
                if self.frozen.get(parameter) is None:
                    self.frozen.put(parameter, True)
            else:
                self._before.append((weakref.ref(parameter), gradient_state(parameter)))

    def after_backward(self, frame: FrameType) -> None:
        before, self._before = self._before, []
        self._received += map(weakref.ref, parameter_stats.changed(before))

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        received, self._received = self._received, []
        alive = [each for each in (reference() for reference in received) if each is not None]
        if not alive or parameter_stats.capturing():
            return
        ready = [each for each in alive if self._follow(each, frame)]
        if ready:
            self._judge(optimizer, ready, frame)

    def unwatched(self) -> None:
        self._before, self._received = [], []

    def _follow(self, parameter: torch.Tensor, frame: FrameType) -> bool:
        stray = self.strays.get(parameter)
        if stray is None:
            stray = UntrackedParameter()
            self.strays.put(parameter, stray)
        if stray.done:
            return False
        sums = parameter_stats.sums(parameter)
        if stray.sums is not None and stray.sums != sums:
            self._acquit(parameter, frame)
            stray.done = True
            return False
        stray.sums = sums
        stray.count += 1
        return stray.reported is None and stray.count >= _UPDATES

    # ------------------------------------------------------------------ what it is

    def _judge(self, optimizer: Optimizer, ready: list[Any], frame: FrameType) -> None:
        held = inspection.parameters_of(optimizer)
        stale = [each for each in held if self._is_stale(each)]
        things = self.watcher.things
        roots = {
            id(things.root_of(owner))
            for each in held if each.grad is not None
            for owner in parameter_stats.owners(self.watcher, each)
        }  # fmt: skip
        for parameter in ready:
            owner = parameter_stats.owners(self.watcher, parameter)[-1:]
            if not owner or not bool(parameter_stats.norm(parameter.grad)):
                continue
            root = things.root_of(owner[0])
            found = (
                self._stale(parameter, owner[0], stale, held)
                or self._hidden(root, roots)
                or (roots and self._unheld(parameter, owner[0], root, optimizer))
            )
            if found:
                self._report(parameter, root, optimizer, frame, found)

    def _report(
        self,
        parameter: torch.Tensor,
        root: nn.Module,
        optimizer: Optimizer,
        frame: FrameType,
        found: StrayParameter,
    ) -> None:
        stray = self.strays.get(parameter)
        assert stray is not None  # `_count` has put it there
        stray.reported = found.place
        if not found.place.line:
            found.place = user_frames.standing_at(frame)
        model = self.watcher.things.model(root)
        name = parameter_stats.name_of(root, parameter)
        found.optimizer = self.watcher.things.optimizer(optimizer)
        found.parameter = ".".join(filter(None, (model.name, name)))
        found.model, found.named = model.kind, bool(model.name)
        found.updates, found.numel = stray.count, parameter.numel()
        self.watcher.measure(found)

    def _is_stale(self, parameter: torch.Tensor) -> bool:
        """It was a module's parameter, and no module has it any more that is in use."""
        if self.watcher.things.owners.get(parameter) is None:
            return False
        owners = parameter_stats.owners(self.watcher, parameter)
        root_of = self.watcher.things.root_of
        return all(
            self.watcher.registrations.displaced.get(root_of(each)) is not None for each in owners
        )

    def _stale(
        self, parameter: torch.Tensor, owner: Any, stale: list[Any], held: list[Any]
    ) -> StaleParameter | None:
        """Another took its place after the optimizer was made."""
        if not stale:
            return None
        registrations = self.watcher.registrations
        registered = registrations.parameters.get(parameter)
        for module in self._around(owner):
            taken = registrations.modules.get(module)
            if taken is not None:
                return StaleParameter(place=taken.place)
        if registered is None:
            return None
        if registered.replaces:
            return StaleParameter(place=registered.place)
        if len(stale) == len(held):
            old = registrations.parameters.get(stale[0])
            return StaleParameter(place=_where_again(registered, old), rebuilt=True)
        return StaleParameter(place=registered.place)

    def _around(self, module: nn.Module) -> Iterator[Any]:
        """A module and those that contain it, outwards."""
        seen: set[int] = set()
        waiting: list[nn.Module | None] = [module]
        while waiting:
            each = waiting.pop()
            if each is None or id(each) in seen:
                continue
            seen.add(id(each))
            yield each
            waiting += [found() for found in self.watcher.things.parents.get(each) or ()]

    def _hidden(self, root: nn.Module, roots: set[int]) -> HiddenParameter | None:
        """It is in a plain container of a module that the optimizer trains."""
        found = self.hidden.get(root)
        outer = found.outer() if found is not None else None
        if found is None or outer is None:
            return None
        kind = type(outer)
        if id(self.watcher.things.root_of(outer)) not in roots:
            return None
        if any(getattr(kind, name) is not getattr(torch.nn.Module, name) for name in _OWN):
            return None
        place = class_source.attribute_set(kind, found.attribute)
        registered = self.watcher.registrations.parameters.get(next(inspection.weights(root)))
        inside = class_source.code_of(kind)
        if (
            place is None
            or registered is None
            or not any(site.code in inside for site in registered.sites)
        ):
            return None
        return HiddenParameter(
            place=place, attribute=found.attribute, container=found.kind,
            holder=kind.__qualname__, made=registered.place,
        )  # fmt: skip

    def _unheld(
        self, parameter: torch.Tensor, owner: Any, root: nn.Module, optimizer: Optimizer
    ) -> UnheldParameter | None:
        registrations = self.watcher.registrations
        registered = registrations.parameters.get(parameter)
        if not (owner.training and root.training) or registered is None or registered.replaces:
            return None
        if parameter._backward_hooks or self.hidden.get(root) is not None:
            return None
        if not self._is_thawed(parameter, root):
            if any(registrations.loaded.get(each) is not None for each in self._around(owner)):
                return None
            if not (parameter_stats.looks_fresh(owner) or class_source.draws_weights(type(owner))):
                return None
        held = self.watcher.things.optimizer(optimizer)
        return UnheldParameter(place=held.made, made=registered.place)

    def _is_thawed(self, parameter: torch.Tensor, root: nn.Module) -> bool:
        """It is meant to learn, wherever its weights are from: it has been frozen and is not any
        more, or the program has frozen other weights of the same model and not this one."""
        if self.frozen.get(parameter) is not None:
            return True
        registered = self.watcher.registrations.parameters
        weights = inspection.weights(root)
        frozen = (each for each in weights if not each.requires_grad and each.dim() > 1)
        known = (registered.get(each) for each in frozen)
        return any(each is not None and each.trainable for each in known)


def _plain_holder(holder: Any, module: nn.Module) -> tuple[str, str] | None:
    """The attribute of a module that is, or contains, a list, tuple or dict with a module in it, or
    an object of the program's that is not a module; and which of these."""

    def within(value: object, depth: int) -> bool:
        if value is module:
            return True
        if depth == 0 or not isinstance(value, (list, tuple, dict)) or len(value) > 1024:
            return False
        parts = value.values() if isinstance(value, dict) else value
        return any(within(each, depth - 1) for each in parts)

    for name, value in vars(holder).items():
        if name in ("_modules", "_parameters", "_buffers"):
            continue
        if isinstance(value, (list, tuple, dict)):
            if within(value, 3):
                kind = next(k for k in (list, tuple, dict) if isinstance(value, k)).__name__
                return name, kind
        elif _is_helper(value) and any(
            within(each, 3) for each in inspection.attributes(value).values()
        ):
            return name, type(value).__name__
    return None


def _is_helper(value: object) -> bool:
    """An object of a class of the program's that is not a module and does not hand out parameters
    itself."""
    kind = type(value)
    if inspection.is_a(value, torch.nn.Module) or not inspection.attributes(value):
        return False
    return not hasattr(kind, "parameters") and any(True for _ in class_source.classes(kind))


def _where_again(registered: Any, old: Any) -> Location:
    """Where a new model is made: of two that one function makes, the line that calls it."""
    sites = [each for each in registered.sites if each.kind == "user"]
    # Not inside of the modules' own constructors.
    while len(sites) > 1 and sites[-1].code.co_name == "__init__":
        sites.pop()
    lines = {(each.code, each.line) for each in old.sites} if old is not None else set()
    while len(sites) > 1 and (sites[-1].code, sites[-1].line) in lines:
        sites.pop()
    return user_frames.user_place(sites)[0]
