"""Parameters of which each rank has a full copy: are they still alike?

Ranks never wait for each other: each puts a few numbers into the store that the process group was
made with, at a few updates; the first rank reads later what has arrived.
"""

from __future__ import annotations

import json
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats, replica_digests
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.live.probes.replica_digests import ReplicaDigest
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import RanksDiffer
from trueloop.doctor.model.things import Thing

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_AT = (11, 21, 31, 41, 48)
"""Updates, while all of them are looked at."""
_IN_A_ROW = 3
_WAITING = 8
_RANKS = 64
"""That are compared, of many."""
_GONE = (RuntimeError, ValueError)
"""The store is: its process has ended, or the program has taken the group down."""


class ReplicaRecord:
    """The facts about a wrapper, or an optimizer."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The same on all ranks."""
        self.calls = 0
        self.next = 0
        """Of `_AT`."""
        self.due = ""
        """The look that is to be taken in the backward that follows."""
        self.updates: list[int] = []
        self.row = 0
        """Looks in a row at which it differed."""
        self.same: int | None = None
        """Updates after which it was still the same."""
        self.reported = False

    def has_new(self, updates: int) -> bool:
        """It was compared all along, and not yet after so many updates."""
        return len(self.updates) >= len(_AT) and self.updates[-1] != updates


class Waiting(NamedTuple):
    """A look that the other ranks' are awaited for; their keys in the store."""

    keys: list[str]
    record: ReplicaRecord
    own: ReplicaDigest
    subject: Thing
    place: Location
    names: list[str]
    is_wrapped: bool


