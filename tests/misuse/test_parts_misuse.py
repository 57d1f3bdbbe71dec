"""Wrong calls of optimizers, schedules, `EarlyStopping`, seeds, `Checkpoints`, weights, `Run`,
`Doctor` and `watch`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchmetrics
from torch import nn
from torch.optim import lr_scheduler
from wrong_calls import Wrong, check

import trueloop
from trueloop import (
    Checkpoints,
    Doctor,
    EarlyStopping,
    Feed,
    Run,
    Step,
    load_checkpoint,
    load_weights,
    optimizers,
    save_weights,
    schedules,
    seed_everything,
)
from trueloop.errors import ConfigError, DeviceError, RunError, ScheduleError

NAN, INF = float("nan"), float("inf")
MODEL = nn.Linear(3, 4)
SGD = torch.optim.SGD(MODEL.parameters(), lr=1.0)


def adamw(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: optimizers.adamw(*(args or (MODEL,)), **options)


def sgd(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: optimizers.sgd(*(args or (MODEL,)), **options)


OPTIMIZERS: dict[str, Wrong] = {
    "None": Wrong(adamw(None), ConfigError, "None", "give the model"),
    "a class": Wrong(adamw(nn.Linear), ConfigError, "the class Linear", "Linear(...)"),
    "a name": Wrong(sgd("model"), ConfigError, "'model'", "give the model"),
    "a number": Wrong(sgd(3), ConfigError, "3", "give the model"),
    "a tensor": Wrong(sgd(torch.ones(3)), ConfigError, "one tensor", "[tensor]"),
    "a parameter": Wrong(sgd(nn.Parameter(torch.ones(3))), ConfigError, "one tensor", "[tensor]"),
    "named parameters": Wrong(
        lambda: optimizers.sgd(MODEL.named_parameters()), ConfigError, "named", "model.parameters()"
    ),
    "a state": Wrong(sgd(MODEL.state_dict()), ConfigError, "'weight'", "model.parameters()"),
    "modules": Wrong(sgd([MODEL, MODEL]), ConfigError, "several modules", "nn.ModuleList"),
    "groups": Wrong(sgd([{"params": []}]), ConfigError, "groups of", "torch.optim.AdamW(groups)"),
    "an optimizer": Wrong(sgd(SGD), ConfigError, "an SGD", "give that to Step"),
    "what was computed": Wrong(
        lambda: optimizers.sgd([nn.Parameter(torch.ones(3)) * 2]), ConfigError, "computation",
        "nn.Parameter",
    ),
    "nothing": Wrong(sgd([]), ConfigError, "no trainable parameter", "requires_grad=True"),
    "no parameters": Wrong(sgd(nn.ReLU()), ConfigError, "no trainable", "requires_grad=True"),
    "frozen": Wrong(
        sgd(nn.Linear(1, 1).requires_grad_(False)), ConfigError, "no trainable", "requires_grad"
    ),
    "lazy": Wrong(lambda: optimizers.sgd(nn.LazyLinear(3)), ConfigError, "lazy", "model(inputs)"),
    "swapped": Wrong(adamw(1e-3, MODEL), ConfigError, "lr=a Linear", "lr=1e-3"),
    **{
        f"lr={value!r}": Wrong(adamw(lr=value), ConfigError, f"lr={value!r}", "lr=1e-3")
        for value in (0, -1, NAN, INF, "1e-3", True, None)
    },
    "a tensor as lr": Wrong(adamw(lr=torch.tensor(1e-3)), ConfigError, "lr=a Tensor", "lr=1e-3"),
    **{
        f"weight_decay={value!r}": Wrong(
            adamw(weight_decay=value), ConfigError, f"weight_decay={value!r}", "weight_decay="
        )
        for value in (-1, NAN, "0.1", True, None)
    },
    "one beta": Wrong(adamw(betas=(0.9,)), ConfigError, "betas=(0.9)", "(0.9, 0.999)"),
    "a number as betas": Wrong(adamw(betas=0.9), ConfigError, "betas=0.9", "(0.9, 0.999)"),
    "text as betas": Wrong(adamw(betas="ab"), ConfigError, "betas='ab'", "(0.9, 0.999)"),
    "a beta of 1": Wrong(adamw(betas=(1.0, 0.9)), ConfigError, "betas[0]=1.0", "=0.9"),
    "a beta of NaN": Wrong(adamw(betas=(0.9, NAN)), ConfigError, "betas[1]=nan", "betas[1]="),
    **{
        f"eps={value!r}": Wrong(adamw(eps=value), ConfigError, f"eps={value!r}", "eps=")
        for value in (-1, NAN, "x")
    },
    **{
        f"momentum={value!r}": Wrong(
            sgd(momentum=value), ConfigError, f"momentum={value!r}", "momentum="
        )
        for value in (-1, 1.0, NAN, "x", True)
    },
    "nesterov='x'": Wrong(sgd(nesterov="x"), ConfigError, "nesterov='x'", "nesterov=True"),
    "by an unknown name": Wrong(
        lambda: optimizers.by_name("adamm", MODEL, 1e-3, weight_decay=0.0), ConfigError, "'adamm'",
        "'adam'",
    ),
}  # fmt: skip


def of(name: str, *args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(schedules, name)(*args, **options)


SCHEDULES: dict[str, Wrong] = {
    **{
        f"cosine({value!r})": Wrong(of("cosine", value), ConfigError, f"{value!r}", "'300 updates'")
        for value in (0, -5, NAN, INF, True, "soon", 1.5, 0.0, "5 minutes", "-3 epochs")
    },
    "cosine(optimizer)": Wrong(of("cosine", SGD), ConfigError, "an SGD", "cosine()"),
    "cosine([1])": Wrong(of("cosine", [1]), ConfigError, "[1]", "'300 updates'"),
    "eta_min=-1": Wrong(of("cosine", eta_min=-1), ConfigError, "eta_min=-1", "eta_min=0.0"),
    "eta_min=nan": Wrong(of("cosine", eta_min=NAN), ConfigError, "eta_min=nan", "eta_min="),
    "eta_min='0'": Wrong(of("cosine", eta_min="0"), ConfigError, "eta_min='0'", "eta_min="),
    "tick='batch'": Wrong(of("cosine", tick="batch"), ConfigError, "tick='batch'", "tick='update'"),
    "tick=None": Wrong(of("cosine", tick=None), ConfigError, "tick=None", "tick='epoch'"),
    "tick='metric'": Wrong(of("cosine", tick="metric"), ConfigError, "='metric'", "tick='epoch'"),
    "warmup=1.5": Wrong(of("warmup_cosine", 1.5), ConfigError, "1.5", "'5%'"),
    "warmup=-1": Wrong(of("warmup_cosine", -1), ConfigError, "-1", "'5%'"),
    "warmup=None": Wrong(of("warmup_cosine", None), ConfigError, "warmup=None", "'5%'"),
    "warmup='100%'": Wrong(of("warmup_cosine", "100%"), ScheduleError, "'100%'", "warmup='5%'"),
    "start_factor=0": Wrong(
        of("warmup_cosine", start_factor=0), ConfigError, "start_factor=0", "=0.01"
    ),
    "start_factor=2": Wrong(
        of("warmup_cosine", start_factor=2), ConfigError, "start_factor=2", "=0.01"
    ),
    "max_lr=-1": Wrong(of("one_cycle", max_lr=-1), ConfigError, "max_lr=-1", "max_lr=0.1"),
    "max_lr=0": Wrong(of("one_cycle", max_lr=0), ConfigError, "max_lr=0", "max_lr=0.1"),
    "max_lr='x'": Wrong(of("one_cycle", max_lr="x"), ConfigError, "max_lr='x'", "max_lr="),
    "div_factor=0": Wrong(of("one_cycle", div_factor=0), ConfigError, "div_factor=0", "=25.0"),
    "final_div_factor=-1": Wrong(
        of("one_cycle", final_div_factor=-1), ConfigError, "final_div_factor=-1", "=1e4"
    ),
    "cycle_momentum='x'": Wrong(
        of("one_cycle", cycle_momentum="x"), ConfigError, "cycle_momentum='x'", "=True"
    ),
    "one_cycle's warmup": Wrong(of("one_cycle", warmup="x"), ConfigError, "'x'", "'20 epochs'"),
    "plateau of a typo": Wrong(of("plateau", "val_mpe"), ConfigError, "'val_mpe'", "'val_mape'"),
    "plateau(None)": Wrong(of("plateau", None), ConfigError, "monitor=None", "'val_loss'"),
    "plateau(optimizer)": Wrong(of("plateau", SGD), ConfigError, "monitor=an SGD", "'val_loss'"),
    "mode='up'": Wrong(of("plateau", mode="up"), ConfigError, "mode='up'", "mode='min'"),
    "factor=1.5": Wrong(of("plateau", factor=1.5), ConfigError, "factor=1.5", "factor=0.1"),
    "factor=0": Wrong(of("plateau", factor=0), ConfigError, "factor=0", "factor=0.1"),
    "patience=-1": Wrong(of("plateau", patience=-1), ConfigError, "patience=-1", "patience=10"),
    "patience=1.5": Wrong(of("plateau", patience=1.5), ConfigError, "patience=1.5", "patience="),
    "threshold=-1": Wrong(of("plateau", threshold=-1), ConfigError, "threshold=-1", "=1e-4"),
    "cooldown=-1": Wrong(of("plateau", cooldown=-1), ConfigError, "cooldown=-1", "cooldown=0"),
    "min_lr=nan": Wrong(of("plateau", min_lr=NAN), ConfigError, "min_lr=nan", "min_lr="),
    "cycles=0": Wrong(of("warm_restarts", cycles=0), ConfigError, "cycles=0", "cycles=3"),
    "cycles=1.5": Wrong(of("warm_restarts", cycles=1.5), ConfigError, "cycles=1.5", "cycles=3"),
    "mult=0": Wrong(of("warm_restarts", mult=0), ConfigError, "mult=0", "mult=2"),
    "mult=1.5": Wrong(of("warm_restarts", mult=1.5), ConfigError, "mult=1.5", "mult=2"),
    "first=0": Wrong(of("warm_restarts", 0), ConfigError, "first=0", "'300 updates'"),
    "every=0": Wrong(of("step_decay", 0), ConfigError, "every=0", "'300 updates'"),
    "every='x'": Wrong(of("step_decay", "x"), ConfigError, "'x'", "'20 epochs'"),
    "at='50%'": Wrong(of("step_decay", at="50%"), ConfigError, "at='50%'", "at=('50%', '75%')"),
    "at=30": Wrong(of("step_decay", at=30), ConfigError, "at=30", "at=('50%', '75%')"),
    "at=()": Wrong(of("step_decay", at=()), ConfigError, "at=()", "at=('50%', '75%')"),
    "at=('x',)": Wrong(of("step_decay", at=("x",)), ConfigError, "'x'", "'20 epochs'"),
    "every and at": Wrong(
        of("step_decay", 5, at=("10%",)), ConfigError, "every or at", "leave one"
    ),
    "gamma=0": Wrong(of("step_decay", gamma=0), ConfigError, "gamma=0", "gamma=0.1"),
    "gamma=10": Wrong(of("step_decay", gamma=10), ConfigError, "gamma=10", "gamma=0.1"),
    "gamma='x'": Wrong(of("step_decay", gamma="x"), ConfigError, "gamma='x'", "gamma="),
    "from_torch(None)": Wrong(of("from_torch", None, "update"), ConfigError, "None", "StepLR(opt"),
    "from_torch('cosine')": Wrong(
        of("from_torch", "cosine", "update"), ConfigError, "'cosine'", "StepLR(optimizer"
    ),
    "from_torch(StepLR)": Wrong(
        of("from_torch", lr_scheduler.StepLR, "epoch"), ConfigError, "the class StepLR",
        "StepLR(optimizer, ...)",
    ),
    "from_torch(ours)": Wrong(
        lambda: schedules.from_torch(schedules.cosine(), "update"), ConfigError, "'cosine'",
        "give it to Step",
    ),
    "from_torch per batch": Wrong(
        lambda: schedules.from_torch(lr_scheduler.StepLR(SGD, 3), "batch"), ConfigError, "'batch'",
        "update",
    ),
    "from_torch, metric for StepLR": Wrong(
        lambda: schedules.from_torch(lr_scheduler.StepLR(SGD, 3), "metric"), ScheduleError,
        "StepLR cannot tick per metric", "tick='update'",
    ),
    "from_torch, plateau per epoch": Wrong(
        lambda: schedules.from_torch(lr_scheduler.ReduceLROnPlateau(SGD), "epoch"), ScheduleError,
        "ReduceLROnPlateau cannot tick per epoch", "tick='metric'",
    ),
    "from_torch, monitor of StepLR": Wrong(
        lambda: schedules.from_torch(lr_scheduler.StepLR(SGD, 3), "epoch", monitor="val_loss"),
        ConfigError, "monitor='val_loss'", "leave monitor out",
    ),
    "from_torch, monitor=3": Wrong(
        lambda: schedules.from_torch(lr_scheduler.ReduceLROnPlateau(SGD), "metric", monitor=3),
        ConfigError, "monitor=3", "monitor='val_loss'",
    ),
    "by an unknown name": Wrong(of("by_name", "cosin"), ConfigError, "'cosin'", "'cosine'"),
    "by no name": Wrong(of("by_name", None), ConfigError, "None", "'cosine'"),
    "warm-up of cosine": Wrong(
        of("by_name", "cosine", warmup="5%"), ConfigError, "no warm-up", "warmup_cosine"
    ),
}  # fmt: skip


def early(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: EarlyStopping(*args, **options)


STOPPING: dict[str, Wrong] = {
    "a typo": Wrong(early("val_mpe"), ConfigError, "'val_mpe'", "did you mean 'val_mape'"),
    "a score of one's own": Wrong(early("val_quality"), ConfigError, "'val_quality'", "mode='max'"),
    "monitor=None": Wrong(early(None), ConfigError, "monitor=None", "'val_loss'"),
    "monitor=3": Wrong(early(3), ConfigError, "monitor=3", "'val_loss'"),
    "monitor=''": Wrong(early(""), ConfigError, "monitor=''", "'val_loss'"),
    **{
        f"patience={value!r}": Wrong(
            early(patience=value), ConfigError, f"patience={value!r}", "patience=10"
        )
        for value in (0, -1, 2.5, True, "3", None, NAN)
    },
    **{
        f"min_delta={value!r}": Wrong(
            early(min_delta=value), ConfigError, f"min_delta={value!r}", "min_delta="
        )
        for value in (-1, NAN, INF, "0.1", None)
    },
    "mode='maximum'": Wrong(early(mode="maximum"), ConfigError, "'maximum'", "mode='max'"),
    "mode=None": Wrong(early(mode=None), ConfigError, "mode=None", "mode='min'"),
    **{
        f"seed_everything({value!r})": Wrong(
            lambda value=value: seed_everything(value), ConfigError, f"seed={value!r}", "seed=0"
        )
        for value in (None, -1, 1.5, True, "0", 2**64)
    },
    "deterministic='yes'": Wrong(
        lambda: seed_everything(0, "yes"), ConfigError, "deterministic='yes'", "deterministic=True"
    ),
    "for_sample('a', 1)": Wrong(
        lambda: trueloop.seed.for_sample("a", 1), ConfigError, "epoch='a'", "epoch=0"
    ),
    "for_sample(0, 1.5)": Wrong(
        lambda: trueloop.seed.for_sample(0, 1.5), ConfigError, "index=1.5", "index=0"
    ),
    "for_sample(-1, 0)": Wrong(
        lambda: trueloop.seed.for_sample(-1, 0), ConfigError, "epoch=-1", "epoch=0"
    ),
    "for_sample with seed=-1": Wrong(
        lambda: trueloop.seed.for_sample(0, 1, seed=-1), ConfigError, "seed=-1", "seed=0"
    ),
}  # fmt: skip


def saving(folder: Path) -> dict[str, Wrong]:
    """Calls that may touch files: each is made in a folder with a file and the model's weights."""
    save_weights(MODEL, folder / "weights")
    (folder / "file").write_text("x")
    step = Step(MODEL, SGD, trueloop.supervised(nn.MSELoss()))
    feed = Feed(torch.ones(3, 3), 1)

    def kept(**options: Any) -> Callable[[], Any]:
        return lambda: Checkpoints(folder / "ck", **options)

    def load(path: Any = folder, *args: Any, **options: Any) -> Callable[[], Any]:
        return lambda: load_checkpoint(path, *args, **options)

    def save(model: Any, path: Any = folder / "new") -> Callable[[], Any]:
        return lambda: save_weights(model, path)

    def put(
        model: Any = MODEL, path: Any = folder / "weights", **options: Any
    ) -> Callable[[], Any]:
        return lambda: load_weights(model, path, **options)

    def create(path: Any = folder / "run", **options: Any) -> Callable[[], Any]:
        return lambda: Run.create(path, **{"config": {}, **options})

    return {
        "Checkpoints(None)": Wrong(
            lambda: Checkpoints(None), ConfigError, "folder=None", "folder="
        ),
        "Checkpoints(3)": Wrong(lambda: Checkpoints(3), ConfigError, "folder=3", "folder="),
        "Checkpoints(file)": Wrong(
            lambda: Checkpoints(folder / "file"), RunError, "is a file", "name a folder"
        ),
        **{
            f"keep_last={value!r}": Wrong(
                kept(keep_last=value), ConfigError, f"keep_last={value!r}", "keep_last=3"
            )
            for value in (0, 2.0, True, None)
        },
        **{
            f"keep_best={value!r}": Wrong(
                kept(keep_best=value), ConfigError, f"keep_best={value!r}", "keep_best='val_loss'"
            )
            for value in (3, True, False, "")
        },
        **{
            f"every={value!r}": Wrong(
                kept(every=value), ConfigError, f"every={value!r}", "'500 updates'"
            )
            for value in ("often", 5, "0 updates", "-5 updates", "2 hours", "1.5 epochs", "9 steps")
        },
        "asynchronous='no'": Wrong(
            kept(asynchronous="no"), ConfigError, "asynchronous='no'", "asynchronous=False"
        ),
        "on_error='ignore'": Wrong(
            kept(on_error="ignore"), ConfigError, "on_error='ignore'", "on_error='continue'"
        ),
        "keep(None, None)": Wrong(
            lambda: Checkpoints(folder / "ck").keep(None, None),
            ConfigError, "None", "keep(step, feed)"
        ),
        "keep(model, feed)": Wrong(
            lambda: Checkpoints(folder / "ck").keep(MODEL, feed),
            ConfigError, "a Linear", "keep(step"
        ),
        "keep with a number": Wrong(
            lambda: Checkpoints(folder / "ck").keep(step, feed, 0.5), ConfigError, "a float",
            "evaluate()",
        ),
        "resume(model, feed)": Wrong(
            lambda: Checkpoints(folder / "ck").resume(MODEL, feed),
            ConfigError, "a Linear", "keep(step"
        ),
        "load_checkpoint of nothing": Wrong(
            load(folder / "no"), RunError, "no checkpoint", "check the path"
        ),
        "load_checkpoint(None)": Wrong(load(None), ConfigError, "path=None", "path="),
        "load_checkpoint(3)": Wrong(load(3), ConfigError, "path=3", "path="),
        "load_checkpoint of a file": Wrong(
            load(folder / "file"), RunError, "a file is there", "give the folder"
        ),
        "which='first'": Wrong(load(folder, "first"), ConfigError, "which='first'", "which='best'"),
        "dtype='float32'": Wrong(
            load(dtype="float32"), ConfigError, "dtype=float32", "dtype=torch.float32"
        ),
        "dtype=int8": Wrong(load(dtype=torch.int8), ConfigError, "torch.int8", "torch.float32"),
        "map_location='gpu'": Wrong(load(map_location="gpu"), DeviceError, "'gpu'", "cuda"),
        **{
            f"save_weights({name})": Wrong(save(value), ConfigError, cause, "give the model")
            for name, value, cause in (
                ("None", None, "None"), ("[model]", [MODEL], "[a Linear]"),
                ("class", nn.Linear, "the class Linear"), ("optimizer", SGD, "an SGD"),
                ("parameters", list(MODEL.parameters()), "a Parameter"),
                ("tensor", torch.ones(2), "a Tensor"), ("step", step, "a Step"),
            )
        },
        "save_weights swapped": Wrong(
            save(folder / "new", MODEL), ConfigError, "path=", "path='runs"
        ),
        "save_weights of an optimizer's state": Wrong(
            save(SGD.state_dict()), RunError, "'state' is a dict", "Checkpoints"
        ),
        "save_weights to a folder": Wrong(
            save(MODEL, folder), RunError, "is a folder", "name a file"
        ),
        "save_weights to None": Wrong(save(MODEL, None), ConfigError, "path=None", "path="),
        "save_weights of numbers": Wrong(
            save({1: torch.ones(1)}), ConfigError, "name=1", "'layer.weight'"
        ),
        "save_weights lazily": Wrong(save(nn.LazyLinear(3)), RunError, "no values yet", "run the"),
        "save_weights below a file": Wrong(
            save(MODEL, folder / "file" / "x"), RunError, "cannot write", "folder"
        ),
        "load_weights(None)": Wrong(put(None), ConfigError, "None", "load_weights(model, path)"),
        "load_weights(class)": Wrong(put(nn.Linear), ConfigError, "class Linear", "Linear(...)"),
        "load_weights(state)": Wrong(
            put(MODEL.state_dict()), ConfigError, "OrderedDict", "load_weights(model, path)"
        ),
        "load_weights swapped": Wrong(
            put(folder / "weights", MODEL), ConfigError, "Path", "load_weights(model, path)"
        ),
        "load_weights of nothing": Wrong(put(path=folder / "no"), RunError, "no weights", "name a"),
        "load_weights of None": Wrong(put(path=None), ConfigError, "path=None", "path="),
        "load_weights of a state": Wrong(
            put(path=MODEL.state_dict()), ConfigError, "path=an OrderedDict", "path="
        ),
        "load_weights of a folder": Wrong(put(path=folder), RunError, "is a folder", "name a"),
        "load_weights of text": Wrong(
            put(path=folder / "file"), RunError, "damaged", "use a different"
        ),
        "strict='no'": Wrong(put(strict="no"), ConfigError, "strict='no'", "strict=False"),
        "dtype='bf16'": Wrong(put(dtype="bf16"), ConfigError, "dtype=bf16", "torch.float32"),
        "load_weights into another": Wrong(
            put(nn.Linear(2, 2)), RunError, "weight ((4, 3) in the file, (2, 2) in the model)",
            "strict=False",
        ),
        "Run of nothing": Wrong(
            lambda: Run(folder / "no"), RunError, "no run at", "name a directory"
        ),
        "Run(None)": Wrong(lambda: Run(None), ConfigError, "path=None", "path="),
        "Run(3)": Wrong(lambda: Run(3), ConfigError, "path=3", "path="),
        "Run of a file": Wrong(
            lambda: Run(folder / "file"), RunError, "a file", "name a directory"
        ),
        "Run of a folder": Wrong(lambda: Run(folder), RunError, "config.json", "name a directory"),
        "Run.create(None)": Wrong(create(None), ConfigError, "path=None", "path="),
        "Run.create of a file": Wrong(
            create(folder / "file"), RunError, "is a file", "a different name"
        ),
        "config=None": Wrong(create(config=None), ConfigError, "config=None", "config={"),
        "config=[1]": Wrong(create(config=[1]), ConfigError, "config=[1]", "config={"),
        "config of objects": Wrong(
            create(config={"a": SGD}), RunError, "config.a is a SGD", "give numbers"
        ),
        "environment=3": Wrong(
            create(environment=3), ConfigError, "environment=3", "environment={"
        ),
        "Run.find of nothing": Wrong(
            lambda: Run.find(folder / "no"), RunError, "no folder", "name the folder"
        ),
        "Run.find(None)": Wrong(lambda: Run.find(None), ConfigError, "folder=None", "folder="),
    }  # fmt: skip


