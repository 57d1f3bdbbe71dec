"""From the objects of a running program to the things that rules speak of."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.submodules import Submodules
from trueloop.doctor.model.things import (
    NOWHERE,
    RATES_UNTOUCHED,
    Checkpoint,
    Dataset,
    Loader,
    Model,
    Optimizer,
    Sampler,
    Scaler,
    Scheduler,
    StateDict,
    Tensor,
    Thing,
)

_WRAPPERS = {
    "DistributedDataParallel": "ddp",
    "DataParallel": "dp",
    "OptimizedModule": "compile",
    "FullyShardedDataParallel": "fsdp",
    "AveragedModel": "ema",
}


Value = TypeVar("Value")
Made = TypeVar("Made", bound=Thing)


class WeakMap(Generic[Value]):
    """Object -> what is known of it, by identity, as long as the object lives."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def get(self, key: object) -> Value | None:
        found = self._held.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def put(self, key: object, value: Value) -> None:
        identity, held = id(key), self._held

        def forget(gone: weakref.ref[object]) -> None:
            if identity in held and held[identity][0] is gone:
                del held[identity]

        held[identity] = (weakref.ref(key, forget), value)

    def __len__(self) -> int:
        return len(self._held)

    def items(self) -> Iterator[tuple[Any, Value]]:
        for reference, value in list(self._held.values()):
            key = reference()
            if key is not None:
                yield key, value


def _has_ranks() -> bool:
    return dist.is_available() and dist.is_initialized()


