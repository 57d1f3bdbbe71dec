"""Whose gradients are touched, and when: what the rules about the order of a step share.

An optimizer's *window* is what happened since it stepped last. Whether an event bears on an
optimizer has three answers: True, False, and None where it is not known. A fault needs True; what
acquits may be None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

from trueloop.doctor.model.events import (
    Backward,
    Clip,
    EscapedToUnknown,
    Event,
    GradEdited,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Move
from trueloop.doctor.model.submodules import Submodules
from trueloop.doctor.model.things import Model, Optimizer, Scaler, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.timeline import FAR

NO_LIMIT = 1e4
"""A norm is not clipped at such a size: the call is made for its result."""
_MEDDLES = re.compile(
    r"zero|clear|step|updat|optim|backward|grad|hook|callback|train(?!ed)|fit|engine|run|descen[dt]",
    re.I,
)
_TOUCHES = re.compile(r"grad|zero|backward|clear|step|(?-i:Opt(im(izer)?)?(Wrapper)?$)", re.I)
"""The last: `ScheduledOptim(optimizer)`, `NoamOpt(...)` are optimizers themselves."""
_PARAMETERS = re.compile(r"[\w.]+\.parameters\(\)")
_GROUPS = re.compile(r"[\w.]+\.param_groups")
LEAVES_ALONE = re.compile(
    r"sched|warm_?up|(^|[._])lr([._]|$)|learning_rate|save|load|checkpoint|ckpt|resume|restore|log"
    r"|print|writer|summary|watch|count|num_|plot|info|ema|average|eval|valid|test|metric|device"
    r"|parallel|prepare|initialize|accuracy|get_|freeze|init",
    re.I,
)


class StepRule(Rule):
    """A rule that looks back over the events around gradients: those before the current one."""

    _asked = 0

    # ------------------------------------------------------------------ looking back

    def has_more(self) -> bool:
        """Events came since this was last asked: most loops around a training add none."""
        before, self._asked = self._asked, self.timeline.count
        return self._asked != before

    def window(self, optimizer: Optimizer) -> list[Event]:
        """The events since the optimizer's last step, oldest first."""
        return self.timeline.since_step(optimizer)[1]

    def last_step(self, optimizer: Optimizer) -> OptimizerStep | None:
        return self.timeline.since_step(optimizer)[0]

    def every(self, step: OptimizerStep) -> int | None:
        """The optimizer has stepped once in so many turns of its loop, twice in a row, or once from
        the loop's first turn on; None where it steps in each turn. Only of a program that runs: in
        source a window is written."""
        turn = micro(step)
        if turn is None or turn.loop.simulated:
            return None
        steps = (
            micro(event)
            for event in islice(reversed(self.timeline.events), FAR)
            if isinstance(event, OptimizerStep)
            and event.optimizer is step.optimizer
            and event.place == step.place
        )
        before = list(islice(steps, 2))
        last = before[0] if before else None
        if last is None or last.loop is not turn.loop or turn.index - last.index < 2:
            return None
        size = turn.index - last.index
        first = before[1] if len(before) > 1 else None
        previous = first.index if first is not None and first.loop is turn.loop else -1
        if size != last.index - previous:
            return None
        pairs = [(a, b) for a, b in pairwise([*before, *steps]) if a and b and a.loop is b.loop]
        dense = sum(a.index - b.index == 1 for a, b in pairs)
        return size if 4 * dense <= len(pairs) else None

    # ------------------------------------------------------------------ whose gradients

    def alone(self, optimizer: Optimizer) -> bool:
        """No other optimizer is at work in this run."""
        return self.timeline.optimizers in ([], [optimizer])

    def feeds(self, event: Backward, optimizer: Optimizer) -> bool:
        """The backward certainly adds to gradients of the optimizer's parameters."""
        found = feeds(event, optimizer)
        return found is True or (found is None and self.alone(optimizer))

    def clears(self, event: ZeroGrad, optimizer: Optimizer) -> bool:
        """All gradients of the optimizer are certainly cleared."""
        return is_whole(event) and clears(event, optimizer) is True

    def erases(self, event: ZeroGrad, backward: Backward, optimizer: Optimizer) -> bool:
        """The gradients that the backward left for the optimizer are certainly cleared."""
        if self.clears(event, optimizer):
            return True
        models = backward.loss.models if backward.loss is not None else frozenset()
        target = event.target
        return (
            is_whole(event)
            and isinstance(target, Model)
            and bool(models)
            and all(target.covers(each) for each in models)
        )

    def clips(self, event: Clip, optimizer: Optimizer) -> bool:
        """The call certainly clips gradients of this optimizer, and really clips."""
        found = clips(event, optimizer)
        return is_clipping(event) and (found is True or (found is None and self.alone(optimizer)))

    def may_clip(self, event: Event, optimizer: Optimizer) -> bool:
        return isinstance(event, Clip) and clips(event, optimizer) is not False

    def report_clip(
        self, clip: Clip, why: str, other: tuple[Event, str], remedies: list[Move]
    ) -> None:
        """Report a clip without effect. `other`: the event that it belongs to, with a label."""
        simple = side_by_side(clip, other[0]) and not clip.result_used
        self.report(
            clip.place,
            f"`{'clip_grad_norm_' if clip.by == 'norm' else 'clip_grad_value_'}` {why}",
            related=[(other[0].place, other[1])],
            fix="Clip after `backward()` and before the step.",
            remedies=remedies if simple else [],
        )


