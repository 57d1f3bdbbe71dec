"""Wrong calls of `Step`, `fit`, `evaluate` and `predict`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from wrong_calls import Wrong, check

import trueloop
from documents import is_shown, shown
from trueloop import Feed, Step, evaluate, fit, losses, metrics, optimizers, predict, schedules
from trueloop.errors import (
    ConfigError,
    DataError,
    LossError,
    NonFiniteError,
    RunError,
    ScheduleError,
)

NAN, INF = float("nan"), float("inf")
X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
Y = X.sum(1, keepdim=True)
MODEL = nn.Linear(3, 1)
SGD = torch.optim.SGD(MODEL.parameters(), lr=0.1)
LOSS = trueloop.supervised(nn.MSELoss())


class Sharp(torch.optim.SGD):
    """As SAM is written: a closure that may be left out, and is needed."""

    def first_step(self) -> None: ...


class Asserts(torch.optim.SGD):
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is not None, "requires closure, but it was not provided"


class Needs(torch.optim.SGD):
    def step(self, closure: Any) -> None:  # type: ignore[override]
        ...


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([(X[0], Y[0])] * 4)


def step(loss_fn: Any = LOSS, **options: Any) -> Step:
    model = nn.Linear(3, 1)
    return Step(model, optimizers.sgd(model, 0.01), loss_fn, **options)


def made(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: Step(*args, **options)


def option(**options: Any) -> Callable[[], Any]:
    return lambda: step(**options)


def planned(epochs: Any, batches: Any = 3) -> Callable[[], Any]:
    return lambda: step().plan(epochs=epochs, batches=batches)


def returned(value: Callable[[torch.Tensor], Any]) -> Callable[[], Any]:
    """A step of a loss_fn that returns a function of the mean output."""
    return lambda: step(lambda model, batch: value(model(batch[0]).mean()))((X, Y))


def batch(given: Any, **options: Any) -> Callable[[], Any]:
    return lambda: step()(given, **options)


def feed() -> Feed:
    return Feed((X, Y), 4)


def on_meta() -> Any:
    model = nn.Linear(3, 1, device="meta")
    return Step(model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS)((X, Y))


def lazy() -> Any:
    model = nn.LazyLinear(1)
    return Step(model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS)


def in_eval_mode() -> Any:
    model = nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.1)).eval()
    return Step(model, optimizers.sgd(model), LOSS)((X, Y))


def with_replaced_layer() -> Any:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = optimizers.sgd(model)
    model[1] = nn.Linear(3, 1)
    return Step(model, optimizer, LOSS)((X, Y))


def frozen() -> Any:
    model = nn.Linear(3, 1).requires_grad_(False)
    return Step(model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS)((X, Y))


def twice() -> Any:
    one = step()
    fit(one, feed(), epochs=1)
    fit(one, feed(), epochs=1)


PARTS: dict[str, Wrong] = {
    "a criterion": Wrong(
        made(MODEL, SGD, nn.CrossEntropyLoss()), ConfigError, "(outputs, targets)",
        "supervised(nn.CrossEntropyLoss())",
    ),
    "a criterion's class": Wrong(
        made(MODEL, SGD, nn.MSELoss), ConfigError, "the class MSELoss", "supervised(nn.MSELoss())"
    ),
    "a function of torch's": Wrong(
        made(MODEL, SGD, F.cross_entropy),
        ConfigError, "cross_entropy", "supervised(F.cross_entropy)"
    ),
    "a partial of torch's": Wrong(
        made(MODEL, SGD, functools.partial(F.mse_loss, reduction="sum")),
        ConfigError, "(outputs, targets)", "supervised(criterion)",
    ),
    "a task's loss": Wrong(
        made(MODEL, SGD, losses.for_task("regression")), ConfigError, "(outputs, targets)",
        "supervised(",
    ),
    "a criterion of one's own": Wrong(
        made(MODEL, SGD, lambda outputs, targets: 0),
        ConfigError, "(outputs, targets)", "supervised("
    ),
    "loss_fn of one": Wrong(
        made(MODEL, SGD, lambda batch: 0), ConfigError, "(model, batch)", "lambda model, batch"
    ),
    "loss_fn of three": Wrong(
        made(MODEL, SGD, lambda a, b, c: 0), ConfigError, "(model, batch)", "lambda model, batch"
    ),
    "loss_fn=None": Wrong(made(MODEL, SGD, None), ConfigError, "not None", "supervised(nn."),
    "loss_fn='mse'": Wrong(made(MODEL, SGD, "mse"), ConfigError, "not 'mse'", "supervised(nn."),
    "model as loss_fn": Wrong(
        made(MODEL, SGD, MODEL), ConfigError, "Linear does not take", "lambda model, batch"
    ),
    "optimizer and loss_fn swapped": Wrong(
        made(MODEL, LOSS, SGD), ConfigError, "not a Supervised", "optimizers.adamw"
    ),
    "model=None": Wrong(made(None, SGD, LOSS), ConfigError, "not None", "Step(model, optimizer"),
    "a model's class": Wrong(
        made(nn.Linear, SGD, LOSS), ConfigError, "the class Linear", "Linear(...)"
    ),
    "a model's name": Wrong(made("resnet", SGD, LOSS), ConfigError, "'resnet'", "Step(model"),
    "a model's parameters": Wrong(
        made(list(MODEL.parameters()), SGD, LOSS), ConfigError, "a Parameter", "Step(model"
    ),
    "models": Wrong(
        made([MODEL, MODEL], SGD, LOSS), ConfigError, "a list of modules", "ModuleList"
    ),
    "a function as model": Wrong(made(len, SGD, LOSS), ConfigError, "function len", "Step(model"),
    "model and optimizer swapped": Wrong(made(SGD, MODEL, LOSS), ConfigError, "an SGD", "Step("),
    "a model without shapes": Wrong(lazy, ConfigError, "'weight' has no shape", "model(inputs)"),
    "a model on meta": Wrong(on_meta, trueloop.errors.DeviceError, "device meta", "to_empty"),
    "optimizer=None": Wrong(made(MODEL, None, LOSS), ConfigError, "not None", "optimizers.adamw"),
    "an optimizer's class": Wrong(
        made(MODEL, torch.optim.Adam, LOSS),
        ConfigError, "the class Adam", "Adam(model.parameters()"
    ),
    "a generator of parameters": Wrong(
        made(MODEL, MODEL.parameters(), LOSS), ConfigError, "a generator", "optimizers.adamw(model"
    ),
    "a list of parameters": Wrong(
        made(MODEL, list(MODEL.parameters()), LOSS), ConfigError, "a Parameter", "optimizers.adamw"
    ),
    "an optimizer's name": Wrong(made(MODEL, "adam", LOSS), ConfigError, "'adam'", "optimizers."),
    "a learning rate": Wrong(made(MODEL, 1e-3, LOSS), ConfigError, "not 0.001", "optimizers."),
    "our function": Wrong(
        made(MODEL, optimizers.adamw, LOSS), ConfigError, "function adamw", "optimizers.adamw(model"
    ),
    "a state as optimizer": Wrong(
        made(MODEL, SGD.state_dict(), LOSS), ConfigError, "a dict", "optimizers.adamw"
    ),
    "optimizers": Wrong(made(MODEL, [SGD, SGD], LOSS), ConfigError, "same SGD twice", "give each"),
    "no optimizers": Wrong(made(MODEL, [], LOSS), ConfigError, "not []", "optimizers.adamw"),
    "an optimizer and none": Wrong(
        made(MODEL, [SGD, None], LOSS), ConfigError, "not None", "optimizers.adamw"
    ),
    "two of one model": Wrong(
        made(MODEL, [SGD, optimizers.adamw(MODEL)], LOSS),
        ConfigError,
        "in two optimizers, SGD and AdamW",
        "give it to one of them",
    ),
    "schedules of two": Wrong(
        made(MODEL, SGD, LOSS, schedule=[None, None]), ConfigError, "2 entries", "one schedule"
    ),
    "a scheduler as optimizer": Wrong(
        made(MODEL, lr_scheduler.StepLR(SGD, 3), LOSS), ConfigError, "a StepLR", "from_torch"
    ),
    "another model's optimizer": Wrong(
        lambda: Step(MODEL, optimizers.sgd(nn.Linear(3, 1)), LOSS),
        ConfigError, "none of the model's",
        "model.parameters()",
    ),
    "LBFGS": Wrong(
        made(MODEL, torch.optim.LBFGS(MODEL.parameters()), LOSS), ConfigError, "LBFGS",
        "optimizer.step(closure)",
    ),
    "SAM": Wrong(
        made(MODEL, Sharp(MODEL.parameters(), lr=0.1), LOSS), ConfigError, "Sharp", "step(closure)"
    ),
    "a needed closure": Wrong(
        made(MODEL, Needs(MODEL.parameters(), lr=0.1), LOSS), ConfigError, "Needs", "step(closure)"
    ),
    "a closure needed late": Wrong(
        lambda: Step(MODEL, Asserts(MODEL.parameters(), lr=0.1), LOSS)((X, Y)), ConfigError,
        "Asserts evaluates the loss several times", "step(closure)",
    ),
}  # fmt: skip

OPTIONS: dict[str, Wrong] = {
    "schedule='cosine'": Wrong(
        option(schedule="cosine"), ConfigError, "schedule='cosine'", "schedules.cosine()"
    ),
    "schedule without the call": Wrong(
        option(schedule=schedules.cosine), ConfigError, "the function cosine", "schedules.cosine()"
    ),
    "a torch scheduler": Wrong(
        lambda: Step(MODEL, SGD, LOSS, schedule=lr_scheduler.StepLR(SGD, 3)),
        ConfigError, "a StepLR", "schedules.from_torch(scheduler, tick='epoch')",
    ),
    "a plateau of torch's": Wrong(
        lambda: Step(MODEL, SGD, LOSS, schedule=lr_scheduler.ReduceLROnPlateau(SGD)),
        ConfigError, "a ReduceLROnPlateau", "tick='metric'",
    ),
    "a scheduler's class": Wrong(
        option(schedule=lr_scheduler.StepLR),
        ConfigError, "the class StepLR", "StepLR(optimizer, ...)"
    ),
    "schedule=5": Wrong(option(schedule=5), ConfigError, "schedule=5", "schedules.cosine()"),
    "schedules": Wrong(
        option(schedule=[schedules.cosine(), "cosine"]), ConfigError, "'cosine'", "cosine()"
    ),
    "schedule=True": Wrong(option(schedule=True), ConfigError, "schedule=True", "cosine()"),
    "another's scheduler": Wrong(
        lambda: step(
            schedule=schedules.from_torch(lr_scheduler.StepLR(SGD, 3), "epoch")
        )((X, Y)),
        ScheduleError, "this StepLR drives a different optimizer", "that you give to Step",
    ),
    "a function that makes none": Wrong(
        lambda: step(schedule=schedules.from_torch(lambda optimizer: 5, "epoch"))((X, Y)),
        ScheduleError, "returned an int", "lambda optimizer: StepLR",
    ),
    "a metric clock for StepLR": Wrong(
        lambda: step(
            schedule=schedules.from_torch(lambda optimizer: lr_scheduler.StepLR(optimizer, 3),
            "metric")
        )((X, Y)),
        ScheduleError, "StepLR cannot tick per metric", "tick='update' or 'epoch'",
    ),
    "a schedule without a plan": Wrong(
        lambda: step(schedule=schedules.cosine())((X, Y)),
        ScheduleError, "the whole run", "step.plan("
    ),
    "a warm-up of it all": Wrong(
        lambda: step(schedule=schedules.warmup_cosine(10, 5))((X, Y)),
        ScheduleError, "warm-up of 10 updates", "warmup='5%'",
    ),
    "precision='fp64'": Wrong(option(precision="fp64"), ConfigError, "'fp64'", "did you mean"),
    "precision=16": Wrong(option(precision=16), ConfigError, "16", "'bf16', 'fp16', 'fp32'"),
    "precision of torch's": Wrong(option(precision=torch.bfloat16), ConfigError, "dtype", "'bf16'"),
    "precision=None": Wrong(option(precision=None), ConfigError, "None", "'bf16'"),
    "precision in a list": Wrong(option(precision=["bf16"]), ConfigError, "['bf16']", "'bf16'"),
    **{
        f"accumulate={value!r}": Wrong(
            option(accumulate=value), ConfigError, f"accumulate={value!r}", "accumulate=4"
        )
        for value in (0, -1, 2.0, True, "4", None, NAN)
    },
    **{
        f"{name}={value!r}": Wrong(option(**{name: value}),
        ConfigError, f"{name}={value!r}", "=1.0")
        for name in ("clip_norm", "clip_value")
        for value in (True, 0, -1, NAN, INF, "1")
    },
    "both clips": Wrong(
        option(clip_norm=1.0, clip_value=1.0),
        ConfigError, "clip_norm and clip_value", "one of them"
    ),
    **{
        f"nonfinite={value!r}": Wrong(
            option(nonfinite=value), ConfigError, f"nonfinite={value!r}", "nonfinite='skip'"
        )
        for value in ("ignore", None, False)
    },
    **{
        f"compile={value!r}": Wrong(
            option(compile=value), ConfigError, f"compile={value!r}", "compile=True"
        )
        for value in (5, 0, 1, 0.5, ["default"])
    },
    "compile='fast'": Wrong(option(compile="fast"), ConfigError, "'fast'", "'default'"),
    "an option compile has not": Wrong(
        option(compile={"mod": 1}), ConfigError, "{'mod': 1}", "compile=True"
    ),
    **{
        f"plan(epochs={value!r})": Wrong(
            planned(value), ConfigError, f"epochs={value!r}", "epochs=1"
        )
        for value in (0, -1, 1.5, True, "2", NAN)
    },
    **{
        f"plan(batches={value!r})": Wrong(
            planned(1, value), ConfigError, f"batches={value!r}", "batches=1"
        )
        for value in (0, -1, 2.5, True, "3")
    },
    "a feed as batches": Wrong(planned(1, feed()), ConfigError, "batches=a Feed", "batches=1"),
    "a schedule of another length": Wrong(
        lambda: step(schedule=schedules.cosine(1000)).plan(epochs=2, batches=3),
        ScheduleError, "1000 updates long, but the run makes 6", "leave the length out",
    ),
}  # fmt: skip

CALLS: dict[str, Wrong] = {
    "count of -1": Wrong(returned(lambda m: (m, -1)), LossError, "the count -1", "a number from 0"),
    "count of NaN": Wrong(
        returned(lambda m: (m, NAN)), LossError, "the count nan", "return how many"
    ),
    "count of infinity": Wrong(
        returned(lambda m: (m, INF)), LossError, "count inf", "return how many"
    ),
    "count of text": Wrong(returned(lambda m: (m, "3")), LossError, "a str", "(loss, count)"),
    "count of True": Wrong(returned(lambda m: (m, True)), LossError, "a bool", "(loss, count)"),
    "counts": Wrong(
        returned(lambda m: (m, torch.ones(3))), LossError, "shape (3,)", "LossOutput(loss, outputs"
    ),
    "tensor of -1": Wrong(
        returned(lambda m: (m, torch.tensor(-1.0))), LossError, "the count -1", "return how many"
    ),
    "four values": Wrong(returned(lambda m: (m, 1, 2, 3)), LossError, "a tuple", "a LossOutput"),
    "a list": Wrong(returned(lambda m: [m, 3]), LossError, "a list", "(loss, count)"),
    "None": Wrong(returned(lambda m: None), LossError, "returned None", "the mean loss"),
    "a number": Wrong(returned(lambda m: m.item()), LossError, "a float", "as a tensor"),
    "a dict": Wrong(returned(lambda m: {"loss": m}), LossError, "a dict", "(loss, parts)"),
    "a vector": Wrong(
        lambda: step(lambda model, batch: model(batch[0]))((X, Y)),
        LossError, "(12, 1)", "loss.mean()"
    ),
    "a complex loss": Wrong(
        returned(lambda m: m * 1j), LossError, "torch.complex64", "real number"
    ),
    "a loss without a graph": Wrong(
        returned(lambda m: m.detach()), LossError, "does not depend on the model", "model(inputs)"
    ),
    "an integer loss": Wrong(
        returned(lambda m: torch.tensor(3)), LossError, "does not depend on", "model(inputs)"
    ),
    "another leaf's loss": Wrong(
        returned(lambda m: torch.ones((), requires_grad=True) * 2), LossError, "does not depend on",
        "model(inputs)",
    ),
    "a part named loss": Wrong(
        returned(lambda m: (m, {"loss": 1})), LossError, "a part named 'loss'", "such as 'kl'"
    ),
    "a part of text": Wrong(
        returned(lambda m: (m, {"kl": "x"})), LossError, "the part 'kl'", "part.mean()"
    ),
    "a part without a name": Wrong(
        returned(lambda m: (m, {3: 1.0})), LossError, "a part named 3", "such as 'kl'"
    ),
    "an empty batch": Wrong(
        batch((X[:0], Y[:0])), DataError, "no samples", "drop empty batches"
    ),
    "None as batch": Wrong(batch(None), LossError, "this one is None", "loss_fn(model, batch)"),
    "a number as batch": Wrong(batch(3), LossError, "an int", "loss_fn(model, batch)"),
    "inputs alone": Wrong(batch(X), LossError, "a Tensor", "loss_fn(model, batch)"),
    "a feed as batch": Wrong(batch(feed()), LossError, "a Feed", "loss_fn(model, batch)"),
    "targets of another length": Wrong(
        batch((X, Y[:3])), LossError, "(12, 1) against", "same shape"
    ),
    "last=3": Wrong(batch((X, Y), last=3), ConfigError, "last=3", "last=True"),
    "last='yes'": Wrong(batch((X, Y), last="yes"), ConfigError, "last='yes'", "last=True"),
    "eval mode": Wrong(in_eval_mode, ConfigError, "eval mode", "model.train()"),
    "no_grad": Wrong(torch.no_grad()(batch((X, Y))), LossError, "does not depend", "no_grad()"),
    "inference mode": Wrong(
        torch.inference_mode()(batch((X, Y))), LossError, "does not depend", "no_grad()"
    ),
    "a frozen model": Wrong(frozen, LossError, "does not depend on the model's", "model(inputs)"),
    "a replaced layer": Wrong(
        with_replaced_layer, ConfigError, "1.weight, 1.bias", "build the optimizer"
    ),
    "scores of text": Wrong(lambda: step().end_epoch("x"), ConfigError, "'x'", "evaluate()"),
    "scores of True": Wrong(lambda: step().end_epoch(True), ConfigError, "True", "evaluate()"),
    "scores in a list": Wrong(lambda: step().end_epoch([1]), ConfigError, "[1]", "evaluate()"),
    "state {}": Wrong(lambda: step().load_state_dict({}), RunError, "missing", "state_dict"),
    "state None": Wrong(lambda: step().load_state_dict(None), RunError, "None", "state_dict"),
    "a model's state": Wrong(
        lambda: step().load_state_dict(MODEL.state_dict()), RunError, "missing", "state_dict"
    ),
    "another accumulation's state": Wrong(
        lambda: step(accumulate=2).load_state_dict(step().state_dict()),
        RunError, "accumulate=1", "build the step as it was",
    ),
}  # fmt: skip


def fitted(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: fit(step(), *args, **{"epochs": 1, **options})


def with_val(**options: Any) -> Callable[[], Any]:
    return fitted(feed(), feed(), **options)


FIT: dict[str, Wrong] = {
    "step=model": Wrong(
        lambda: fit(MODEL, feed(), epochs=1), ConfigError, "not a Linear", "Step(model, optimizer"
    ),
    "step=Step": Wrong(lambda: fit(Step, feed(), epochs=1), ConfigError, "the class Step", "Step("),
    "step=None": Wrong(lambda: fit(None, feed(), epochs=1), ConfigError, "not None", "Step(model"),
    "step=optimizer": Wrong(lambda: fit(SGD, feed(), epochs=1), ConfigError, "not an SGD", "Step("),
    "step and train swapped": Wrong(
        lambda: fit(feed(), step(), epochs=1), ConfigError, "not a Feed", "Step(model, optimizer"
    ),
    "train=(x, y)": Wrong(fitted((X, Y)), DataError, "train is a tuple", "Feed((x, y), batch_size"),
    "train=x": Wrong(fitted(X), DataError, "train is a Tensor", "Feed(data, batch_size"),
    "train=frame": Wrong(
        fitted(polars.DataFrame({"a": [1]})), DataError, "polars DataFrame", "to_numpy()"
    ),
    "train=None": Wrong(fitted(None), DataError, "train is None", "Feed("),
    "train=path": Wrong(fitted("train.csv"), DataError, "'train.csv'", "read it first"),
    "train=iterator": Wrong(
        lambda: fitted(iter(DataLoader(X, 2)))(), DataError, "one-shot", "the DataLoader itself"
    ),
    "train=data set": Wrong(
        fitted(TensorDataset(X, Y)), DataError, "train is a TensorDataset", "Feed(data, batch_size"
    ),
    "train=batches": Wrong(fitted([(X, Y)]), DataError, "train is a list", "Feed("),
    "train=Feed": Wrong(fitted(Feed), DataError, "the class Feed itself", "Feed(...)"),
    "train is empty": Wrong(
        lambda: fitted(DataLoader(TensorDataset(X[:0]), 4))(),
        DataError, "no samples", "check where"
    ),
    "val=(x, y)": Wrong(fitted(feed(), (X, Y)), DataError, "val is a tuple", "Feed((x, y)"),
    "val=0.2": Wrong(fitted(feed(), 0.2), DataError, "val is a float", "Feed(data"),
    "val=True": Wrong(fitted(feed(), True), DataError, "val is a bool", "Feed(data"),
    "val=data set": Wrong(
        fitted(feed(), TensorDataset(X, Y)), DataError, "val is a TensorDataset", "Feed(data"
    ),
    **{
        f"epochs={value!r}": Wrong(
            fitted(feed(), epochs=value), ConfigError, f"epochs={value!r}", "epochs=10"
        )
        for value in (0, -1, 1.5, True, "3", NAN)
    },
    "no length": Wrong(fitted(feed(), epochs=None), ConfigError, "how long the run", "epochs=10"),
    "metrics by name": Wrong(
        with_val(metrics="mae"), ConfigError, "metrics='mae'", "for_task(...)"
    ),
    "metrics in a list": Wrong(with_val(metrics=["mae"]), ConfigError, "'mae'", "for_task(...)"),
    "metrics=function": Wrong(with_val(metrics=len), ConfigError, "function len", "for_task(...)"),
    "metrics without val": Wrong(
        fitted(feed(), metrics=metrics.for_task("regression")),
        ConfigError, "measured on val", "val="
    ),
    "train_metrics by name": Wrong(
        fitted(feed(), train_metrics="x"), ConfigError, "'x'", "for_task(...)"
    ),
    "metrics without outputs": Wrong(
        lambda: fit(
            step(lambda model, batch: model(batch[0]).mean()), feed(), feed(), epochs=1,
            metrics=metrics.for_task("regression"),
        ),
        ConfigError, "need the model's outputs", "supervised(criterion)",
    ),
    "run=folder": Wrong(
        fitted(feed(), run="folder"), ConfigError, "run='folder'", "create('folder'"
    ),
    "run=path": Wrong(
        fitted(feed(), run=Path("a")), ConfigError, "Path is not a run", "create('a'"
    ),
    "run=True": Wrong(fitted(feed(), run=True), ConfigError, "run=True", "Run.create("),
    "run=Run": Wrong(fitted(feed(), run=trueloop.Run), ConfigError, "the class Run", "Run.create("),
    "run={}": Wrong(fitted(feed(), run={}), ConfigError, "run=a dict", "Run.create("),
    "sinks=print": Wrong(
        fitted(feed(), sinks=print), ConfigError, "function print", "sinks=[print]"
    ),
    "sinks=3": Wrong(fitted(feed(), sinks=3), ConfigError, "sinks=3", "sinks=[print]"),
    "sinks=None": Wrong(fitted(feed(), sinks=None), ConfigError, "sinks=None", "sinks=[print]"),
    "sinks='print'": Wrong(fitted(feed(), sinks="print"), ConfigError, "'print'", "sinks=[print]"),
    "sinks in a dict": Wrong(
        fitted(feed(), sinks={"a": print}), ConfigError, "a dict", "sinks=[print]"
    ),
    "sinks=[None]": Wrong(
        fitted(feed(), sinks=[None]), ConfigError, "sinks[0]=None", "sinks=[print]"
    ),
    "sinks=[print, 3]": Wrong(
        fitted(feed(), sinks=[print, 3]), ConfigError, "sinks[1]=3", "[print]"
    ),
    "a sink of two": Wrong(
        fitted(feed(), sinks=[lambda a, b: 0]), ConfigError, "(record)", "sinks=[print]"
    ),
    "a sink of nothing": Wrong(
        fitted(feed(), sinks=[lambda: 0]), ConfigError, "(record)", "sinks=[print]"
    ),
    "a sink's class": Wrong(
        fitted(feed(), sinks=[trueloop.Doctor]), ConfigError, "the class Doctor", "Doctor(...)"
    ),
    "EarlyStopping as sink": Wrong(
        lambda: with_val(sinks=[trueloop.EarlyStopping()])(), ConfigError, "an EarlyStopping",
        "early_stop=",
    ),
    "Checkpoints as sink": Wrong(
        lambda: with_val(sinks=[trueloop.Checkpoints("x")])(), ConfigError, "a Checkpoints",
        "checkpoints=",
    ),
    "early_stop=3": Wrong(with_val(early_stop=3), ConfigError, "early_stop=3", "patience=3)"),
    "early_stop=True": Wrong(
        with_val(early_stop=True), ConfigError, "=True", "EarlyStopping('val_"
    ),
    "early_stop='val_loss'": Wrong(
        with_val(early_stop="val_loss"), ConfigError, "'val_loss'", "EarlyStopping('val_loss'"
    ),
    "early_stop=EarlyStopping": Wrong(
        with_val(early_stop=trueloop.EarlyStopping), ConfigError, "the class", "EarlyStopping('val_"
    ),
    "early_stop without val": Wrong(
        lambda: fitted(feed(), early_stop=trueloop.EarlyStopping())(), ConfigError, "no val",
        "watch 'train_loss'",
    ),
    "early_stop of no score": Wrong(
        lambda: with_val(early_stop=trueloop.EarlyStopping("val_f1"))(), ConfigError,
        "'val_f1'", "'train_loss', 'val_loss'",
    ),
    "checkpoints='ck'": Wrong(
        with_val(checkpoints="ck"), ConfigError, "='ck'", "Checkpoints('ck')"
    ),
    "checkpoints=path": Wrong(
        with_val(checkpoints=Path("ck")), ConfigError, "Path is not", "Checkpoints("
    ),
    "checkpoints=True": Wrong(with_val(checkpoints=True), ConfigError, "=True", "Checkpoints("),
    "checkpoints=Checkpoints": Wrong(
        with_val(checkpoints=trueloop.Checkpoints), ConfigError, "the class", "Checkpoints("
    ),
    "keep_best of a typing error": Wrong(
        lambda: with_val(checkpoints=trueloop.Checkpoints("x", keep_best="val_lss"))(),
        ConfigError, "'val_lss'", "did you mean 'val_loss'",
    ),
    **{
        f"max_seconds={value!r}": Wrong(
            fitted(feed(), max_seconds=value), ConfigError, f"max_seconds={value!r}", "max_seconds="
        )
        for value in (0, -1, "60", NAN, True)
    },
    "resume_from='ck'": Wrong(
        fitted(feed(), resume_from="ck"), ConfigError, "resume_from='ck'", "load_checkpoint("
    ),
    "resume_from=True": Wrong(
        fitted(feed(), resume_from=True), ConfigError, "resume_from=True", "load_checkpoint("
    ),
    "resume_from={}": Wrong(fitted(feed(), resume_from={}), RunError, "missing", "load_checkpoint"),
    "resume_from a model's state": Wrong(
        fitted(feed(), resume_from=MODEL.state_dict()), RunError, "missing", "load_checkpoint"
    ),
    "gradients='x'": Wrong(with_val(gradients="x"), ConfigError, "gradients='x'", "gradients=True"),
    "progress='x'": Wrong(with_val(progress="x"), ConfigError, "progress='x'", "progress=True"),
    "a plateau without val": Wrong(
        lambda: fit(step(schedule=schedules.plateau()), feed(), epochs=1), ConfigError, "no val",
        "watch 'train_loss'",
    ),
    "a schedule of another length": Wrong(
        lambda: fit(step(schedule=schedules.cosine(1000)), feed(), epochs=2), ScheduleError,
        "1000 updates", "leave the length out",
    ),
    "a schedule over a stream": Wrong(
        lambda: fit(step(schedule=schedules.cosine()), Feed(Stream(), 2), epochs=2), ScheduleError,
        "no length", "cosine(10_000)",
    ),
    "again": Wrong(twice, ConfigError, "has done 1 epochs already", "epochs=2"),
}  # fmt: skip


def scored(
    model: Any = MODEL, data: Any = None, loss_fn: Any = LOSS, *args: Any, **options: Any
) -> Any:
    return lambda: evaluate(model, feed() if data is None else data, loss_fn, *args, **options)


EVALUATE: dict[str, Wrong] = {
    "model=step": Wrong(lambda: scored(step())(), ConfigError, "a Step", "step.model"),
    "model=None": Wrong(scored(None), ConfigError, "not None", "evaluate(model, feed, loss_fn)"),
    "model=class": Wrong(scored(nn.Linear), ConfigError, "the class Linear", "Linear(...)"),
    "model and loss_fn swapped": Wrong(
        scored(LOSS, None, MODEL), ConfigError, "not a Supervised", "evaluate(model, feed, loss_fn)"
    ),
    "model and feed swapped": Wrong(
        scored(feed(), MODEL), ConfigError, "not a Feed", "evaluate(model, feed, loss_fn)"
    ),
    "feed and loss_fn swapped": Wrong(
        scored(MODEL, LOSS, feed()), ConfigError, "not a Feed", "evaluate(model, feed, loss_fn)"
    ),
    "feed=(x, y)": Wrong(scored(MODEL, (X, Y)), DataError, "feed is a tuple", "Feed((x, y)"),
    "feed=x": Wrong(scored(MODEL, X), DataError, "feed is a Tensor", "Feed(data"),
    "feed=data set": Wrong(
        scored(MODEL, TensorDataset(X, Y)), DataError, "feed is a TensorDataset", "Feed(data"
    ),
    "feed=batches": Wrong(scored(MODEL, [(X, Y)]), DataError, "feed is a list", "Feed("),
    "feed=path": Wrong(scored(MODEL, "val.csv"), DataError, "'val.csv'", "read it first"),
    "feed=generator": Wrong(
        lambda: evaluate(MODEL, ((X, Y) for _ in range(2)), LOSS),
        DataError, "one-shot", "DataLoader"
    ),
    "criterion": Wrong(
        scored(loss_fn=nn.MSELoss()), ConfigError, "an MSELoss", "supervised(nn.MSELoss())"
    ),
    "criterion's class": Wrong(
        scored(loss_fn=nn.MSELoss), ConfigError, "the class MSELoss", "supervised(nn.MSELoss())"
    ),
    "loss_fn=None": Wrong(scored(loss_fn=None), ConfigError, "not None", "supervised(nn."),
    "loss_fn='mse'": Wrong(scored(loss_fn="mse"), ConfigError, "'mse'", "supervised(nn."),
    "loss_fn of one": Wrong(
        scored(loss_fn=lambda batch: 0), ConfigError, "(model, batch)", "lambda model, batch"
    ),
    "loss_fn returns None": Wrong(
        scored(loss_fn=lambda model, batch: None), LossError, "None", "the mean loss"
    ),
    "loss_fn returns a number": Wrong(
        scored(loss_fn=lambda model, batch: 0.5), LossError, "a float", "as a tensor"
    ),
    "loss_fn returns a vector": Wrong(
        scored(loss_fn=lambda model, batch: model(batch[0])), LossError, "(4, 1)", "loss.mean()"
    ),
    "count of -3": Wrong(
        scored(loss_fn=lambda model, batch: (model(batch[0]).mean(), -3)), LossError, "count -3",
        "return how many",
    ),
    "metrics by name": Wrong(
        scored(MODEL, None, LOSS, "mae"), ConfigError, "'mae'", "for_task(...)"
    ),
    "metrics=True": Wrong(scored(metrics=True), ConfigError, "metrics=True", "for_task(...)"),
    "metrics without outputs": Wrong(
        scored(loss_fn=lambda m, b: m(b[0]).mean(), metrics=metrics.for_task("regression")),
        ConfigError, "need the model's outputs", "supervised(criterion)",
    ),
    "metrics of other classes": Wrong(
        scored(metrics=metrics.for_task("multiclass", classes=3)), LossError, "for 3 classes",
        "the model 3 outputs",
    ),
    "precision='half'": Wrong(scored(precision="half"), ConfigError, "'half'", "'bf16'"),
    "precision=None": Wrong(scored(precision=None), ConfigError, "None", "'bf16'"),
    "collect='yes'": Wrong(scored(collect="yes"), ConfigError, "collect='yes'", "collect=True"),
    "gradients=1": Wrong(scored(gradients=1), ConfigError, "gradients=1", "gradients=True"),
    "predict(step)": Wrong(lambda: predict(step(), feed()), ConfigError, "a Step", "step.model"),
    "predict(None)": Wrong(
        lambda: predict(None, feed()), ConfigError, "None", "predict(model, feed)"
    ),
    "predict of x": Wrong(lambda: predict(MODEL, X), DataError, "feed is a Tensor", "Feed(data"),
    "predict of pairs": Wrong(
        lambda: predict(MODEL, feed()), LossError, "2 arguments", "function of (model, batch)"
    ),
    "predict by 3": Wrong(
        lambda: predict(MODEL, feed(), 3), ConfigError, "forward=3", "lambda model, batch"
    ),
    "predict by a function of one": Wrong(
        lambda: predict(MODEL, feed(), lambda batch: batch), ConfigError, "(model, batch)", "lambda"
    ),
    "predict by None": Wrong(
        lambda: predict(MODEL, feed(), lambda model, batch: None), ConfigError, "None", "outputs"
    ),
    "predict in no precision": Wrong(
        lambda: predict(MODEL, Feed(X, 4), precision="x"), ConfigError, "'x'", "'bf16'"
    ),
}  # fmt: skip

TABLE = {
    f"{table}: {name}": row
    for table, rows in (
        ("part", PARTS), ("option", OPTIONS), ("call", CALLS), ("fit", FIT), ("evaluate", EVALUATE)
    )
    for name, row in rows.items()
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_call_is_answered_in_one_line(name: str) -> None:
    check(TABLE[name])


def test_a_wrong_call_of_fit_leaves_the_step_as_it_was(tmp_path: Path) -> None:
    one = step()
    before = [p.detach().clone() for p in one.model.parameters()]
    for name in (
        "epochs",
        "sinks",
        "early_stop",
        "checkpoints",
        "run",
        "max_seconds",
        "resume_from",
    ):
        with pytest.raises(ConfigError, match=name):
            fit(one, feed(), feed(), **{"epochs": 1, name: "3"})
    assert one.updates == one.epoch == 0
    assert all(torch.equal(a, b) for a, b in zip(before, one.model.parameters(), strict=True))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (lambda m: (m, 0), "the count beside the loss is 0"),
        (lambda m: m * NAN, "the loss was not finite"),
        (lambda m: m * INF, "the loss was not finite"),
    ],
    ids=["count of 0", "NaN", "infinity"],
)
def test_what_is_not_finite_ends_the_training_as_documented(value: Any, cause: str) -> None:
    with pytest.raises(NonFiniteError, match=cause):
        returned(value)()


def test_what_looks_odd_and_works_as_documented() -> None:
    assert returned(lambda m: (m, None))().updated, "no count: that of the samples"
    assert returned(lambda m: (m, torch.tensor(3)))().updated
    assert step(compile=False)((X, Y)).updated
    assert fit(step(), DataLoader(TensorDataset(X, Y), 4), epochs=1).updates == 3
    assert fit(step(), feed(), epochs=1, sinks=()).status == "finished"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Step(MODEL, SGD), "loss_fn"),
        (lambda: Step(MODEL, SGD, LOSS, None), "positional"),
        (lambda: Step(MODEL, SGD, LOSS, scheduler=None), "scheduler"),
        (lambda: fit(step(), epochs=1), "train"),
        (lambda: fit(step(), feed(), epochs=1, callbacks=[]), "callbacks"),
        (lambda: evaluate(MODEL, feed()), "loss_fn"),
        (lambda: evaluate(MODEL, feed(), LOSS, device="cpu"), "device"),
    ],
)
def test_an_argument_that_is_not_there_is_pythons_own_error(call: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        call()


def test_the_guide_shows_what_is_said() -> None:
    (text,) = shown("tests/misuse/test_step_misuse.py::test_the_guide_shows_what_is_said")
    with pytest.raises(ConfigError) as caught:
        Step(MODEL, SGD, nn.CrossEntropyLoss())
    call = "Step(model, optimizer, nn.CrossEntropyLoss())"
    assert is_shown(text, f"{call}\nConfigError: {caught.value}\n")