DOCTOR: dict[str, Wrong] = {
    "Doctor(run='x')": Wrong(lambda: Doctor(run="x"), ConfigError, "run='x'", "trueloop.Run("),
    "Doctor(3)": Wrong(lambda: Doctor(3), ConfigError, "run=3", "trueloop.Run("),
    "Doctor(show='x')": Wrong(lambda: Doctor(show="x"), ConfigError, "show='x'", "show=True"),
    "Doctor(on_error='x')": Wrong(
        lambda: Doctor(on_error="x"), ConfigError, "on_error='x'", "on_error='continue'"
    ),
    "Doctor(first=0)": Wrong(lambda: Doctor(first=0), ConfigError, "first=0", "first=500"),
    "Doctor(first=1.5)": Wrong(lambda: Doctor(first=1.5), ConfigError, "first=1.5", "first=500"),
    "Doctor(select=['XX1'])": Wrong(
        lambda: Doctor(select=["XX1"]), ConfigError, "'XX1'", "trueloop explain"
    ),
    "Doctor(select='TL1')": Wrong(
        lambda: Doctor(select="TL1"), ConfigError, "a list of codes", 'select=["TL1"]'
    ),
    "Doctor(ignore=3)": Wrong(lambda: Doctor(ignore=3), ConfigError, "ignore=3", 'ignore=["TL1"]'),
    "Doctor(ignore=[3])": Wrong(lambda: Doctor(ignore=[3]), ConfigError, "ignore=[3]", "ignore=["),
    "watch(select=['XX'])": Wrong(
        lambda: trueloop.watch(select=["XX"]), ConfigError, "'XX'", "trueloop explain"
    ),
    "watch(select=3)": Wrong(lambda: trueloop.watch(select=3), ConfigError, "select=3", "select=["),
    "watch(first='x')": Wrong(
        lambda: trueloop.watch(first="x"), ConfigError, "first='x'", "first=500"
    ),
    "watch(first=-1)": Wrong(
        lambda: trueloop.watch(first=-1), ConfigError, "first=-1", "first=500"
    ),
    "watch(show='x')": Wrong(
        lambda: trueloop.watch(show="x"), ConfigError, "show='x'", "show=True"
    ),
}  # fmt: skip