# ------------------------------------------------------------------------------- relations


def share(one: Model, other: Model) -> bool:
    """They have parameters in common."""
    return one.overlaps(other)


def has_parameters_of(optimizer: Optimizer, model: Model) -> bool:
    return not model.members().isdisjoint(optimizer.members())


def members_of(event: Backward) -> frozenset[Model]:
    """The models that the loss came through, with everything inside them."""
    if event.loss is None:
        return frozenset()
    models, known = event.loss.models, event.members
    if known is not None and known[0] == Submodules.changes and known[1] is models:
        return known[2]
    found = frozenset[Model]().union(*(each.members() for each in models))
    event.members = Submodules.changes, models, found
    return found


def feeds(event: Backward, optimizer: Optimizer) -> bool | None:
    """A backward adds to gradients of the optimizer's parameters."""
    loss = event.loss
    if loss is None:
        return None
    if not loss.models.isdisjoint(optimizer.models):
        return True
    if loss.models and not optimizer.members().isdisjoint(members_of(event)):
        return True
    if not loss.inputs.isdisjoint(optimizer.tensors):
        return True
    traced = optimizer.known and optimizer.complete and loss.graph is True
    if traced and loss.models and optimizer.models and not optimizer.tensors:
        return False
    return None


def disjoint(one: Optimizer, other: Optimizer) -> bool:
    """Two optimizers certainly have different parameters."""
    if not (one.known and other.known and one.complete and other.complete):
        return False
    if not (one.models and other.models):
        return False
    return not any(has_parameters_of(one, model) for model in other.models)


def clears(event: ZeroGrad, optimizer: Optimizer) -> bool | None:
    """A clearing clears all gradients of the optimizer; None: it may, or some of them."""
    target = event.target
    if target is optimizer:
        return True
    if isinstance(target, Optimizer):
        return False if disjoint(target, optimizer) else None
    if isinstance(target, Model):
        if not optimizer.models:
            return None
        if optimizer.complete and not optimizer.tensors:
            if all(target.covers(held) for held in optimizer.models):
                return True
            return None if has_parameters_of(optimizer, target) else False
    return None


def is_whole(event: ZeroGrad) -> bool:
    """It leaves nothing out: by hand it is the whole body of a loop over `model.parameters()`, or
    over the parameters of all of an optimizer's groups."""
    if not event.by_hand:
        return True
    if event.guards or not isinstance(event.target, Model):
        return False
    around = [turn.loop for turn in event.turns]
    inner = around[-1:]
    if inner and re.fullmatch(r"\w+\['params'\]", str(inner[0].over)):
        inner = around[-2:]
    whole = _GROUPS if len(inner) == 2 else _PARAMETERS
    return (
        bool(inner)
        and all(loop.lines == 1 and loop.place.function == event.place.function for loop in inner)
        and whole.fullmatch(str(inner[0].over)) is not None
    )


