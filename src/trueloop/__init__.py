"""Trueloop: the PyTorch training loop with every line in the right place."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. Imported on first use, so that `import trueloop` costs next to
# nothing beyond `import torch`.
_HOME = {
    "Checkpoints": "trueloop.checkpoint",
    "ConfigError": "trueloop.errors",
    "DataError": "trueloop.errors",
    "Doctor": "trueloop.doctor.live.entry.fit_sink",
    "EMA": "trueloop.step",
    "EarlyStopping": "trueloop.stopping",
    "EvalRecord": "trueloop.records",
    "Feed": "trueloop.feed",
    "History": "trueloop.loop",
    "LossOutput": "trueloop.records",
    "NonFiniteError": "trueloop.errors",
    "Run": "trueloop.run",
    "DDPOptions": "trueloop.step",
    "FSDPOptions": "trueloop.step",
    "Outliers": "trueloop.step",
    "SWA": "trueloop.step",
    "Shards": "trueloop.feed",
    "Step": "trueloop.step",
    "StepRecord": "trueloop.records",
    "Task": "trueloop.tasks",
    "TrueloopError": "trueloop.errors",
    "UserError": "trueloop.errors",
    "batches": "trueloop.loop",
    "cross_validate": "trueloop.folds",
    "evaluate": "trueloop.evaluation",
    "fit": "trueloop.loop",
    "load_checkpoint": "trueloop.checkpoint",
    "load_weights": "trueloop.checkpoint.weights",
    "predict": "trueloop.evaluation",
    "process_group": "trueloop.group",
    "save_weights": "trueloop.checkpoint.export",
    "seed_everything": "trueloop.seed",
    "supervised": "trueloop.losses",
    "watch": "trueloop.doctor.live.entry.block",
}
_MODULES = (
    "errors",
    "folds",
    "generate",
    "lora",
    "losses",
    "metrics",
    "optimizers",
    "records",
    "schedules",
    "seed",
    "trackers",
    "transforms",
)
# What `%load_ext trueloop` looks for.
_EXTENSION = {
    "load_ipython_extension": "trueloop.doctor.live.entry.notebook",
    "unload_ipython_extension": "trueloop.doctor.live.entry.notebook",
}

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or _EXTENSION.get(name)
    if home is not None:
        value = getattr(importlib.import_module(home), name)
    elif name in _MODULES:
        value = importlib.import_module(f"trueloop.{name}")
    else:
        raise AttributeError(f"module 'trueloop' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if TYPE_CHECKING:
    from trueloop import (
        errors as errors,
        folds as folds,
        generate as generate,
        lora as lora,
        losses as losses,
        metrics as metrics,
        optimizers as optimizers,
        records as records,
        schedules as schedules,
        seed as seed,
        trackers as trackers,
        transforms as transforms,
    )
    from trueloop.checkpoint import Checkpoints as Checkpoints, load_checkpoint as load_checkpoint
    from trueloop.checkpoint.export import save_weights as save_weights
    from trueloop.checkpoint.weights import load_weights as load_weights
    from trueloop.doctor.live.entry.block import watch as watch
    from trueloop.doctor.live.entry.fit_sink import Doctor as Doctor
    from trueloop.errors import (
        ConfigError as ConfigError,
        DataError as DataError,
        NonFiniteError as NonFiniteError,
        TrueloopError as TrueloopError,
        UserError as UserError,
    )
    from trueloop.evaluation import evaluate as evaluate, predict as predict
    from trueloop.feed import Feed as Feed, Shards as Shards
    from trueloop.folds import cross_validate as cross_validate
    from trueloop.group import process_group as process_group
    from trueloop.loop import History as History, batches as batches, fit as fit
    from trueloop.losses import supervised as supervised
    from trueloop.records import (
        EvalRecord as EvalRecord,
        LossOutput as LossOutput,
        StepRecord as StepRecord,
    )
    from trueloop.run import Run as Run
    from trueloop.seed import seed_everything as seed_everything
    from trueloop.step import (
        EMA as EMA,
        SWA as SWA,
        DDPOptions as DDPOptions,
        FSDPOptions as FSDPOptions,
        Outliers as Outliers,
        Step as Step,
    )
    from trueloop.stopping import EarlyStopping as EarlyStopping
    from trueloop.tasks import Task as Task
