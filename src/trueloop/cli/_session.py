"""A run's settings turned into what trains or predicts: task, data, model, step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from trueloop import (
    _options,
    device as devices,
    metrics as metric_sets,
    optimizers,
    ranks,
    threads,
)
from trueloop.checkpoint import load_checkpoint, model_state
from trueloop.cli._average import average
from trueloop.cli._checked_options import FSDP, make_schedule
from trueloop.cli._mixing import check_mixes, check_unfreeze, mixed, unfreeze
from trueloop.cli.options import CHOSEN_THREADS, RANKS, RunOptions, Settings, settings_from
from trueloop.errors import ConfigError, DeviceError, RunError, UserError, nearest
from trueloop.evaluation import evaluate, evaluating
from trueloop.feed import Feed
from trueloop.feed.weighted import BALANCED, labels_of
from trueloop.loop.clock import plan, run_length
from trueloop.records import EvalRecord, LossOutput
from trueloop.run import Run, environment
from trueloop.run.data_digest import data_facts
from trueloop.seed import rng_preserved, seed_everything, seed_rank
from trueloop.step import FSDPOptions, Outliers, Step, loading
from trueloop.step.phases import planned_updates
from trueloop.tasks import Recipe, Splits, Task, limits
from trueloop.tasks.own_class import check_class

if TYPE_CHECKING:
    from trueloop.doctor.live.entry.fit_sink import Doctor

T = TypeVar("T")


@dataclass(kw_only=True)
class TrainingSession:
    """All that `fit` needs, and all that is asked of it afterwards."""

    settings: Settings
    device: torch.device
    task: Task
    splits: Splits
    metrics: Any
    step: Step
    train: Feed
    val: Feed
    test: Feed | None
    parallel: str | None = None
    """How many ranks train together; None in one process."""
    tokens: int = 0
    """Tokens that were trained on; known when the training has ended."""
    doctor: Doctor | None = None
    """The doctor that watches the training; None without one."""

    @property
    def model(self) -> nn.Module:
        return self.step.model

    def environment(self) -> dict[str, Any]:
        """The machine, the code and the digest of the data; every rank calls it."""
        data = data_facts(self.task.data) if ranks.is_main() else None
        facts = environment(self.device, self.parallel)
        return facts if data is None else {**facts, "data": data}

    def score(self, feed: Feed, *, collect: bool = False) -> EvalRecord:
        """Loss and metrics of the model as it is now, in the run's precision."""
        with devices.matmul_in(self.settings.run.matmul, self.device):
            return evaluate(
                self.model,
                feed,
                self.step.loss_fn,
                self.metrics,
                precision=self.settings.recipe.precision,
                collect=collect,
            )


def read_data(settings: Settings) -> tuple[Task, Splits]:
    """The task with its data read. Raises any `UserError` of them."""
    task = settings.make_task()
    _take_stated_threads(settings, task)
    splits = returned(task, "splits", task.splits(), Splits)
    if settings.run.fold is not None and not task.reads_fold:
        raise ConfigError(
            f"task {type(task).__name__} does not divide its data by folds: write --repeats 5 "
            "instead, or in your own task let splits() use self.divide(labels, 0.2)"
        )
    if task.skipped:
        splits.facts["skipped"] = task.skipped
    return task, splits