TABLE = {
    f"{table}: {name}": row
    for table, rows in (
        ("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("stopping", STOPPING),
        ("doctor", DOCTOR),
    )
    for name, row in rows.items()
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_call_is_answered_in_one_line(name: str) -> None:
    check(TABLE[name])


def test_a_wrong_call_about_files_is_answered_in_one_line_and_writes_nothing(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "alone"  # beside no run of another test, which a message would name
    folder.mkdir()
    rows = saving(folder)
    assert len(rows) > 60
    before = sorted(tmp_path.rglob("*"))
    for name, row in rows.items():
        try:
            check(row)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
        assert sorted(tmp_path.rglob("*")) == before, name


def test_what_looks_odd_and_works_as_documented(tmp_path: Path) -> None:
    twice = optimizers.sgd([*MODEL.parameters(), *MODEL.parameters()])
    assert len(twice.param_groups[0]["params"]) == 2, "each parameter once"
    assert optimizers.sgd(p for p in MODEL.parameters()).param_groups
    assert schedules.step_decay(at=("75%", "50%")).name == "step_decay"
    assert schedules.by_name("none") is None
    assert save_weights(nn.ReLU(), tmp_path / "none").is_file(), "a model without weights"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trueloop.metrics.wrap(torchmetrics.MeanMetric()) is not None
