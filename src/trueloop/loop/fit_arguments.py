"""The arguments of `fit`: checked before the first batch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from trueloop import _options, ranks
from trueloop.checkpoint import Checkpoints, place_of
from trueloop.errors import ConfigError
from trueloop.feed import Feed
from trueloop.lengths import Interval, parse_interval
from trueloop.loop.clock import EVALUATION, LINE, SAVE
from trueloop.loop.fit_state import Sink
from trueloop.step import Step
from trueloop.stopping import EarlyStopping


def check_step(step: Any) -> None:
    if not isinstance(step, Step):
        raise ConfigError(
            f"the step must be a Step, not {_options.shown(step)}: write "
            "fit(Step(model, optimizer, loss_fn), train, epochs=10)"
        )


def check_alike(
    step: Step,
    train: Feed,
    val: Feed | None,
    given: Mapping[str, Any],
    run: Any,
    early_stop: EarlyStopping | None,
    checkpoints: Checkpoints | None,
    resume_from: Any,
) -> None:
    """Raise `ConfigError` on all ranks where they were not given the same: they would wait for each
    other for ever."""
    here = {
        **given,
        "the batch size of train": train.batch_size,
        "the seed of train": train.seed,
        "the number of samples in train": train.samples,
        "val": val is not None,
        "the number of samples in val": None if val is None else val.samples,
        "run": run is not None,
        "early_stop": None if early_stop is None else (early_stop.monitor, early_stop.patience),
        "checkpoints": checkpoints is not None,
        "resume_from": None if resume_from is None else resume_from.get("step", {}).get("counters"),
        "the place of the step": place_of(step),
    }
    found = ranks.gathered(here, "what each rank was given")
    for number, there in enumerate(found):
        for what, value in found[0].items():
            if there[what] != value:
                raise ConfigError(
                    f"{what} is {value!r} on rank 0 and {there[what]!r} on rank {number}: call fit "
                    "with the same arguments on every rank"
                )


def intervals(
    eval_every: Any, log_every: Any, save_every: Any, run: Any, checkpoints: Any
) -> dict[str, Interval | None]:
    """How often each thing is due; None for its default. Raises `ConfigError`."""
    found = {
        EVALUATION: parse_interval("eval_every", eval_every),
        LINE: parse_interval("log_every", log_every),
        SAVE: parse_interval("save_every", save_every),
    }
    if found[SAVE] is not None and checkpoints is None:
        raise ConfigError(
            f"save_every={save_every!r} is given without checkpoints: write "
            "checkpoints=Checkpoints('checkpoints')"
        )
    if checkpoints is not None and checkpoints.every is not None:
        if found[SAVE] not in (None, checkpoints.every):
            raise ConfigError(
                f"save_every={save_every!r} and Checkpoints(every='{checkpoints.every}') both say "
                "how often to save: write one of them"
            )
        found[SAVE] = checkpoints.every
    return found


def checked_sinks(sinks: Any) -> list[Sink]:
    """The sinks in a list, each a function of one record."""
    if callable(sinks) or not isinstance(sinks, Iterable) or isinstance(sinks, (str, bytes, dict)):
        raise ConfigError(
            f"sinks={_options.shown(sinks)} is not a list of functions: write sinks=[print]"
        )
    listed = list(sinks)
    for place, sink in enumerate(listed):
        kinds = {"early_stop": EarlyStopping, "checkpoints": Checkpoints}
        for option, kind in kinds.items():
            if isinstance(sink, kind):
                raise ConfigError(
                    f"sinks[{place}] is {_options.kind_of(sink)}: write {option}=... instead"
                )
        if isinstance(sink, type):
            raise ConfigError(
                f"sinks[{place}] is the class {sink.__name__} itself: write {sink.__name__}(...)"
            )
        _options.function(f"sinks[{place}]", sink, "record", "sinks=[print]")
    return listed


def check_kinds(
    run: Any, early_stop: Any, checkpoints: Any, resume_from: Any, gradients: Any, progress: Any
) -> None:
    """Each is what its name says, or None."""
    _options.flag("gradients", gradients)
    _options.flag("progress", progress)
    text = isinstance(run, (str, os.PathLike))
    is_run = hasattr(run, "claimed") and hasattr(run, "sinks") and not isinstance(run, type)
    if run is not None and not is_run:
        raise ConfigError(
            f"run={_options.shown(run)} is not a run: write run=trueloop.Run.create("
            + (f"{str(run)!r}, config={{}})" if text else "'runs/one', config={})")
        )
    if early_stop is not None and not isinstance(early_stop, EarlyStopping):
        patience = early_stop if _options.is_integer(early_stop) else 10
        raise ConfigError(
            f"early_stop={_options.shown(early_stop)} is not an EarlyStopping: write "
            f"early_stop=EarlyStopping('val_loss', patience={patience})"
        )
    if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
        folder = checkpoints if isinstance(checkpoints, str) else "checkpoints"
        raise ConfigError(
            f"checkpoints={_options.shown(checkpoints)} is not a Checkpoints: write "
            f"checkpoints=Checkpoints({folder!r})"
        )
    if resume_from is not None and not isinstance(resume_from, dict):
        raise ConfigError(
            f"resume_from={_options.shown(resume_from)} is not a state: write "
            "resume_from=load_checkpoint(folder)"
        )
