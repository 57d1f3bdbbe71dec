"""The processes of `trueloop tune`: they read the task's data, and build trainings of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader

from trueloop import device as devices
from trueloop.cli import keep_libraries_quiet
from trueloop.cli._session import TrainingSession, make_feed, open_session, read_data
from trueloop.cli.options import RunOptions, Settings, settings_from
from trueloop.feed import BatchDataset
from trueloop.feed.tensors import is_arrays
from trueloop.lengths import LENGTHS
from trueloop.records import monitored
from trueloop.step import compile_trial, compiled_step
from trueloop.step.recompute import repeated_blocks
from trueloop.tasks import Splits, Task
from trueloop.tasks.own_class import check_class
from trueloop.tune import memory, race, range_test, throughput
from trueloop.tune.goal import GoalRun, run_to_end
from trueloop.tune.setup import Setup
from trueloop.tune.trial_job import GOAL, MEASURE, RACE, RANGE, TrainingFacts, TrialJob

_NO_SCHEDULE = {"schedule": "none", "warmup": None, "decay": None, "decay_shape": None}
_SOURCE = "the options"


def prepare(
    task: str, options: dict[str, Any], count: int
) -> tuple[Callable[[TrialJob], Any], TrainingFacts]:
    """Read the data of `task`; returns what does a job, and the facts. `count` CPU threads are
    torch's own choice. Runs in the process that starts the trials."""
    keep_libraries_quiet()
    torch.set_num_threads(1)  # a copy of a process that has used more would hang
    began, threads = time.monotonic(), memory.threads_of_process()
    settings = settings_of(task, options)
    check_class(settings.task_class)
    data = read_data(settings)
    _import_for_trials(data[0])
    more = memory.threads_of_process() - threads
    bench = _TrialData(task, options, data, count, starts_threads=more > 0)
    torch.set_num_threads(1)
    return bench.do, bench.facts(settings, time.monotonic() - began)


def _import_for_trials(task: Task) -> None:
    """Import here what building a training imports: each trial would, for seconds of its time."""
    import torch._dynamo  # noqa: F401 (the first optimizer does)

    task.metrics()


def settings_of(task: str, options: dict[str, Any]) -> Settings:
    """The settings of a run of `task` with these options of train."""
    return settings_from(task, [], file=dict(options), source=_SOURCE)


class _TrialData:
    """Does the jobs, each in a copy of the process in which it was made."""

    def __init__(
        self,
        task: str,
        options: dict[str, Any],
        data: tuple[Task, Splits],
        count: int,
        *,
        starts_threads: bool,
    ) -> None:
        self._task, self._options, self._count = task, options, count
        # Threads (of polars, pyarrow, tokenizers) are not in a copy, which would wait for them.
        plain = is_arrays(data[1].train) or not starts_threads
        self._shared = data if plain and not isinstance(data[1].train, DataLoader) else None
        self._first: tuple[Task, Splits] | None = data

    def facts(self, settings: Settings, read_seconds: float) -> TrainingFacts:
        assert self._first is not None
        task, splits = self._first
        self._first = None
        settings = settings.settled(task)
        feed = make_feed(settings, torch.device("cpu"), splits.train, train=True)
        return TrainingFacts(
            task=settings.task,
            options={**settings.config(), "threads": settings.run.threads or task.threads},
            device=devices.pick(settings.run.device).type,
            cores=memory.cores(),
            samples=feed.samples,
            needs_workers=not (is_arrays(splits.train) or isinstance(splits.train, BatchDataset)),
            takes_batch_size=feed.batch_size is not None,
            read_seconds=read_seconds,
            compile_choices=_compile_choices(settings.run),
            has_blocks=bool(repeated_blocks(task.model())),
        )

    def do(self, job: TrialJob) -> Any:
        """Carry out one job; what it found."""
        torch.set_num_threads(self._count)
        if job.kind == GOAL:
            return self._run_to_goal(job)
        setup = self._setup(job.changes)
        if job.kind == RANGE:
            return range_test.sweep(setup, updates=job.updates, seconds=job.seconds)
        if job.kind == RACE:
            return race.race(setup, job.seconds)
        assert job.kind == MEASURE
        base = partial(self._setup, {}) if job.against_base else None
        return throughput.measure(setup, job.seconds, base)

    def _setup(self, changes: dict[str, Any]) -> Setup:
        return _setup_of(self._session({**_NO_SCHEDULE, **changes}))

    def _run_to_goal(self, job: TrialJob) -> GoalRun:
        """A run of so many updates, with the schedule that it has in `trueloop train`."""
        session = self._session({**dict.fromkeys(LENGTHS), **job.changes, "updates": job.updates})
        name = session.settings.recipe.monitor

        def score() -> float:
            return monitored(session.score(session.val).scores, name.removeprefix("val_"))

        return run_to_end(_setup_of(session), job.updates, job.seconds, score)

    def _session(self, changes: dict[str, Any]) -> TrainingSession:
        torch.set_num_threads(self._count)
        return open_session(settings_of(self._task, {**self._options, **changes}), self._shared)


def _setup_of(session: TrainingSession) -> Setup:
    return Setup(
        step=session.step,
        train=session.train,
        val=session.val,
        device=session.device,
        threads=torch.get_num_threads(),
        warm_updates=_warm_updates(session.settings.run.compile),
    )


def _warm_updates(compiled: bool | str) -> int:
    """Updates after which one with this `--compile` runs as it will run on."""
    if not compiled:
        return 1
    pairs = compile_trial.PAIRS + 1 if compiled == "auto" else 1
    return compiled_step.FIRST + 2 * pairs


def _compile_choices(run: RunOptions) -> tuple[Any, ...]:
    """The values of `--compile` beside its own."""
    now = "model" if run.compile is True else run.compile
    return tuple(value for value in (False, "step", "model") if value != (now or False))