def open_session(settings: Settings, data: tuple[Task, Splits] | None = None) -> TrainingSession:
    """Read the data, unless `read_data` has, and build all that trains, or say why that cannot be;
    writes nothing.

    Raises any `UserError`: of the device, the task's data, or options that do not fit the data.
    """
    check_class(settings.task_class)
    run = settings.run
    device = devices.pick(run.device)
    _check_own_device(run.device)
    seed_everything(run.seed, deterministic=run.deterministic)
    task, splits = read_data(settings) if data is None else data
    _take_stated_threads(settings, task)
    settings = settings.settled(task)
    recipe = settings.recipe
    if recipe.balance and task.kind not in ("multiclass", "binary"):
        raise ConfigError(f"--balance is for classes, and this task is a {task.kind}: leave it out")
    check_unfreeze(recipe, task)
    transform = mixed(recipe, task, splits.augment)
    train = make_feed(settings, device, splits.train, transform=transform, train=True)
    _check_batch_size(recipe.batch_size, train)
    check_mixes(recipe, train)
    if train.has_length:
        _check_accumulate(recipe.accumulate, len(train))
    if device.type == "cpu":
        _check_memory(task, recipe.batch_size, run.on_oom)
    model = _placed(returned(task, "model", task.model(), nn.Module), device)
    settings = _settle_threads(settings, task, splits, model)
    parallel = "ddp" if run.parallel == "auto" else run.parallel
    step = _make_step(recipe, run, model, task, parallel)
    seed_rank(run.seed, ranks.rank())
    # A schedule that cannot end where the run ends is refused here, before a directory is made.
    plan(step, train, run_length(recipe.epochs, recipe.updates, recipe.tokens))
    _check_profile(run.profile, planned_updates(step))
    session = TrainingSession(
        settings=settings,
        device=device,
        task=task,
        splits=splits,
        metrics=task.metrics(),
        step=step,
        train=train,
        val=make_feed(settings, device, splits.val),
        test=None if splits.test is None else make_feed(settings, device, splits.test),
        parallel=parallel if ranks.is_distributed() else None,
    )
    _check_monitor(session, recipe.monitor)
    return session


def _make_step(
    recipe: Recipe, run: RunOptions, model: nn.Module, task: Task, parallel: str | None
) -> Step:
    optimizer = optimizers.by_name(
        recipe.optimizer,
        model,
        recipe.lr,
        weight_decay=recipe.weight_decay,
        layer_decay=recipe.layer_decay,
    )
    return Step(
        model,
        optimizer,
        task.loss_fn(),
        schedule=make_schedule(recipe),
        precision=recipe.precision,
        accumulate=recipe.accumulate,
        clip_norm=recipe.clip_norm,
        clip_value=recipe.clip_value,
        nonfinite=recipe.nonfinite,
        outliers=_outliers(recipe),
        on_oom=run.on_oom,
        compile=True if run.compile == "model" else run.compile or None,
        recompute=run.recompute,
        average=average(recipe),
        unfreeze=unfreeze(recipe),
        parallel=_sharing(run) if parallel == "fsdp" else parallel,
    )


def _take_stated_threads(settings: Settings, task: Task) -> None:
    """Let torch compute on as many threads as the user or the task says, if one does."""
    if stated := settings.run.threads or task.threads:
        torch.set_num_threads(stated)


def _settle_threads(settings: Settings, task: Task, splits: Splits, model: nn.Module) -> Settings:
    """Take as many CPU threads as the work of an update calls for, where neither the user nor the
    task says how many; the settings with that number, which a resume takes again."""
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    if settings.run.threads or task.threads or not on_cpu:
        return settings
    chosen = settings.chosen_threads
    if chosen is None:
        most, samples = threads.most_threads(), _share(settings.recipe.batch_size)
        inputs = task.example_inputs(samples) or threads.example_inputs(splits.train, samples)
        work = None if inputs is None else threads.work_of_update(model, inputs)
        chosen = most if work is None else threads.threads_for(work, most)
    torch.set_num_threads(chosen)
    return replace(settings, chosen_threads=chosen)


def returned(task: Task, method: str, value: Any, kind: type[T]) -> T:
    """`value`, which the task's method returned, if it is what it should be; else `ConfigError`."""
    if not isinstance(value, kind):
        raise ConfigError(
            f"{type(task).__name__}.{method}() returned {type(value).__name__}: "
            f"let it return a {kind.__name__}"
        )
    return value


