"""Taking up a saved state: it is compared with what is there before anything changes, and what a
load that is refused half-way has changed is put back."""

from __future__ import annotations

import copy
import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from trueloop.errors import RunError, ScheduleError
from trueloop.shapes import COUNT, NUMBERS, Anything, DictOf, ListOf, OneOf, Where

MODEL = DictOf(str, OneOf(NUMBERS, Anything))
"""A model's state dict: tensors, and what modules add as their extra state."""
OPTIMIZER = {"state": DictOf(object, Anything), "param_groups": ListOf({"params": ListOf(COUNT)})}
GRADIENTS = DictOf(str, Where(Tensor, lambda t: t.device.type != "meta", "a tensor with values"))

# Where and how an optimizer computes, not what.
_OF_THE_DEVICE = frozenset(("foreach", "fused", "capturable", "differentiable"))
# What later versions of torch add to a group, and make up for where it is missing.
_MADE_UP_FOR = _OF_THE_DEVICE | {"maximize", "amsgrad", "nesterov", "decoupled_weight_decay"}


def refuse(why: str) -> NoReturn:
    """Raise the `RunError` for a state of a different model or optimizer."""
    raise RunError(
        f"the checkpoint does not fit this model and optimizer ({why}): build them as they were"
    )


def check_model(model: nn.Module, saved: Mapping[str, Any]) -> None:
    """Raise `RunError` unless `saved` has the model's names, shapes and dtypes."""
    here = model.state_dict()
    for name, mine in here.items():
        if name not in saved:
            refuse(f"it has no {name!r}")
        there = saved[name]
        if not isinstance(mine, Tensor) or is_lazy(mine):
            continue
        if not isinstance(there, Tensor):
            refuse(f"its {name!r} is of type {type(there).__name__}, not a tensor")
        if mine.dtype != there.dtype:
            raise RunError(
                f"the checkpoint has {name!r} in {there.dtype}, and the model in {mine.dtype}: "
                f"build the model as it was, or convert: load_checkpoint(..., dtype={mine.dtype})"
            )
        if mine.shape != there.shape:
            refuse(f"{name!r} has the shape {tuple(there.shape)}, here {tuple(mine.shape)}")
    for name in saved:
        if name not in here:
            refuse(f"it has {name!r}, which the model does not have")


def check_gradients(
    names: Sequence[str], parameters: Sequence[Tensor], saved: Mapping[str, Tensor]
) -> None:
    """Raise `RunError` unless each gradient of an open window belongs to a parameter."""
    here = dict(zip(names, parameters, strict=True))
    for name, gradient in saved.items():
        if name not in here:
            refuse(f"it has a gradient of {name!r}, which is not in the optimizer")
        if gradient.shape != here[name].shape or gradient.dtype != here[name].dtype:
            refuse(f"the gradient of {name!r} is {gradient.dtype} {tuple(gradient.shape)}")


def check_optimizer(optimizer: Optimizer, saved: Mapping[str, Any], of: str) -> None:
    """Raise `RunError` unless `saved` has the optimizer's groups, and entries that fit them; `of`
    names the optimizer."""
    here, there = optimizer.param_groups, saved["param_groups"]
    sizes = [[len(group["params"]) for group in groups] for groups in (there, here)]
    if sizes[0] != sizes[1]:
        refuse(f"its parameter groups have {sizes[0]} parameters, and these {sizes[1]}")
    numbers = [number for group in there for number in group["params"]]
    if len(set(numbers)) != len(numbers):
        refuse("its parameter groups have a parameter twice")
    for k, (mine, theirs) in enumerate(zip(here, there, strict=True)):
        _check_group(mine, theirs, f"{of}.param_groups[{k}]")
    # Those of other libraries keep what they like: their own load_state_dict knows.
    if type(optimizer).__module__.startswith("torch.optim"):
        for mine, theirs in zip(here, there, strict=True):
            _check_entries(optimizer, mine["params"], theirs, saved["state"], of)


def _check_group(mine: Mapping[str, Any], theirs: Mapping[str, Any], of: str) -> None:
    for name, value in mine.items():
        if name == "params" or (name in _MADE_UP_FOR and name not in theirs):
            continue
        if name not in theirs:
            refuse(f"{of} has no {name!r}")
        is_open = theirs[name] is None and isinstance(value, bool) and name not in _OF_THE_DEVICE
        if is_open or _sort(value) != _sort(theirs[name]):
            refuse(f"{of}.{name} is of type {type(theirs[name]).__name__}")


def _sort(value: Any) -> Any:
    """The kind of an option: a number may be a scalar tensor, a switch may be left open."""
    if value is None or isinstance(value, bool):
        return "switch"
    if isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.numel() == 1):
        return "number"
    if isinstance(value, (list, tuple)):
        return [_sort(part) for part in value]
    return type(value)


