"""Learning-rate schedules: torch's, those of transformers and timm, and their steps.

An argument that was not given has torch's default.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from trueloop.doctor.model.drawn_rates import only_draws
from trueloop.doctor.model.events import Made, SchedulerStep
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Optimizer, Scheduler, Size
from trueloop.doctor.static.interpreter.calls import enter
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passed_arguments import (
    where_variable_passed,
    with_known_index,
)
from trueloop.doctor.static.interpreter.stub_lookup import MISSING, LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    Function,
    Instance,
    Sequence,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.options import option_default, options_of
from trueloop.doctor.static.stubs.rate_functions import counts_on, length_of_function
from trueloop.doctor.static.stubs.watched_scores import origins_of_score

_WARMUP = ("num_warmup_steps", "num_training_steps")
SIGNATURES: dict[str, tuple[str, ...]] = {
    "LambdaLR": ("lr_lambda",),
    "MultiplicativeLR": ("lr_lambda",),
    "StepLR": ("step_size", "gamma"),
    "MultiStepLR": ("milestones", "gamma"),
    "ConstantLR": ("factor", "total_iters"),
    "LinearLR": ("start_factor", "end_factor", "total_iters"),
    "ExponentialLR": ("gamma",),
    "SequentialLR": ("schedulers", "milestones"),
    "PolynomialLR": ("total_iters", "power"),
    "CosineAnnealingLR": ("T_max", "eta_min"),
    "ReduceLROnPlateau": ("mode", "factor", "patience"),
    "CyclicLR": ("base_lr", "max_lr", "step_size_up", "step_size_down"),
    "CosineAnnealingWarmRestarts": ("T_0", "T_mult", "eta_min"),
    "OneCycleLR": (
        "max_lr",
        "total_steps",
        "epochs",
        "steps_per_epoch",
        "pct_start",
        "anneal_strategy",
        "cycle_momentum",
        "base_momentum",
        "max_momentum",
        "div_factor",
        "final_div_factor",
    ),
    "get_constant_schedule_with_warmup": _WARMUP[:1],
    "get_linear_schedule_with_warmup": _WARMUP,
    "get_cosine_schedule_with_warmup": _WARMUP,
    "get_cosine_with_hard_restarts_schedule_with_warmup": _WARMUP,
    "get_polynomial_decay_schedule_with_warmup": _WARMUP,
    "get_inverse_sqrt_schedule": _WARMUP[:1],
    "get_scheduler": _WARMUP,
    "WarmupLinearSchedule": ("warmup_steps", "num_training_steps"),
    "WarmupCosineSchedule": ("warmup_steps", "num_training_steps"),
}
"""Kind -> its arguments after the optimizer, in order."""
_DEFAULTS: dict[str, dict[str, Any]] = {
    "StepLR": {"gamma": 0.1},
    "MultiStepLR": {"gamma": 0.1},
    "ConstantLR": {"factor": 1 / 3, "total_iters": 5},
    "LinearLR": {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5},
    "PolynomialLR": {"total_iters": 5, "power": 1.0},
    "ReduceLROnPlateau": {"mode": "min"},
    "CyclicLR": {"step_size_up": 2000},
}
_LENGTHS = frozenset(
    "step_size total_iters T_max T_0 step_size_up step_size_down total_steps epochs steps_per_epoch"
    " num_warmup_steps num_training_steps warmup_steps".split()
)
_STEPS = frozenset({"step", "step_update"})
_OTHER_NAMES = {"t_total": "num_training_steps"}


@calls("torch.optim.lr_scheduler.*", "torch.optim.swa_utils.SWALR")
def _scheduler(call: LibraryCall) -> Value:
    kind = call.name.rpartition(".")[2]
    if not kind[:1].isupper():
        return call.unknown(*call.args)
    made = _made(call, kind)
    # What torch does not have is of a fork of it, with clocks of its own.
    made.known = kind in SIGNATURES or kind in _OTHERS_OF_TORCH
    return made


_OTHERS_OF_TORCH = frozenset({"ChainedScheduler", "LRScheduler", "_LRScheduler", "SWALR"})
_TRANSFORMERS = tuple(kind for kind in SIGNATURES if kind.startswith("get_"))


@calls(
    *(f"transformers.{kind}" for kind in _TRANSFORMERS),
    *(f"transformers.optimization.{kind}" for kind in _TRANSFORMERS),
    *(f"diffusers.optimization.{kind}" for kind in _TRANSFORMERS),
    "transformers.get_constant_schedule", "transformers.optimization.get_constant_schedule",
    "pytorch_transformers.WarmupLinearSchedule", "pytorch_transformers.WarmupCosineSchedule",
)  # fmt: skip
def _with_warmup(call: LibraryCall) -> Value:
    kind = call.name.rpartition(".")[2]
    if kind == "get_scheduler":  # its first argument names one of the others
        name = call.kwargs.pop("name", None) or (call.args.pop(0) if call.args else None)
        made = _made(call, kind, first=1)
        made.arguments["name"] = constant(name)
        return made
    return _made(call, kind)


@calls("timm.scheduler.*")
def _of_timm(call: LibraryCall) -> Value:
    """timm's count epochs and updates themselves: they are given the number at each step."""
    short = call.name.rpartition(".")[2]
    made = Scheduler(kind=f"timm.{short}", made=call.place, optimizer=_optimizer(call))
    made.stepped_names = _stepped_names(call.machine)
    if short.startswith("create_scheduler"):
        return Sequence("tuple", [made, call.unknown(*call.args, *call.kwargs.values())])
    if not short[:1].isupper():
        return call.unknown(*call.args)
    made.known = True
    call.emit(Made, thing=made)
    return made