def _check_own_device(option: str) -> None:
    if ranks.local_world_size() > 1 and option.strip().lower().startswith("cuda:"):
        raise ConfigError(
            f"--device {option} is one GPU, and {ranks.local_world_size()} ranks on this machine "
            "need one each: write --device cuda"
        )


def _outliers(recipe: Recipe) -> Outliers | None:
    if recipe.outliers is None:
        return None
    return Outliers(action=recipe.outliers, factor=recipe.outlier_factor)


def _sharing(run: RunOptions) -> FSDPOptions:
    return FSDPOptions(
        blocks=run.fsdp_blocks,
        replicate=run.fsdp_replicate,
        param_dtype=run.fsdp_param_dtype,
        cpu_offload=run.fsdp_cpu_offload,
    )


def _share(batch_size: int) -> int:
    """Samples of a batch that the rank with the most of them takes."""
    return -(-batch_size // ranks.world_size())


def make_feed(
    settings: Settings,
    device: torch.device,
    data: Any,
    *,
    transform: Any = None,
    train: bool = False,
) -> Feed:
    """A feed over a split: shuffled and transformed for training, else in order and in batches
    that are larger, there being no gradients to keep. A DataLoader is taken as it is."""
    balance = train and settings.recipe.balance
    if balance:
        _check_balance(data)
    if isinstance(data, DataLoader):
        return Feed(data, device=device)
    size = settings.recipe.batch_size
    in_turn = (
        isinstance(data, IterableDataset) or getattr(data, "shuffles_itself", None) is not None
    )
    # Each rank evaluates whole batches: a large one of all ranks may be too much for one.
    without_gradients = max(_share(size), min(4 * size, 1024))
    return Feed(
        data,
        size if train else without_gradients,
        shuffle=train and not in_turn,
        weights=BALANCED if balance else None,
        seed=settings.run.seed,
        workers=settings.run.workers,
        device=device,
        transform=transform,
    )


def _check_balance(data: Any) -> None:
    """Refuse --balance for data whose classes cannot be read off."""
    try:
        labels_of(data)
    except UserError as error:
        raise ConfigError(
            "--balance needs training data in memory with one class for each sample, (inputs, "
            f"targets) or a data set with `targets`, and these are {_options.kind_of(data)}: leave "
            "it out"
        ) from error


def _placed(model: nn.Module, device: torch.device) -> nn.Module:
    try:
        return model.to(device)
    except Exception as error:
        if not devices.is_out_of_memory(error):
            raise
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    raise DeviceError(
        f"the model's parameters take {size / 1e9:.3g} GB, which the device {device} does not have "
        "free: make the model smaller, or shard it across ranks with --parallel fsdp"
    )


def _check_memory(task: Task, batch_size: int, on_oom: str) -> None:
    """Refuse a model and batch that do not fit into the machine's memory, before they are made."""
    if task.example_inputs(1) is not None:
        # A batch that is split needs room for a sample.
        samples = 1 if on_oom == "accumulate" else _share(batch_size)
        beside = ranks.local_world_size()
        with rng_preserved():
            needed = limits.training_memory(task.model, lambda: task.example_inputs(samples) or ())
        here = f" on {beside} ranks of this machine" if beside > 1 else ""
        limits.check_memory(
            beside * needed,
            what=f"training with --batch-size {batch_size}{here}",
            remedy=f"write a smaller {task.smaller}",
        )


def _check_batch_size(batch_size: int, train: Feed) -> None:
    samples, count = train.samples, ranks.world_size()
    if batch_size < count and train.batch_size is not None:
        raise ConfigError(
            f"--batch-size {batch_size} is the batch of all ranks together, and less than the "
            f"{count} ranks: write --batch-size {count} or more, or start fewer ranks"
        )
    if samples is not None and batch_size > samples:
        raise ConfigError(
            f"--batch-size {batch_size} is more than the {samples} training samples: "
            f"write --batch-size {samples} or less"
        )


def _check_accumulate(accumulate: int, batches: int) -> None:
    if accumulate > batches:
        raise ConfigError(
            f"--accumulate {accumulate} is more than the {batches} batches of an epoch: "
            f"write --accumulate {batches} or less"
        )


def _check_profile(updates: int | None, planned: int | None) -> None:
    if updates is not None and planned is not None and updates > planned:
        raise ConfigError(
            f"--profile {updates} is more than the {planned} updates of the run: write "
            f"--profile {planned} or less"
        )


def _check_monitor(session: TrainingSession, monitor: str) -> None:
    """Refuse a monitor that no evaluation will give, by looking at one batch's scores."""
    if monitor in ("train_loss", "val_loss"):
        return
    names = ["train_loss", "val_loss"]
    meter = metric_sets.wrap(session.metrics)
    if meter is not None:
        batches = session.val.epoch(0)
        with evaluating(session.model):
            output = LossOutput.of(session.step.loss_fn(session.model, next(batches)))
            meter.to(session.device)
            meter.reset()
            meter.update(output.outputs, output.targets)
            names += [f"val_{name}" for name in meter.compute()]
            meter.reset()
    if monitor not in names:
        raise ConfigError(f"--monitor: no score is called {monitor!r}: {nearest(monitor, names)}")


@dataclass(kw_only=True)
class Trained:
    """A finished run's task and model, without its data."""

    run: Run
    settings: Settings
    device: torch.device
    task: Task
    model: nn.Module
    epoch: int
    """The epoch of the weights, from 0."""


def settings_of(run: Run, **changes: Any) -> Settings:
    """The settings that the run was started with; `changes` replace single options."""
    config = run.config
    if not isinstance(config.get("task"), str):
        raise RunError(
            f"{run.path} was not started by trueloop train (its config.json names no task): "
            "use it in the program that trained it, or name a run of trueloop train"
        )
    config |= {name: value for name, value in changes.items() if value is not None}
    if config.get("parallel") != "fsdp":
        for name in FSDP:
            config.pop(name, None)  # of a run that began with it
    chosen = config.pop(CHOSEN_THREADS, None)
    if config.pop(RANKS, 1) != ranks.world_size():
        chosen = None  # each rank has more to do now, or less
    source = str(run.path / "config.json")
    settings = settings_from(config["task"], [], file=config, source=source)
    return replace(settings, chosen_threads=chosen if isinstance(chosen, int) else None)


def load_trained(run: Run, device: str, *, quiet: bool = False) -> Trained:
    """The run's best weights in its model, rebuilt only from the run directory.

    Raises `RunError` when the run saved no weights, or they do not fit the task's model any more.
    """
    settings = settings_of(run, device=device, quiet=quiet or None)
    where = devices.pick(device)
    best = load_checkpoint(run.checkpoints, which="best", map_location="cpu")
    task = settings.make_task()
    if where.type == "cpu" and (count := settings.run.threads or settings.chosen_threads):
        torch.set_num_threads(count)
    try:
        task.restore(run.task_state)
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f"the task cannot be rebuilt from {run.path / 'task.json'} ({error!r}): it was written "
            "by a different version or changed; train again"
        ) from error
    model = task.model()
    load_weights(model, model_state(best, model), run)
    model = task.inference_model(model)
    return Trained(
        run=run,
        settings=settings,
        device=where,
        task=task,
        model=model.to(where),
        epoch=int(best["epoch"]),
    )


def load_weights(model: nn.Module, weights: dict[str, Any], run: Run) -> None:
    """Put a checkpoint's weights into the model; `RunError` when they do not fit it."""
    try:
        loading.check_model(model, weights)
        loading.load_model(model, weights)
    except RunError as error:
        why = str(error).rpartition(": ")[0]
        raise RunError(
            f"the weights of {run.path} do not fit the model that its task builds now ({why}): "
            "restore the task's code"
        ) from None
