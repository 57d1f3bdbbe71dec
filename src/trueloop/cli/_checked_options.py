"""Options of `trueloop train` that cannot work: refused before a file is read or made."""

from __future__ import annotations

from typing import Any

from trueloop import schedules
from trueloop.cli._average import check_average
from trueloop.cli._mixing import check_mixing
from trueloop.cli._values import (
    above_0,
    above_1,
    check_choices,
    check_every,
    check_folds,
    check_length,
)
from trueloop.errors import ConfigError
from trueloop.lengths import LENGTHS
from trueloop.tasks import Recipe, limits
from trueloop.tasks.limits import check_range

FSDP = ("fsdp_blocks", "fsdp_replicate", "fsdp_param_dtype", "fsdp_cpu_offload")
"""Options that say how `--parallel fsdp` shards."""
MOST_RANKS = 1_000_000
MOST_UPDATES, MOST_TOKENS = 10**12, 10**18
MOST_PROFILE = 10_000
"""Updates in a trace: more fill the memory, and no viewer shows them."""
MOST_THREADS = MOST_WORKERS = 1024
"""More are a slip of the finger, which would bring the machine down rather than speed it up."""


def check(recipe: Recipe, run: Any) -> None:
    """Refuse values that cannot work, before any file is read or made; `run` are `RunOptions`.

    Raises `ConfigError`.
    """
    most = limits.MOST_EPOCHS
    check_choices(recipe)
    check_choices(run)
    _check_run_length(recipe)
    check_range("--batch-size", recipe.batch_size, 1, limits.MOST_BATCH, unit="samples", example=64)
    check_range("--accumulate", recipe.accumulate, 1, most, unit="micro-batches", example=4)
    above_0("--lr", recipe.lr, limits.MOST_RATE, "0.001")
    above_0("--clip-norm", recipe.clip_norm, limits.MOST_NORM, "1.0, or null for no clipping")
    above_0("--clip-value", recipe.clip_value, limits.MOST_NORM, "0.5, or null for no clipping")
    above_0("--max-minutes", run.max_minutes, limits.MOST_MINUTES, "30, or null for no limit")
    above_0("--grace-seconds", run.grace_seconds, limits.MOST_MINUTES, "30")
    above_0("--hang-minutes", run.hang_minutes, limits.MOST_MINUTES, "10, or null for the default")
    check_range("--weight-decay", recipe.weight_decay, 0, limits.MOST_RATE, example=0.01)
    above_0("--layer-decay", recipe.layer_decay, 1, "0.75, or null for one rate")
    check_range("--min-delta", recipe.min_delta, 0, limits.MOST_NORM, example=0)
    if recipe.min_delta and recipe.patience is None:
        raise ConfigError("--min-delta is for early stopping: write --patience N with it")
    check_folds(run.folds, run.fold, run.repeats)
    check_range("--workers", run.workers, 0, MOST_WORKERS, unit="processes", example=2)
    if run.resume == "auto" and run.run is None:
        raise ConfigError("--resume auto needs the run: add --run DIR")
    check_range("--keep-last", run.keep_last, 1, most, unit="checkpoints", example=3)
    check_range("--profile", run.profile, 1, MOST_PROFILE, unit="updates", example=20)
    check_every("--eval-every", recipe.eval_every)
    check_every("--log-every", run.log_every)
    check_every("--save-every", run.save_every)
    check_every("--report-every", run.report_every)
    check_range("--threads", run.threads, 1, MOST_THREADS, unit="CPU threads", example=1)
    check_range("--patience", recipe.patience, 1, most, unit="evaluations", example=10)
    if not 0 <= run.seed < 2**63:
        raise ConfigError(f"--seed must be from 0 to 2^63 - 1, not {run.seed}: write --seed 0")
    check_length("--warmup", recipe.warmup)
    check_length("--decay", recipe.decay)
    make_schedule(recipe)
    above_1("--outlier-factor", recipe.outlier_factor)
    _check_fsdp(run)
    check_average(recipe)
    check_mixing(recipe)


def _check_fsdp(run: Any) -> None:
    check_range("--fsdp-replicate", run.fsdp_replicate, 1, MOST_RANKS, unit="copies", example=2)
    for name in FSDP:
        if run.parallel != "fsdp" and getattr(run, name) != getattr(type(run), name):
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"{option} is for fsdp: write --parallel fsdp with it")


def _check_run_length(recipe: Recipe) -> None:
    most = {"epochs": limits.MOST_EPOCHS, "updates": MOST_UPDATES, "tokens": MOST_TOKENS}
    units = {"epochs": "passes over the data", "updates": "updates", "tokens": "tokens"}
    examples = {"epochs": 20, "updates": 10_000, "tokens": 1_000_000}
    if all(getattr(recipe, name) is None for name in LENGTHS):
        raise ConfigError("the length of the run is missing: write --epochs 20 or --updates 10000")
    for name in LENGTHS:
        amount, example = getattr(recipe, name), examples[name]
        check_range(f"--{name}", amount, 1, most[name], unit=units[name], example=example)


def make_schedule(recipe: Recipe) -> schedules.Schedule | None:
    """The schedule that the recipe names, with its options; `ConfigError` for what cannot be."""
    return schedules.by_name(
        recipe.schedule,
        warmup=recipe.warmup,
        decay=recipe.decay,
        decay_shape=recipe.decay_shape,
        monitor=recipe.monitor,
    )