class ObjectRegistry:
    """The registry: one thing for each object, made when it is first met."""

    def __init__(self) -> None:
        self.modules = WeakMap[Model]()
        """Module -> Model."""
        self.objects = WeakMap[Any]()
        """Optimizers, schedules, scalers, loaders, data sets -> things."""
        self.tensors = WeakMap[Tensor]()
        """Tensor -> Tensor."""
        self.states = WeakMap[StateDict | Checkpoint]()
        """Tensor of a state dict or of a file -> StateDict, Checkpoint."""
        self.parents = WeakMap[list[weakref.ref[nn.Module]]]()
        """Module -> weak references to the modules that contain it."""
        self.owners = WeakMap[list[weakref.ref[nn.Module]]]()
        """Parameter -> weak references to the modules that contain it."""
        self.asked = WeakMap[dict[int, list[Any]]]()
        """Iterator of a loader -> the samples of the batches that it has asked for."""
        self.optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self.frozen: list[weakref.ref[torch.optim.Optimizer]] = []
        """Optimizers that have had groups with nothing but frozen parameters."""

    # ------------------------------------------------------------------ modules

    def registered(self, parent: nn.Module, child: nn.Module | None) -> None:
        """A module was put into a second one."""
        if child is None:
            return
        known = self.parents.get(child)
        if known is None:
            known = []
            self.parents.put(child, known)
        if not any(each() is parent for each in known):
            known.append(weakref.ref(parent))

    def owned(self, module: nn.Module, parameter: torch.Tensor | None) -> None:
        """A parameter was put into a module."""
        if parameter is None:
            return
        known = self.owners.get(parameter)
        if known is None:
            known = []
            self.owners.put(parameter, known)
        if not any(each() is module for each in known):
            known.append(weakref.ref(module))

    def adopt(self, root: nn.Module) -> None:
        """Take note of a tree of modules whose making was not seen (a copy, one from a file)."""
        for module in root.modules():
            for child in module._modules.values():
                self.registered(module, child)
            for parameter in module._parameters.values():
                self.owned(module, parameter)

    def root_of(self, module: nn.Module) -> nn.Module:
        """The outermost module that contains this one."""
        seen: set[int] = set()
        while id(module) not in seen:
            seen.add(id(module))
            alive = [each() for each in self.parents.get(module) or ()]
            holding = [
                each
                for each in alive
                if each is not None and any(m is module for m in each._modules.values())
            ]
            if not holding:
                return module
            module = holding[-1]
        return module

    def model(self, module: nn.Module, made: Location = NOWHERE) -> Model:
        """The thing for a module, with all that it contains now."""
        found = self.modules.get(module)
        if found is None:
            kind = type(module)
            found = Model(
                kind=f"{_package(kind)}.{kind.__qualname__}",
                training=module.training,
                known=True,
                made=made,
                name=source_map.assigned_to(made) if made.line else "",
            )
            share = inspection.dropout_of(module)
            if share is not None:
                found.arguments["p"] = share
            if inspection.held(module, "track_running_stats") is False:
                found.arguments["track_running_stats"] = False
            self.modules.put(module, found)
            found.wrapper = _WRAPPERS.get(kind.__name__, "")
        self.refresh(module, found)
        return found

    def refresh(self, module: nn.Module, model: Model) -> None:
        """Bring a model's mode and children up to date."""
        model.training = module.training
        # The class that `fully_shard` gives a module.
        if model.sharded is None and type(module).__bases__[0].__name__ == "FSDPModule":
            model.sharded = _divides_data(module)
        children = {name: child for name, child in module._modules.items() if child is not None}
        if model.wrapper:
            inner = children.get("module") or children.get("_orig_mod")
            model.wraps = self.model(inner) if inner is not None else None
        if children:
            known = {name: self.model(child) for name, child in children.items()}
            if known != model.children:
                model.children = Submodules(known)
            for child in model.children.values():
                if not any(each is model for each in child.parents):
                    child.parents.append(model)

    def models_of(
        self, parameters: Iterable[torch.Tensor]
    ) -> tuple[list[Model], list[torch.Tensor]]:
        """The outermost modules that contain these parameters, and the parameters without one.

        If the parameters belong to one part (`model.head.parameters()`), that part is
        meant: the smallest modules that are covered whole.
        """
        wanted = {id(each): each for each in parameters}
        loose: list[torch.Tensor] = []
        roots: dict[int, nn.Module] = {}
        for each in wanted.values():
            owners = [found() for found in self.owners.get(each) or ()]
            alive = [
                owner
                for owner in owners
                if owner is not None and any(p is each for p in owner._parameters.values())
            ]
            if not alive:
                loose.append(each)
                continue
            root = self.root_of(alive[-1])
            roots[id(root)] = root
        models = [
            self.model(part) for root in roots.values() for part in _parts(root, wanted.keys())
        ]
        return models, loose

    # ------------------------------------------------------------------ other objects

    def thing(self, key: object, make: Callable[[], Made]) -> Made:
        """The thing for an object, made by `make` if it is new."""
        found: Made | None = self.objects.get(key)
        if found is None:
            found = make()
            self.objects.put(key, found)
        return found

    def optimizer(self, optimizer: torch.optim.Optimizer, made: Location = NOWHERE) -> Optimizer:
        def make() -> Optimizer:
            inner = self._wrapped(optimizer)
            if inner is not None:
                return inner
            self.optimizers.append(weakref.ref(optimizer))
            kind = type(optimizer)
            thing = Optimizer(
                kind=f"{_package(kind)}.{kind.__qualname__}",
                known=True,
                made=made,
                name=source_map.assigned_to(made) if made.line else "",
                # A rank may leave the step to a different one.
                has_stepped=False if made.line and not _has_ranks() else None,
            )
            thing.arguments = {
                key: value
                for key, value in (inspection.held(optimizer, "defaults") or {}).items()
                if type(value) in (int, float, str, bool, tuple)
            }
            if not kind.__module__.startswith("torch.optim"):
                own = any("step" in vars(base) for base in kind.__mro__ if base in _users(kind))
                thing.own_step = own
            return thing

        thing = self.thing(optimizer, make)
        self.hold(optimizer, thing)
        return thing

    def note_step(self, optimizer: torch.optim.Optimizer) -> None:
        thing = self.objects.get(optimizer)
        if thing is not None:
            thing.has_stepped = True

    def look_again(self) -> None:
        """Bring what the optimizers hold up to date, at the end of a run."""
        for optimizer in self.live_optimizers():
            self.optimizer(optimizer)

    def _wrapped(self, optimizer: torch.optim.Optimizer) -> Optimizer | None:
        """The thing for the optimizer that a new one is a mere wrapper of: it lends its groups."""
        groups = getattr(optimizer, "param_groups", None)
        lends = (each for each in self.live_optimizers() if each.param_groups is groups)
        return self.objects.get(next(lends, None))

    def live_optimizers(self) -> list[Any]:
        """The optimizers that are known and still alive."""
        return [each for each in [known() for known in self.optimizers] if each is not None]

    def hold(self, optimizer: torch.optim.Optimizer, thing: Optimizer) -> None:
        """Bring the parameters of an optimizer up to date."""
        frozen = frozenset(
            number
            for number, group in enumerate(optimizer.param_groups)
            if group["params"]
            and not any(p.requires_grad or p.grad is not None for p in group["params"])
        )
        if frozen and frozen != thing.frozen_groups:
            self._look_when_it_ends(optimizer, thing, frozen)
        thing.frozen_groups = frozen
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        signature = tuple(map(id, parameters))
        if thing.signature == signature and thing.models:
            return
        models, loose = self.models_of(parameters)
        thing.signature = signature
        thing.models, thing.complete = models, True
        thing.tensors = [self.leaf(each) for each in loose]

    def _look_when_it_ends(
        self, optimizer: torch.optim.Optimizer, thing: Optimizer, frozen: frozenset[int]
    ) -> None:
        """An optimizer may be gone before the run ends, and its groups thawed by then in updates
        that nobody has looked at: its parameters outlive it by a moment."""
        groups = {
            number: [weakref.ref(each) for each in optimizer.param_groups[number]["params"]]
            for number in frozen
        }

        def look(_: object) -> None:
            with torch._C.DisableTorchFunctionSubclass():  # it runs in the midst of the program
                thawed = {
                    number
                    for number, parameters in groups.items()
                    for each in parameters
                    if (parameter := each()) is not None and parameter.requires_grad
                }
            thing.frozen_groups = (thing.frozen_groups or frozenset()) - thawed

        self.frozen.append(weakref.ref(optimizer, look))

    def scheduler(self, scheduler: LRScheduler, made: Location = NOWHERE) -> Scheduler:
        def make() -> Scheduler:
            optimizer = inspection.held(scheduler, "optimizer")
            kind = type(scheduler)
            return Scheduler(
                kind=kind.__name__,
                cls=None if kind.__module__.startswith("torch.optim") else kind.__qualname__,
                own_step=not _own_methods(kind) <= RATES_UNTOUCHED,
                known=True,
                made=made,
                name=source_map.assigned_to(made) if made.line else "",
                optimizer=None if optimizer is None else self.optimizer(optimizer),
            )

        return self.thing(scheduler, make)

    def scaler(self, scaler: torch.amp.GradScaler, made: Location = NOWHERE) -> Scaler:
        def make() -> Scaler:
            name = source_map.assigned_to(made) if made.line else ""
            written = source_map.written(made, -1, "enabled") if made.line else ""
            enabled = scaler.is_enabled()
            # One that is off in this run may be on in the next, unless its source says never.
            off = None if written not in ("", "False") else False
            return Scaler(known=True, made=made, name=name, enabled=True if enabled else off)

        return self.thing(scaler, make)

    def dataset(self, dataset: object) -> Dataset | None:
        if dataset is None:
            return None

        def make() -> Dataset:
            kind = type(dataset)
            parent = inspection.held(dataset, "dataset")
            return Dataset(
                kind=f"{_package(kind)}.{kind.__qualname__}",
                known=True,
                size=inspection.length(dataset),
                parent=self.dataset(parent) if parent is not None else None,
            )

        try:
            return self.thing(dataset, make)
        except TypeError:  # a list, of which no weak reference can be had
            return make()

    def sampler(self, sampler: object) -> Sampler:
        def make() -> Sampler:
            kind = type(sampler)
            shuffles = inspection.is_a(
                sampler,
                (torch.utils.data.RandomSampler, torch.utils.data.WeightedRandomSampler,
                 torch.utils.data.SubsetRandomSampler),
            )  # fmt: skip
            plain = inspection.is_a(sampler, torch.utils.data.SequentialSampler)
            shuffle = inspection.held(
                sampler, "shuffle", True if shuffles else False if plain else None
            )
            name = f"{_package(kind)}.{kind.__qualname__}"
            if inspection.orders_by_epoch(kind):
                name = "torch.utils.data.DistributedSampler"
            return Sampler(kind=name, shuffle=shuffle)

        try:
            return self.thing(sampler, make)
        except TypeError:  # a list, of which no weak reference can be had
            return make()

    def loader(self, loader: DataLoader[Any], made: Location = NOWHERE) -> Loader:
        def make() -> Loader:
            found, batches = (inspection.held(loader, f"{each}sampler") for each in ("", "batch_"))
            if inspection.orders_by_epoch(type(batches)):
                found = batches
            sampler = None if found is None else self.sampler(found)
            return Loader(
                known=True,
                made=made,
                name=source_map.assigned_to(made) if made.line else "",
                dataset=self.dataset(inspection.held(loader, "dataset")),
                batch_size=inspection.held(loader, "batch_size"),
                shuffle=None if sampler is None else sampler.shuffle,
                drop_last=inspection.held(loader, "drop_last"),
                workers=inspection.held(loader, "num_workers"),
                length=inspection.length(loader),
                samples=_samples(loader, found),
                sampler=sampler,
                # Made by the loader itself, or as it would have made it.
                sampler_default=type(found) in _STANDARD,
                shared_by_hand=_shares_by_hand(loader, made),
            )

        return self.thing(loader, make)

    # ------------------------------------------------------------------ tensors

    def leaf(self, tensor: torch.Tensor) -> Tensor:
        """The thing for a leaf: a parameter on its own, or an input that is optimised."""
        found = self.tensors.get(tensor)
        if found is None:
            role = "parameter" if isinstance(tensor, nn.Parameter) else ""
            shape = None if inspection.is_lazy(tensor) else tuple(tensor.shape)
            found = Tensor(known=True, role=role, shape=shape, graph=False)
            self.tensors.put(tensor, found)
        return found