def _check_entries(
    optimizer: Optimizer,
    parameters: Sequence[Tensor],
    group: Mapping[str, Any],
    saved: Mapping[Any, Any],
    of: str,
) -> None:
    """The state that the optimizer keeps of each parameter, beside the state of one like it after
    an update with the group's options."""
    examples: dict[int, dict[str, Any]] = {}
    for parameter, number in zip(parameters, group["params"], strict=True):
        if parameter.ndim not in examples:
            examples[parameter.ndim] = _entries_after_an_update(optimizer, parameter, group)
        entries, slot = saved.get(number), f"{of}.state[{number}]"
        if entries is None:
            continue  # not updated yet
        if not isinstance(entries, dict):
            refuse(f"{slot} is of type {type(entries).__name__}")
        for name, example in examples[parameter.ndim].items():
            # Without a buffer, SGD begins it with the next update.
            begins = type(optimizer) is torch.optim.SGD and entries.get(name) is None
            if entries and not begins:
                _check_entry(entries.get(name), example, parameter, f"{slot}.{name}")


def _entries_after_an_update(
    optimizer: Optimizer, parameter: Tensor, group: Mapping[str, Any]
) -> dict[str, Any]:
    """By name: "like", "number" or "tensor"; refuses options that the optimizer refuses."""
    kind = type(optimizer)
    if kind is torch.optim.SparseAdam:
        return {"step": "number", "exp_avg": "like", "exp_avg_sq": "like"}
    known = inspect.signature(kind.__init__).parameters
    options: dict[str, Any] = {
        name: value.item() if isinstance(value, Tensor) else value
        for name, value in group.items()
        if name in known and name != "params" and name not in _OF_THE_DEVICE
    }
    small = torch.ones((2, 3, 2, 2, 2, 2)[: parameter.ndim], requires_grad=True)
    small.grad = torch.ones_like(small)
    try:
        trial = kind([small], **options)
        trial.step()
    except Exception as error:  # its own checks of its options, and then its arithmetic
        refuse(f"its {kind.__name__}: {_one_line(error)}")
    return {
        name: "number"
        if not isinstance(entry, Tensor) or (not entry.ndim and parameter.ndim)
        else ("like" if entry.shape == small.shape else "tensor")
        for name, entry in trial.state[small].items()
    }


def _check_entry(entry: Any, example: str, parameter: Tensor, of: str) -> None:
    if entry is None:
        refuse(f"{of} is missing")
    if example == "number":
        one = entry.numel() == 1 if isinstance(entry, Tensor) else type(entry) in (int, float)
        if not one or not 0 <= float(entry) < math.inf:
            refuse(f"{of} is not a number of 0 or more")
    elif not isinstance(entry, Tensor) or entry.layout is not torch.strided or entry.is_quantized:
        refuse(f"{of} is not a dense tensor")
    elif entry.is_floating_point() != parameter.is_floating_point():
        refuse(f"{of} is {entry.dtype}")
    elif example == "like" and entry.shape != parameter.shape:
        refuse(f"{of} has the shape {tuple(entry.shape)}, not {tuple(parameter.shape)}")


def load_optimizer(optimizer: Optimizer, saved: dict[str, Any], of: str = "step.optimizer") -> None:
    """Let it load `saved`; `RunError`, with its name `of`, where that is not a state of it."""
    check_optimizer(optimizer, saved, of)
    try:
        optimizer.load_state_dict(saved)
    except Exception as error:  # of the user's own optimizer
        refuse(_one_line(error))
    _take_strides_of_parameters(optimizer)


def _take_strides_of_parameters(optimizer: Optimizer) -> None:
    """Lay out each entry of a parameter's shape as the parameter is: a checkpoint of many ranks is
    read in rows, and fused optimizers walk through both in the order of memory."""
    for parameter in (p for group in optimizer.param_groups for p in group["params"]):
        slots = optimizer.state.get(parameter, {})
        for name, slot in slots.items():
            if (
                type(slot) is not Tensor
                or slot.shape != parameter.shape
                or hasattr(parameter, "to_local")
            ):
                continue
            if slot.stride() != parameter.stride():
                slots[name] = torch.empty_like(parameter, dtype=slot.dtype, device=slot.device)
                slots[name] = slots[name].detach().copy_(slot)


def load_model(model: nn.Module, saved: Mapping[str, Any]) -> None:
    """Let it load `saved`; `RunError` where a module of it does not."""
    try:
        model.load_state_dict(saved)
    except Exception as error:  # of a module that loads in its own way
        refuse(_one_line(error))


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def keep_model(model: nn.Module) -> Callable[[], None]:
    """Copy a state dict into the model; returns a function that undoes it, bit for bit."""
    live = model.state_dict()
    tensors = {n: t for n, t in live.items() if isinstance(t, Tensor) and not is_lazy(t)}
    copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    extra = {name: copy.deepcopy(part) for name, part in live.items() if name not in tensors}

    @torch.no_grad()
    def put_back() -> None:
        for name, tensor in tensors.items():
            tensor.copy_(copies[name])
        if extra:
            model.load_state_dict({**copies, **extra}, strict=False)

    return put_back