class Replicas(Probe):
    """Compares the ranks' copies: of a module in DistributedDataParallel, and of an optimizer whose
    gradients the program averages itself. It says nothing where parameters are averaged by hand, or
    gradients reduced by a hook of the program's own: there they differ on purpose."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._wrappers = WeakMap[ReplicaRecord]()
        self._optimizers = WeakMap[ReplicaRecord]()
        self._waiting: list[Waiting] = []
        self._whole = True
        """All updates were looked at until now."""
        self._backwards = 0
        """Since the last step."""
        self._summed: set[int] = set()
        """Addresses of tensors that were summed over ranks since a backward began."""
        self._numbers = 0
        """In them, and in those that were put together from others."""
        self._early: set[replica_digests.Site] = set()
        """Where ranks were made alike before the first update."""
        self._is_off = not dist.is_available()

    # ------------------------------------------------------------------ when to look

    def called(self, module: nn.Module, *_: object) -> None:
        if not isinstance(module, nn.parallel.DistributedDataParallel) or self._is_off:
            return
        if not module.training or not torch.is_grad_enabled() or parameter_stats.capturing():
            return
        record = self._record(self._wrappers, module, "wrapper")
        self._read()
        # The second pass of one update may be through weights that were shifted for it (SAM); where
        # no update is ever made here, other ranks may make them.
        if not self._backwards or not self.watcher.updates:
            self._count(record)
        else:
            record.calls += 1

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        self.called(module)

    def unwatched(self) -> None:
        self._read()
        self._whole = False
        self._backwards = 0

    def _record(self, known: WeakMap[ReplicaRecord], key: Any, kind: str) -> ReplicaRecord:
        record = known.get(key)
        if record is None:
            record = ReplicaRecord(f"{kind} {len(known)}")
            known.put(key, record)
        return record

    def _count(self, record: ReplicaRecord) -> None:
        """One more update of it begins: is it one to look at?"""
        record.calls += 1
        updates = self.watcher.updates
        if self._whole and record.next < len(_AT) and record.calls >= _AT[record.next]:
            record.due = f"look {record.next}"
            record.next += 1
        elif not self._whole and _is_mark(updates) and record.has_new(updates):
            record.due = f"update {updates}"

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None:
        self._summed.clear()
        self._numbers = 0

    def after_backward(self, frame: FrameType) -> None:
        self._backwards += 1
        for module, record in self._wrappers.items():
            if record.due:
                when, record.due = record.due, ""
                self._look_at_wrapper(module, record, when)

    def summed(self, name: str, tensor: torch.Tensor, frame: FrameType) -> None:
        if name == "broadcast" and not self.watcher.updates:
            caller = user_frames.of_program(frame)
            self._early.add((caller.f_code.co_filename, caller.f_lineno))
        elif isinstance(tensor, torch.Tensor) and name != "broadcast":
            plain = parameter_stats.local(tensor)
            self._summed.add(plain.data_ptr())
            self._numbers += plain.numel()

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        if self._is_off or rank_identity.number() is None or parameter_stats.capturing():
            return
        self._read()
        if self._numbers:
            self._look_at_optimizer(optimizer)

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        self._backwards = 0

    # ------------------------------------------------------------------ the looks

    def _look_at_wrapper(
        self, module: DistributedDataParallel, record: ReplicaRecord, when: str
    ) -> None:
        group = dist.get_process_group_ranks(module.process_group)
        if record.reported or module._comm_hooks:
            return
        named = [
            (name, each) for name, each in module.module.named_parameters()
            if name not in module.parameters_to_ignore
        ]  # fmt: skip
        model = self.watcher.things.model(module)
        self._look(named, record, when, group, (model, model.made, True))

    def _look_at_optimizer(self, optimizer: Optimizer) -> None:
        """One whose gradients were just summed over the ranks by the program."""
        record = self._record(self._optimizers, optimizer, "optimizer")
        self._count(record)
        when, record.due = record.due, ""
        held = inspection.parameters_of(optimizer)
        if not when or record.reported or not self._are_summed(held) or self._are_kept(held):
            return
        place = _place_of(self.watcher, held[0])
        thing = self.watcher.things.optimizer(optimizer)
        subject: Thing = thing.models[0] if len(thing.models) == 1 else thing
        owners = parameter_stats.owners(self.watcher, held[0])
        root = self.watcher.things.root_of(owners[-1]) if owners else None
        names = {id(each): name for name, each in root.named_parameters()} if root else {}
        named = [(names.get(id(each), "?"), each) for each in held]
        group = list(range(dist.get_world_size()))
        self._look(named, record, when, group, (subject, place or thing.made, False))

    def _are_summed(self, held: list[Any]) -> bool:
        gradients = [each.grad for each in held if each.grad is not None]
        numbers = sum(each.numel() for each in gradients)
        if not numbers:
            return False
        found = any(parameter_stats.local(each).data_ptr() in self._summed for each in gradients)
        return found or 2 * self._numbers >= numbers

    def _are_kept(self, held: list[Any]) -> bool:
        """Something else keeps them alike, or in parts."""
        kept = {id(p) for module, _ in self._wrappers.items() for p in inspection.weights(module)}
        return any(id(p) in kept or not p.numel() or hasattr(p, "to_local") for p in held)

    def _look(
        self, named: list[tuple[str, Any]], record: ReplicaRecord, when: str, group: list[int],
        about: tuple[Thing, Location, bool],
    ) -> None:  # fmt: skip
        record.updates.append(self.watcher.updates)
        del record.updates[: -2 * len(_AT)]
        parameters = replica_digests.some([each for _, each in named])
        compared = [rank for rank in group if rank][:: -(-len(group) // _RANKS)]
        is_first = rank_identity.rank() == 0
        if not compared or 0 not in group or not parameters:
            return
        if not is_first and rank_identity.rank() not in compared:
            return
        own = replica_digests.take(self.watcher, parameters, list(record.updates))
        prefix = f"trueloop/{record.name}/{when}/"
        if not is_first:
            self._put(f"{prefix}{rank_identity.rank()}", own)
            return
        names = {id(each): name for name, each in named}
        keys = [f"{prefix}{rank}" for rank in compared]
        shown = [names[id(each)] for each in parameters]
        self._waiting.append(Waiting(keys, record, own, about[0], about[1], shown, about[2]))
        del self._waiting[:-_WAITING]

    def _put(self, key: str, own: ReplicaDigest) -> None:
        try:
            dist.distributed_c10d._get_default_store().set(key, json.dumps(own))
        except _GONE:
            self._is_off = True

    def _read(self) -> None:
        """Compare with what has come in since; nothing is waited for."""
        if not self._waiting or self._is_off or not dist.is_initialized():
            return
        for waiting in list(self._waiting):
            try:
                store = dist.distributed_c10d._get_default_store()
                if not store.check(waiting.keys):
                    continue
                others = [ReplicaDigest(*json.loads(store.get(key))) for key in waiting.keys]
                for key in waiting.keys:
                    store.delete_key(key)
            except _GONE:
                self._is_off = True
                return
            self._waiting.remove(waiting)
            self._compare(waiting, others)

    # ------------------------------------------------------------------ the comparison

    def _compare(self, waiting: Waiting, others: list[ReplicaDigest]) -> None:
        record, own = waiting.record, waiting.own
        found = [_compared(own, each, waiting.is_wrapped) for each in others]
        known = [each for each in found if each is not None]
        if record.reported or len(known) < len(found):
            record.row = 0  # they do not do the same: nothing is to be compared
            return
        worst = max(range(len(known)), key=lambda rank: known[rank].by)
        if known[worst].by <= replica_digests.DIFFERS:
            record.row, record.same = 0, own.updates[-1]
            return
        record.row += 1
        if record.row == _IN_A_ROW:
            self._report(waiting, others[worst], waiting.keys[worst], known[worst])

    def _report(
        self,
        waiting: Waiting,
        other: ReplicaDigest,
        key: str,
        apart: replica_digests.ReplicaDifference,
    ) -> None:
        record = waiting.record
        record.reported = True
        if replica_digests.brings_together(waiting.place.path, self._early):
            return
        differ = RanksDiffer(
            subject=waiting.subject, place=waiting.place, rank=int(key.rpartition("/")[2]),
            updates=waiting.own.updates[-1], parameter=waiting.names[apart.most], by=apart.by,
            count=apart.differing, of=len(waiting.names), same=record.same,
            rates=(waiting.own.rates, other.rates), wrapped=waiting.is_wrapped,
        )  # fmt: skip
        self.watcher.measure(differ)


def _compared(
    own: ReplicaDigest, other: ReplicaDigest, is_wrapped: bool
) -> replica_digests.ReplicaDifference | None:
    """How far two ranks are apart; None where they are not at the same point of the same work."""
    if len(own.values) != len(other.values):
        return None
    averaged = replica_digests.are_averaged(own, other)
    if not is_wrapped:
        return replica_digests.apart(own, other, averaged) if any(averaged) else None
    if any(averaged) or replica_digests.do_the_same(own, other):
        return replica_digests.apart(own, other, [True] * len(averaged))
    return None


def _is_mark(updates: int) -> bool:
    """One of the updates that every watcher looks at: 100 and half as much again, each plus two."""
    mark = 100
    while mark + 2 < updates:
        mark = int(mark * 1.5)
    return mark + 2 == updates


def _place_of(watcher: Context, parameter: torch.Tensor) -> Location | None:
    """The line that makes the model which a parameter belongs to."""
    registered = watcher.registrations.parameters.get(parameter)
    sites = [] if registered is None else [each for each in registered.sites if each.kind == "user"]
    while len(sites) > 1 and sites[-1].code.co_name in ("__init__", "reset_parameters"):
        sites.pop()
    return user_frames.user_place(sites)[0] if sites else None