def _samples(loader: DataLoader[Any], sampler: object) -> int | None:
    """The length of its data set, where that is not the number of batches."""
    several = (inspection.held(loader, "batch_size") or 0) > 1
    return inspection.length(loader.dataset) if several and type(sampler) in _STANDARD else None


def _divides_data(module: nn.Module) -> bool:
    """A sharded module is one of as many replicas as there are ranks: no axis of its mesh is one of
    tensor or pipeline parallelism, along which ranks see the same data."""
    weights = list(inspection.weights(module))
    meshes = [each.device_mesh for each in weights if hasattr(each, "device_mesh")]
    placed = [each.placements for each in weights if hasattr(each, "placements")]
    world = torch.distributed.get_world_size()
    return (
        bool(meshes)
        and world > 1
        and all(
            mesh.size() == world and sum(not place.is_replicate() for place in places) < 2
            for mesh, places in zip(meshes, placed, strict=True)
        )
    )


_STANDARD = (torch.utils.data.RandomSampler, torch.utils.data.SequentialSampler)


def _shares_by_hand(loader: DataLoader[Any], made: Location) -> bool:
    """The program shares the data out among ranks itself."""
    from trueloop.doctor.live.processes import rank_identity

    name = source_map.assigned_to(made) if made.line else ""
    return rank_identity.shares(loader, made.path, name)


def _parts(module: nn.Module, wanted: Collection[int]) -> list[nn.Module]:
    """The largest modules below a module, or itself, whose trainable parameters are all wanted; and
    those that have only some of them."""
    below = [p for p in inspection.weights(module) if p.requires_grad or id(p) in wanted]
    if not below or not any(id(p) in wanted for p in below):
        return []
    own = any(id(p) in wanted for p in module._parameters.values() if p is not None)
    if own or all(id(p) in wanted for p in below):
        return [module]
    return [
        found for child in module._modules.values() if child is not None
        for found in _parts(child, wanted)
    ]  # fmt: skip


def _package(kind: type) -> str:
    """`torch.nn` of `torch.nn.modules.linear`: as people import it."""
    module = kind.__module__
    return "torch.nn" if module.startswith("torch.nn.modules.") else module


def _users(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if not base.__module__.startswith("torch.optim")]


def _own_methods(kind: type) -> set[str]:
    """The methods that a class and those above it add to torch's."""
    added = (vars(base).items() for base in _users(kind) if base is not object)
    return {name for each in added for name, value in each if inspect.isfunction(value)}