def keep_optimizer(optimizer: Optimizer) -> Callable[[], None]:
    """Remember the optimizer's state and options; returns what puts them back.

    torch's `load_state_dict` gives the optimizer new ones; a schedule that is built writes into
    the options.
    """
    state, groups = optimizer.state, optimizer.param_groups
    options = [
        {n: v.clone() if n != "params" and isinstance(v, Tensor) else v for n, v in group.items()}
        for group in groups
    ]

    def put_back() -> None:
        optimizer.state, optimizer.param_groups = state, groups
        for group, kept in zip(groups, options, strict=True):
            group.clear()
            group.update(kept)

    return put_back


# Lengths by which torch's schedulers divide.
_LENGTHS = frozenset(("T_max", "T_0", "T_i", "T_mult", "step_size", "total_steps", "total_iters"))


def load_scheduler(scheduler: LRScheduler, state: dict[str, Any]) -> None:
    """Let it load `state`; `RunError` for the state of a different one."""
    if type(scheduler).__module__.startswith(("torch.optim.", "trueloop.")):
        _check_scheduler(scheduler, state)
    try:
        scheduler.load_state_dict(state)
    except ScheduleError:  # of our own: the two are not of one curve
        raise
    except Exception as error:  # of the user's own scheduler
        raise RunError(
            f"the schedule does not take the state in the checkpoint ({_one_line(error)}): build "
            "it as in the saved run"
        ) from error


def keep_scheduler(scheduler: LRScheduler) -> Callable[[], None]:
    """Remember where the scheduler is; returns what puts it back there."""
    parts = [scheduler, *getattr(scheduler, "_schedulers", ())]
    kept = [keep_attributes(part) for part in parts]

    def put_back() -> None:
        for part in kept:
            part()

    return put_back


def keep_attributes(thing: object) -> Callable[[], None]:
    """Remember the attributes of `thing`; returns what puts them back."""
    attributes = dict(vars(thing))

    def put_back() -> None:
        vars(thing).clear()
        vars(thing).update(attributes)

    return put_back


def _check_scheduler(scheduler: LRScheduler, state: Mapping[str, Any]) -> None:
    """torch's schedulers take any attributes, and would use them at the next step."""
    if why := _unlike(scheduler.state_dict(), state, "step.schedule"):
        refuse(why)
    for name in state:
        if callable(getattr(type(scheduler), name, None)):
            refuse(f"step.schedule.{name} would replace a method")


def _unlike(here: Any, there: Any, path: str) -> str | None:
    """Where `there` is not a value of the same kind as `here`."""
    kind = f"{path} is of type {type(there).__name__}"
    if isinstance(here, (bool, str)):
        if type(there) is not type(here):
            return kind
        same = here == there or isinstance(here, bool)
        return None if same else f"{path} is {there!r}, here {here!r}"
    if isinstance(here, (int, float, Tensor)):
        return _unlike_number(here, there, path)
    if isinstance(here, Counter):
        whole = isinstance(there, dict) and all(type(n) is int for n in [*there, *there.values()])
        return None if whole else kind
    if isinstance(here, dict):
        if not isinstance(there, dict):
            return kind
        missing = (n for n in here if n not in there and (n == "_last_lr" or n[:1] != "_"))
        if name := next(missing, None):
            return f"{path}.{name} is missing"
        found = (_unlike(here[n], there[n], f"{path}.{n}") for n in here if n in there)
        return next(filter(None, found), None)
    if isinstance(here, (list, tuple)):
        if not isinstance(there, (list, tuple)):
            return kind
        if len(there) != len(here):
            return f"{path} has {len(there)} entries, not {len(here)}"
        found = (_unlike(a, b, f"{path}[{k}]") for k, (a, b) in enumerate(zip(here, there)))  # noqa: B905
        return next(filter(None, found), None)
    if here is None:
        return None if isinstance(there, (bool, int, float, dict, type(None))) else kind
    return None


def _unlike_number(here: Any, there: Any, path: str) -> str | None:
    if isinstance(there, Tensor) and there.numel() == 1:
        there = there.item()
    if type(there) not in (int, float) or (type(here) is int and type(there) is float):
        return f"{path} is of type {type(there).__name__}"
    if math.isnan(there) or (math.isinf(there) and math.isfinite(here)):
        return f"{path} is {there}"
    least = 1 if path.rpartition(".")[2] in _LENGTHS and here > 0 else 0
    if here >= 0 and there < least:
        return f"{path} is {there}"
    return None


# What of a scheduler's state moves with the run; all else is the curve.
_PROGRESS = frozenset(
    ("last_epoch", "T_cur", "T_i", "best", "num_bad_epochs", "cooldown_counter", "last_lr")
)


def same_curve(a: Any, b: Any) -> bool:
    """Whether two states of a schedule are of one curve, at whatever place on it."""
    if isinstance(a, dict) and isinstance(b, dict):
        names = {n for n in {**a, **b} if n not in _PROGRESS and str(n)[:1] != "_"}
        # A sequence's parts and its joints are private attributes of torch's.
        names |= {"_schedulers", "_milestones", "_schedule_phases"} & ({*a} | {*b})
        return all(n in a and n in b and same_curve(a[n], b[n]) for n in names)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same_curve, a, b))
    return bool(a == b)
