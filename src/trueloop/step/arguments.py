"""Whether a `Step` can be made of what it is given; each function raises `ConfigError` if not."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from trueloop import _options, ranks
from trueloop.errors import ConfigError, DataError, DeviceError
from trueloop.records import batch_counts, is_empty
from trueloop.step.schedule import Schedule

# Layers that behave differently in eval mode, so that training there is surely a mistake.
_MODAL = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)

NO_GRAPH = (
    "the loss does not depend on the model's parameters, so nothing can be trained by it: compute "
    "it from model(inputs), without .detach(), .item() or torch.no_grad()"
)
_CALL = "Step(model, optimizer, loss_fn)"
_LOSS_FN = "lambda model, batch: F.mse_loss(model(batch[0]), batch[1])"
_OUTPUTS = tuple(
    "input inputs logit logits o out output outputs pred prediction predictions preds scores x "
    "y_hat y_pred yhat".split()
)
_TARGETS = ("label", "labels", "t", "target", "targets", "truth", "y", "y_true")
"""How the two arguments of a criterion are called, where `loss_fn` takes a model and a batch."""
NO_GRAPH = (
    "the loss does not depend on the model's parameters, so nothing can be trained by it: compute "
    "it from model(inputs), without .detach(), .item() or torch.no_grad()"
)


def check_model(model: Any) -> None:
    """A module whose parameters have shapes."""
    if isinstance(model, (list, tuple)) and all(isinstance(part, nn.Module) for part in model):
        raise ConfigError(
            f"the model is {_options.kind_of(model)} of modules: write nn.ModuleList([...]) around "
            "them, or make one Step of each"
        )
    for name, parameter in _options.model(model, _CALL).named_parameters():
        if is_lazy(parameter):
            raise ConfigError(
                f"the parameter {name!r} has no shape yet: run one batch through the model, "
                "model(inputs), before you make the optimizer and the step"
            )


def refuse_meta() -> NoReturn:
    """Of a model on a device where nothing can be computed."""
    raise DeviceError(
        "the model is on the device meta, where parameters have no values: write "
        "model.to_empty(device='cpu') and load its weights, or make it on the CPU"
    )


def check_ranks(made_for: int) -> None:
    """The process group is the one that the step was made in."""
    if ranks.world_size() != made_for:
        raise ConfigError(
            f"the step was made with {made_for} rank{'s' if made_for > 1 else ''}, and there are "
            f"{ranks.world_size()} now: make the process group first, and then the step"
        )


def check_flags(last: Any, stand_in: Any) -> None:
    """The arguments of a call of the step: `last` a bool or None, `stand_in` a bool."""
    _options.flag("stand_in", stand_in)
    if last is not None:
        _options.flag("last", last)


def check_mode(model: nn.Module) -> None:
    """Not wholly in eval mode, if a layer of it behaves differently there."""
    if model.training:
        return
    modules = list(model.modules())
    if any(m.training for m in modules) or not any(isinstance(m, _MODAL) for m in modules):
        return
    raise ConfigError(
        "the model is in eval mode, and it has dropout or batch norm: call model.train() before "
        "training"
    )


def checked_optimizers(given: Any) -> tuple[Optimizer, ...]:
    """One optimizer, or a list of several, as a tuple."""
    if not isinstance(given, (list, tuple)) or not any(map(_is_optimizer, given)):
        _check_optimizer(given)
        return (given,)
    for optimizer in given:
        _check_optimizer(optimizer)
    for k, optimizer in enumerate(given):
        if any(optimizer is other for other in given[:k]):
            raise ConfigError(
                f"the list of optimizers has the same {type(optimizer).__name__} twice: give each "
                "once"
            )
    return tuple(given)


def _is_optimizer(given: Any) -> bool:
    parts = ("param_groups", "step", "state_dict")
    return not isinstance(given, type) and all(hasattr(given, part) for part in parts)


def _check_optimizer(optimizer: Any) -> None:
    """An optimizer of torch's kind whose `step` needs no closure."""
    if not _is_optimizer(optimizer):
        raise ConfigError(
            f"the optimizer must be a torch optimizer, not {_options.shown(optimizer)}: "
            + _optimizer_remedy(optimizer)
        )
    if _needs_closure(optimizer):
        refuse_closure(optimizer)


def _optimizer_remedy(given: Any) -> str:
    if isinstance(given, type):
        return f"write {given.__name__}(model.parameters(), lr=...)"
    if isinstance(given, LRScheduler):
        return "give the optimizer that it was made of, and schedule=schedules.from_torch(...)"
    if isinstance(given, nn.Module):
        return f"write {_CALL}, the optimizer second"
    return "write e.g. optimizers.adamw(model, lr=1e-3)"


def _needs_closure(optimizer: Any) -> bool:
    # SAM takes a closure that may be left out, and fails without it.
    if isinstance(optimizer, torch.optim.LBFGS) or hasattr(optimizer, "first_step"):
        return True
    try:
        parameter = inspect.signature(optimizer.step).parameters.get("closure")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.default is inspect.Parameter.empty


def refuse_closure(*optimizers: Any) -> NoReturn:
    """Of an optimizer (or one of several) that evaluates the loss several times per update."""
    kinds = " or ".join(type(optimizer).__name__ for optimizer in optimizers)
    raise ConfigError(
        f"{kinds} evaluates the loss several times per update, which a Step does not: call "
        "optimizer.step(closure) in a loop of your own"
    )