def _made(call: LibraryCall, kind: str, first: int = 0) -> Scheduler:
    made = Scheduler(kind=kind, made=call.place, known=True)
    fill(call, made, first=first)
    # What comes after the listed ones is `last_epoch`.
    begins_later = len(call.args) > 1 + len(SIGNATURES.get(kind, call.args))
    begins_later |= kind == "LambdaLR" and counts_on(call.machine, call.arg(1, "lr_lambda"))
    if not (call.open or begins_later or _is_brought_forward(call.machine)):
        made.first_count = 0
    call.emit(Made, thing=made, dropped=not call.result_used)
    return made


def fill(call: LibraryCall, made: Scheduler, *, first: int = 0) -> None:
    """Note what a schedule was made with; `first`: arguments that were taken off the front."""
    made.optimizer = _optimizer(call)
    for position, name in enumerate(SIGNATURES.get(made.kind, ()), 1):
        value = call.arg(position, name, MISSING)
        for other, real in _OTHER_NAMES.items():
            if real == name and other in call.kwargs:
                value = call.kwargs[other]
        if value is MISSING:
            made.arguments[name] = None if call.open else _DEFAULTS.get(made.kind, {}).get(name)
            continue
        made.arguments[name] = _argument(call, name, value)
        made.option_defaults[name] = option_default(call.machine, value)
        made.written[name] = _as_written(call, position + first, name)
    inner = call.arg(0 if made.kind == "ChainedScheduler" else 1, "schedulers")
    if isinstance(inner, Sequence):
        made.schedules = [each for each in inner.values if isinstance(each, Scheduler)]
    if made.kind == "LambdaLR":
        made.decay = _base_of_power(call.arg(1, "lr_lambda"))
        found = length_of_function(call.machine, call.arg(1, "lr_lambda"))
        if found is not None:
            made.arguments["lr_lambda"] = _size(call, found.steps)
            made.written["lr_lambda"] = found.written
            made.made = where_variable_passed(call.machine, call.node, found.written)
    made.options = options_of(call.machine)
    made.stepped_names = _stepped_names(call.machine)


def _is_brought_forward(m: Interpreter) -> bool:
    """The program loads the state of some schedule, or sets a position."""
    for module in {id(each): each for each in m.modules}.values():
        for name, used in module.survey.uses.items():
            if "load_state_dict" in used and _SCHEDULE.search(name):
                return True
        if sets_position(module.tree):
            return True
    return False


_SCHEDULE = re.compile(r"sch|lr|warm|decay|cos|anneal|policy", re.I)
_POSITIONS = frozenset({"last_epoch", "_step_count", "initial_lr", "__dict__", "base_lrs"})


@once
def sets_position(tree: ast.AST) -> bool:
    """A schedule is given a position somewhere in a file."""
    return any(
        getattr(node, "arg", getattr(node, "attr", getattr(node, "value", None))) in _POSITIONS
        for node in walk(tree)
        if isinstance(node, ast.keyword | ast.Attribute)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    )


def _stepped_names(m: Interpreter) -> frozenset[str]:
    """The names of which `step` is read or called, or is in a comment, in the files of the active
    functions."""
    surveys = [module.survey for module in {id(each): each for each in m.modules}.values()]
    called = frozenset(
        name
        for survey in surveys
        for name, used in survey.uses.items()
        if not used.isdisjoint(_STEPS)
    )
    return called.union(*(survey.left_out | survey.stepped for survey in surveys)) - {""}