def clips(event: Clip, optimizer: Optimizer) -> bool | None:
    """A clipping bears on gradients of the optimizer."""
    if event.optimizer is not None:
        if event.optimizer is optimizer:
            return True
        return False if disjoint(event.optimizer, optimizer) else None
    if any(has_parameters_of(optimizer, model) for model in event.models):
        return True
    if event.complete and optimizer.complete and optimizer.models and not optimizer.tensors:
        return False
    return None


def is_clipping(event: Clip) -> bool:
    """It is not a call that only measures."""
    limit = event.limit
    return not (isinstance(limit, (int, float)) and (math.isinf(limit) or limit >= NO_LIMIT))


@lru_cache(maxsize=4096)
def _by_name(callee: str) -> tuple[bool, bool]:
    """Whether the name of a function says that it leaves gradients as they are, and whether it says
    that it may change them."""
    leaves_alone = LEAVES_ALONE.search(callee) and not _TOUCHES.search(callee)
    return bool(leaves_alone), bool(_MEDDLES.search(callee))


def may_change_gradients(event: Event, optimizer: Optimizer) -> bool:
    """Code that cannot be read may have changed the optimizer's gradients here."""
    if not isinstance(event, EscapedToUnknown):
        return False
    leaves_alone, meddles = _by_name(event.callee)
    if leaves_alone:
        return False
    if any(thing is optimizer for thing in event.things):
        return True
    return meddles and any(
        isinstance(thing, Model) and (has_parameters_of(optimizer, thing) or not optimizer.models)
        for thing in event.things
    )


def supplies(event: Event, optimizer: Optimizer) -> bool:
    """After it the optimizer's gradients may be there."""
    if isinstance(event, Backward):
        return feeds(event, optimizer) is not False
    if isinstance(event, GradEdited):
        return event.how in ("set", "reduced")
    return may_change_gradients(event, optimizer)


def relieves(event: Event, optimizer: Optimizer) -> bool:
    """It may have cleared or replaced the optimizer's gradients."""
    if isinstance(event, ZeroGrad):
        return clears(event, optimizer) is not False
    if isinstance(event, GradEdited):
        return event.how not in ("clipped", "reduced")
    return may_change_gradients(event, optimizer)


def is_edit(event: Event) -> bool:
    """Gradients are changed by hand, and not merely clipped."""
    return isinstance(event, GradEdited) and event.how != "clipped"


# ------------------------------------------------------------------------------- time and place


def micro(event: Event) -> Turn | None:
    """The turn that one micro-batch is: of the innermost loop over batches, or of the innermost
    loop at all where none is known for one."""
    turns = event.turns
    for turn in reversed(turns):
        if turn.loop.kind == "batches":
            return turn
    return turns[-1] if turns else None


def same_turn(one: Event, other: Event) -> bool:
    """They belong to the same micro-batch; outside of loops, to the same call."""
    mine, yours = micro(one), micro(other)
    if mine is None or yours is None:
        return mine is yours and one.stack[:1] == other.stack[:1]
    return mine == yours


def inside(event: Event, turn: Turn | None) -> bool:
    """It happened in a loop, in whichever turn."""
    return turn is not None and any(each.loop is turn.loop for each in event.turns)


def side_by_side(one: Event, other: Event) -> bool:
    """Their statements are in the same block: one can be moved to the other."""
    return (
        one.stack == other.stack
        and one.turns == other.turns
        and one.guards == other.guards
        and one.windows == other.windows
        and one.place.path == other.place.path
        and one.place.function == other.place.function
    )


def accumulates_by_option(step: OptimizerStep) -> bool:
    """Its windows have one micro-batch, unless an option says more."""
    return bool(step.windows) and all(each.by_default == 1 for each in step.windows)


def backwards(events: list[Event]) -> Iterator[Backward]:
    return (event for event in events if isinstance(event, Backward))


def named(optimizer: Optimizer, spelled: str = "") -> str:
    """How to speak of an optimizer."""
    name = spelled or optimizer.name
    return f"`{name}`" if name else "the optimizer"


def scaling(scaler: Scaler | None) -> bool:
    """It scales, at least when the option that switches it is on."""
    return scaler is not None and scaler.enabled is not False