def check_pairs(model: nn.Module, optimizers: Sequence[Any]) -> None:
    """Each optimizer holds parameters of the model, and no two of them the same one."""
    inside = {id(p) for p in model.parameters()}
    owner: dict[int, Any] = {}
    for optimizer in optimizers:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if inside.isdisjoint(id(p) for p in held):
            which = "the optimizer" if len(optimizers) == 1 else type(optimizer).__name__
            raise ConfigError(
                f"{which} has none of the model's parameters: build it from model.parameters() "
                "after the model has its final layers"
            )
        for p in held:
            if owner.setdefault(id(p), optimizer) is not optimizer:
                _refuse_shared(model, p, owner[id(p)], optimizer)


def _refuse_shared(model: nn.Module, parameter: nn.Parameter, *holders: Any) -> NoReturn:
    names = (repr(name) for name, p in model.named_parameters() if p is parameter)
    name = next(names, f"of shape {tuple(parameter.shape)}")
    kinds = " and ".join(type(holder).__name__ for holder in holders)
    raise ConfigError(
        f"the parameter {name} is in two optimizers, {kinds}, and would be updated twice: "
        "give it to one of them"
    )


def check_loss_fn(loss_fn: Any, call: str = _CALL) -> None:
    """A function of (model, batch), and not a criterion of (outputs, targets)."""
    kind = loss_fn if isinstance(loss_fn, type) else type(loss_fn)
    name = getattr(loss_fn, "__name__", kind.__name__)
    is_function_of_torch = str(getattr(loss_fn, "__module__", "")).startswith("torch.nn.functional")
    if issubclass(kind, nn.modules.loss._Loss) or is_function_of_torch:
        made = f"F.{name}" if is_function_of_torch else f"nn.{kind.__name__}()"
        raise ConfigError(
            f"the loss_fn is {_options.shown(loss_fn)}, which takes (outputs, targets): write "
            f"supervised({made})"
        )
    if not callable(loss_fn) or isinstance(loss_fn, Optimizer):
        raise ConfigError(
            f"the loss_fn must be a function of (model, batch), not {_options.shown(loss_fn)}: "
            f"write {call} with loss_fn=supervised(nn.CrossEntropyLoss()), or one of your own"
        )
    if _is_criterion(loss_fn):
        raise ConfigError(
            f"the loss_fn, {_options.shown(loss_fn)}, takes (outputs, targets), and a Step calls "
            "it with (model, batch): write supervised(criterion) around it"
        )
    _options.function("loss_fn", loss_fn, "model, batch", _LOSS_FN)


def _is_criterion(function: Any) -> bool:
    """Whether a function is a criterion, by the names of its arguments."""
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        names = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) > 1 and names[0].lower() in _OUTPUTS and names[1].lower() in _TARGETS


def checked_schedules(given: Any, optimizers: Sequence[Optimizer]) -> tuple[Schedule | None, ...]:
    """The schedule of each optimizer: one for all, or a list with one each."""
    if not isinstance(given, (list, tuple)):
        _check_schedule(given)
        return (given,) * len(optimizers)
    for schedule in given:
        _check_schedule(schedule)
    if len(given) != len(optimizers):
        raise ConfigError(
            f"schedule has {len(given)} entries, and the step has {_optimizers(len(optimizers))}: "
            "write one schedule for all, or a list with one for each (None: its lr stays)"
        )
    return tuple(given)


def _optimizers(count: int) -> str:
    return "1 optimizer" if count == 1 else f"{count} optimizers"


def _check_schedule(schedule: Any) -> None:
    """One of `trueloop.schedules`, made; or None."""
    if schedule is None or isinstance(schedule, Schedule):
        return
    known = {"cosine", "one_cycle", "plateau", "step_decay", "warm_restarts", "warmup_cosine"}
    known.add("warmup_stable_decay")
    name = schedule if isinstance(schedule, str) else getattr(schedule, "__name__", "")
    if isinstance(schedule, LRScheduler):
        tick = "metric" if type(schedule).__name__ == "ReduceLROnPlateau" else "epoch"
        remedy = f"write schedules.from_torch(scheduler, tick='{tick}')"
        if tick == "epoch":
            remedy += ", or tick='update' if it counts updates"
    elif isinstance(schedule, type) and issubclass(schedule, LRScheduler):
        remedy = f"write schedules.from_torch({name}(optimizer, ...), tick='epoch')"
    elif name in known:
        remedy = f"write schedule=schedules.{name}()"
    else:
        remedy = "write e.g. schedule=schedules.cosine()"
    raise ConfigError(f"schedule={_options.shown(schedule)} is not a schedule: {remedy}")


def counted(batch: Any, position: int, epoch: int, stand_in: bool) -> tuple[int, int]:
    """How many samples a batch has, 1 if that cannot be seen, and how many tokens; a stand-in has
    none. `DataError` for a batch without samples."""
    if stand_in:
        return 0, 0
    samples, tokens = batch_counts(batch)
    if samples == 0 and is_empty(batch):
        raise DataError(
            f"batch {position} of epoch {epoch + 1} has no samples, so its mean loss is a mean "
            "over nothing: drop empty batches before step(batch)"
        )
    return samples or 1, tokens