def _base_of_power(value: Value | None) -> float | None:
    """The `b` of `lambda epoch: b**epoch`."""
    node = value.node if isinstance(value, Function) else None
    if not isinstance(node, ast.Lambda) or not isinstance(node.body, ast.BinOp):
        return None
    base, power = node.body.left, node.body.right
    own = {each.arg for each in node.args.args}
    if isinstance(node.body.op, ast.Pow) and isinstance(power, ast.Name) and power.id in own:
        return base.value if isinstance(base, ast.Constant) and type(base.value) is float else None
    return None


def _optimizer(call: LibraryCall) -> Optimizer | None:
    found = call.arg(0, "optimizer")
    if isinstance(found, Sequence):  # a `ChainedScheduler` is given its schedules first
        inner = [each.optimizer for each in found.values if isinstance(each, Scheduler)]
        return inner[0] if inner else None
    if not isinstance(found, Optimizer):
        found = call.arg(1)  # timm's `create_scheduler(args, optimizer)`
    return found if isinstance(found, Optimizer) else None


def _argument(call: LibraryCall, name: str, value: Value) -> object:
    if name == "milestones":
        if isinstance(value, Sequence) and not value.open:
            return [_size(call, each) for each in value.values]
        return None
    return _size(call, value) if name in _LENGTHS else constant(value)


def _size(call: LibraryCall, value: Value) -> Size:
    if isinstance(value, Constant) and value.loop_variant:
        return None
    return call.machine.size(value)


def _as_written(call: LibraryCall, position: int, name: str) -> str:
    node = call.node
    if not isinstance(node, ast.Call):
        return ""
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    other = next((old for old, real in _OTHER_NAMES.items() if real == name), name)
    given = named.get(name) or named.get(other)
    if given is None and position < len(node.args):
        given = node.args[position]
    return "" if given is None else written(given)


# ------------------------------------------------------------------------------- its methods


@methods(Scheduler, "__init__")
def _super_init(call: LibraryCall) -> Value:
    """A schedule of the user's own hands its arguments up. A class that torch does not have may
    step the schedules that it gets."""
    made: Scheduler = call.receiver
    if made.kind not in SIGNATURES and made.kind not in _OTHERS_OF_TORCH:
        call.expose(*call.args, *call.kwargs.values())
    fill(call, made)
    return NONE


_KEEPS = re.compile(r"check_?point|ckpt|saver|logger|writer|recorder", re.I)
"""Classes that write what they get to files, by their name."""


@methods(Instance, "__init__")
def _foreign_init(call: LibraryCall) -> Value:
    """A class of an unread library may be a schedule itself, which steps those that it gets; not
    one that keeps them for its files."""
    bases = call.receiver.cls.dotted_bases()
    if bases and not any(_KEEPS.search(each.rpartition(".")[2]) for each in bases):
        call.expose(*(each for each in [*call.args, *call.kwargs.values()] if _is_schedule(each)))
    return NONE


def _is_schedule(value: Value) -> bool:
    return isinstance(value, Scheduler)


@methods(Scheduler, "step", "step_update")
def _step(call: LibraryCall) -> Value:
    scheduler: Scheduler = call.receiver
    cls = scheduler.cls
    own = cls.lookup(call.name) if isinstance(cls, Class) else None
    if isinstance(own, Function) and not _is_super(call):
        return enter(call.machine, own, [scheduler, *call.args], call.kwargs, call.node)
    if call.machine.calls:
        scheduler.only_drawn |= _only_draws(call.machine.calls[-1][1])
    metric = next(iter([*call.args, *call.kwargs.values()]), None)
    if isinstance(metric, Constant) and metric.value is None:
        metric = None
    name, before = "", list[str]()
    if metric is not None and isinstance(call.node, ast.Call):
        nodes = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
        given = [with_known_index(call.machine, each) for each in nodes[:1]]
        earlier = origins_of_score(call.machine, given[0]) if given else []
        name, *before = [*map(written, [*given, *earlier])] or [""]
    if metric is None and call.open:
        metric = call.unknown()
    call.emit(
        SchedulerStep,
        scheduler=scheduler,
        metric=metric,
        metric_name=name,
        metric_origins=tuple(before),
    )
    return NONE


_only_draws = once(only_draws)


def _is_super(call: LibraryCall) -> bool:
    value = getattr(getattr(call.node, "func", None), "value", None)
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"


@methods(Scheduler, "get_last_lr", "print_lr")
def _last_lr(call: LibraryCall) -> Value:
    found = Unknown(f"{call.machine.key(call.receiver)}.get_last_lr()")
    found.loop_variant = bool(call.machine.turns)
    return found


@methods(Scheduler, "get_lr", "_get_closed_form_lr")
def _get_lr(call: LibraryCall) -> Value:
    """Its value is put into the optimizer by hand, as likely as not."""
    call.receiver.read_by_hand = True
    return call.unknown()
