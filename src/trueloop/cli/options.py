"""Options of `trueloop train`: from the command line and a file to checked values.

Every option is a field of a dataclass that lives with the code that owns it (`Recipe`, the task's
own `Options`, `RunOptions` here) with its docstring as its help. The values are checked here,
before a directory is made or a file is read.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from trueloop import ranks, trackers
from trueloop.cli._checked_options import check
from trueloop.cli.config_file import known_keys, read_config
from trueloop.cli.parser import DEVICES, Parser, add_dataclass, option_for, path_from
from trueloop.errors import ConfigError
from trueloop.folds import FoldNumber
from trueloop.lengths import LENGTHS, parse_interval
from trueloop.option import OptionFacts, option
from trueloop.step import capture
from trueloop.tasks import READY_MADE, Recipe, Task, load

CHOSEN_THREADS = "chosen_threads"
"""In a run's config.json, beside the options: how many CPU threads it chose to train on."""
RANKS = "ranks"
"""In a run's config.json, beside the options: on how many ranks it began, of more than one."""
EVERY = ("eval_every", "log_every", "save_every", "report_every")
COMPILE = (*capture.MODES, *capture.WHOLE, "model")
MANY = ("folds", "fold", "repeats")
"""Options that make several runs of one."""

# What the example in a task's help needs before its options.
_DATA = {
    "table": "--data houses.csv --target price ",
    "images": "--data photos ",
    "text": "--data books ",
}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where and how the run takes place; nothing here belongs to the task."""

    verb: ClassVar[str] = "train"
    """Whose options these are."""
    left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not options of this verb: ignored in a configuration file."""
    of_recipe: ClassVar[frozenset[str]] = frozenset()
    """Fields of the recipe that have a special meaning for this verb."""
    usual: ClassVar[frozenset[str] | None] = None
    """The options that `--help` lists; None for those declared as usual."""

    data: Path | None = option(None, usual=True, group="data and run directory")
    """File or folder with the data."""
    run: Path | None = option(None, usual=True, unset="runs/TASK-DATE-TIME")
    """Directory of the run. It must not exist yet, unless --resume auto is given."""
    resume: str = option("never", choices=("never", "auto"))
    """Go on with the run in --run. auto resumes it if it has begun and not finished; never starts a
    new run."""
    seed: int = option(0, usual=True)
    """Seed of all randomness. It decides the data, the weights, the order and the augmentation."""
    folds: int | None = option(None, group="several runs", unset="one model")
    """Cross-validate: train a model for each fold, validated on it, and report the mean and spread
    of their scores."""
    fold: int | None = option(None, unset="all")
    """Of --folds, train only the model of this one, from 1."""
    repeats: int | None = option(None, unit="runs", unset="one")
    """Train with the seeds N, N+1, ... from --seed, and report the mean and spread of the scores;
    with --folds, so many cross-validations."""
    workers: int = option(0, usual=True, group="machine")
    """Processes that load samples; 0 loads them in the main process."""
    device: str = option("auto", usual=True, choices=DEVICES)
    """Device."""
    threads: int | None = option(None, unset="by the work of an update")
    """CPU threads of each process."""
    parallel: str = option("auto", group="many ranks", choices=("auto", "ddp", "fsdp"))
    """How the ranks that torchrun starts train together: ddp (each has the whole model) or fsdp
    (each has a shard of it); auto is ddp. No effect in one process."""
    fsdp_blocks: list[str] | None = option(None, unset="the repeated layers")
    """Classes whose modules fsdp shards one by one."""
    fsdp_replicate: int = option(1)
    """Copies of the sharded model: each group of neighbouring ranks shares one (HSDP)."""
    fsdp_param_dtype: str | None = option(
        None, choices=("bf16", "fp16"), unset="that of the weights"
    )
    """The dtype in which fsdp computes and communicates."""
    fsdp_cpu_offload: bool = option(False)
    """Keep fsdp's weights, gradients and optimizer state in the host's memory."""
    log_ranks: bool = option(False)
    """Write a log of each rank, with its output and warnings, to log/rank-K.jsonl in the run
    directory."""
    max_minutes: float | None = option(
        None, usual=True, group="end of the run", unit="minutes", unset="no limit"
    )
    """Time limit. The run ends, evaluated and saved, at the first update after it."""
    grace_seconds: float = option(30.0, unit="seconds")
    """Time between a signal (SIGTERM, SIGUSR1) and the kill of the process: the state is saved in
    that time."""
    hang_minutes: float | None = option(None, unit="minutes")
    """Write the stacks of every rank to hangs/ in the run directory after this time without
    progress; null for 50 times the longest duration of any step, at least 5 and at most 20
    minutes."""
    hang_exit: bool = option(False)
    """End the run after such a report, with exit status 1."""
    log_every: str | None = option(None, group="log and checkpoints", unset="each update")
    """Write a line to the log every "100 updates", "1 epoch", "10 minutes" and so on, with the mean
    loss since the last line."""
    track: list[str] | None = option(None, choices=tuple(trackers.BY_NAME), unset="none")
    """Send the curves to trackers too. Their files are in trackers/ in the run directory."""
    report_every: str | None = option(None, unset="at the end")
    """Write the report also while the run is going on, every "5 minutes", "1 epoch" and so on."""
    save_every: str | None = option(None, usual=True, unset="evaluations")
    """When to save: "50 updates". "10 minutes", "1_000_000 tokens" and "2 epochs" are intervals
    too; evaluations: after each one and each epoch, if five seconds have passed. The best weights
    and the end are always saved."""
    keep_last: int = option(3, unit="checkpoints")
    """Checkpoints to keep, in addition to the best one."""
    on_save_error: str = option("stop", choices=("stop", "continue"))
    """If a checkpoint cannot be written: stop, or continue without it."""
    compile: bool | str = option(
        False,
        group="speed and memory",
        choices=COMPILE,
    )
    """Compile with torch.compile. Without a value: the model. step: the whole update as one
    graph; auto: do that if it is faster; or a mode of torch.compile for the model."""
    recompute: str | None = option(None, unset="nothing")
    """Blocks whose activations are recomputed in the backward pass instead of kept in memory: 1 for
    each block of the model, 2 for every second one, or the name of their class."""
    on_oom: str = option("stop", choices=("stop", "accumulate"))
    """If a batch does not fit into memory: stop, or accumulate, which splits it and computes the
    gradient of the whole batch."""
    matmul: str = option("fp32", choices=("fp32", "tf32"))
    """How a CUDA device multiplies float32 matrices: fp32, or tf32, which rounds their entries to
    10 bits and is faster."""
    deterministic: bool = option(True)
    """Ask torch for deterministic algorithms: a little slower on a GPU."""
    doctor: bool = option(True, group="what is shown")
    """Watch the training and report its faults. The trained weights are bitwise the same."""
    profile: int | None = option(None, unit="updates", unset="no trace")
    """Trace this many updates with torch's profiler, after up to 100 others: profile/ in the run
    directory and a summary in the report."""
    quiet: bool = option(False, usual=True)
    """Show no progress, only the result."""


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(RunOptions):
    """The options of `trueloop verify-resume`, whose runs live in a temporary folder."""

    verb: ClassVar[str] = "verify-resume"
    of_recipe: ClassVar[frozenset[str]] = frozenset({"updates"})
    usual: ClassVar[frozenset[str]] = frozenset(
        {"updates", "epochs", "batch_size", "accumulate", "precision", "data", "seed", "device"}
    )
    left_out: ClassVar[frozenset[str]] = frozenset(
        {"run", "resume", "max_minutes", "profile", "quiet", "track", "report_every", *MANY}
    )

    quiet: bool = True
    updates: int | None = option(
        None, usual=True, group="the check", unset="two epochs, at most 200 updates"
    )
    """Updates to train, without and with a stop."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that decides a run."""

    task: str
    """Name of a ready-made task, or FILE.py:CLASS with an absolute path."""
    task_class: type[Task]
    options: Any
    """The task's own `Options`."""
    recipe: Recipe
    run: RunOptions
    stated: frozenset[str] = frozenset()
    """Names of the options that the user gave a value, be it the default one."""
    resumed: dict[str, Any] | None = None
    """The task's `state` when the run began, for a resumed run."""
    chosen_threads: int | None = None
    """CPU threads that were chosen by the work of an update; None before that, and where the user
    or the task says how many."""

    def suited(self, recipe: Recipe) -> Settings:
        """These settings with a recipe that the task chose by its data: what the user stated stays.

        Raises `ConfigError` for values that cannot work.
        """
        names = {f.name for f in dataclasses.fields(recipe)} & self.stated
        stated = {name: getattr(self.recipe, name) for name in names}
        if any(stated.get(name) is not None for name in LENGTHS):
            stated = {**dict.fromkeys(LENGTHS), **stated}
        # A gradient has one limit: the one that is asked for replaces the task's.
        if stated.get("clip_value") is not None:
            stated.setdefault("clip_norm", None)
        elif stated.get("clip_norm") is not None:
            stated.setdefault("clip_value", None)
        # A warm-up is its schedule's: another schedule does not inherit the task's.
        if "schedule" in stated:
            for name in ("warmup", "decay", "decay_shape"):
                stated.setdefault(name, None)
        settings = dataclasses.replace(self, recipe=dataclasses.replace(recipe, **stated))
        check(settings.recipe, settings.run)
        return settings

    def settled(self, task: Task) -> Settings:
        """These settings for a task that has read its data. Raises `ConfigError`."""
        settings = self.suited(task.recipe)
        return dataclasses.replace(settings, recipe=task.settle(settings.recipe))

    @property
    def evaluates_epochs(self) -> bool:
        """Whether evaluations are made at ends of epochs, and nowhere else but at the run's end."""
        every = parse_interval("--eval-every", self.recipe.eval_every)
        return every is None or every.unit == "epochs"

    @property
    def by_epochs(self) -> bool:
        """Whether messages count the run in epochs, and not in updates."""
        return self.evaluates_epochs and self.recipe.epochs is not None

    def config(self) -> dict[str, Any]:
        """The resolved configuration as flat plain data: what `--config` takes again.

        The run's own place, `resume` and `quiet` are not part of it: they do not change the
        training.
        """
        config: dict[str, Any] = {"task": self.task}
        for part in (self.options, self.recipe, self.run):
            config |= dataclasses.asdict(part)
        for name in ("run", "resume", "quiet"):
            del config[name]
        if self.chosen_threads is not None:
            config[CHOSEN_THREADS] = self.chosen_threads
        if ranks.is_distributed():
            config[RANKS] = ranks.world_size()
        return {name: _plain(value) for name, value in config.items()}

    def make_task(self) -> Task:
        task = self.task_class(self.options, data=self.run.data, seed=self.run.seed)
        task.quiet = self.run.quiet
        task.resumed = self.resumed
        if self.run.folds and self.run.fold:
            task.fold = FoldNumber(self.run.fold, self.run.folds)
        return task


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, (tuple, set)) else value


def settings_from(
    task: str,
    argv: Sequence[str],
    file: dict[str, Any] | None = None,
    *,
    source: str = "",
    run_options: type[RunOptions] = RunOptions,
) -> Settings:
    """The settings of a run of `task`: the command line over the file over the task's recipe.

    `file` has the keys of a configuration file called `source` in messages; `run_options` are those
    of a verb other than train. Raises `ConfigError`.
    """
    name, task_class = resolve_task(task)
    parser = train_parser(name, task_class, run_options)
    stated = vars(parser.parse(argv, defaults=False))
    if file is None and stated.get("config") is not None:
        file, source = read_config(stated["config"]), str(stated["config"])
    not_options = {*run_options.left_out, CHOSEN_THREADS, RANKS}
    known = {k: v for k, v in (file or {}).items() if k not in not_options}
    _check_task(known.pop("task", task), name, source)
    values = known_keys(known, parser.option_names(), source)
    of_recipe = {name: values.pop(name) for name in run_options.of_recipe & values.keys()}
    lengths = {name: stated.get(name) for name in LENGTHS if name not in run_options.of_recipe}
    replace_length(values, lengths)
    for key in ("warmup", *EVERY):  # a number without a unit is refused below, by name
        if isinstance(values.get(key), (int, float)):
            values[key] = f"{values[key]}"
    given = parser.parse(argv, namespace=parser.parse_values(values, source))

    def pick(cls: type, but: frozenset[str] = run_options.left_out) -> dict[str, Any]:
        return {name: given[name] for name in {f.name for f in dataclasses.fields(cls)} - but}

    settings = Settings(
        task=name,
        task_class=task_class,
        options=task_class.Options(**pick(task_class.Options)),
        recipe=dataclasses.replace(
            task_class.recipe,
            **pick(type(task_class.recipe), run_options.left_out | run_options.of_recipe),
            **of_recipe,
        ),
        run=run_options(**pick(run_options)),
        stated=(frozenset(stated) - run_options.of_recipe) | frozenset({**values, **of_recipe}),
    )
    return settings.suited(task_class.recipe)


def task_first(argv: Sequence[str], verb: str) -> tuple[str, list[str]]:
    """The task, which is the first word of the command line or named in the file of --config, and
    the options. Raises `ConfigError` where no task is named, or what is named is a file of data."""
    task, rest = argv[0], list(argv[1:])
    if not task.startswith("-"):
        if task not in READY_MADE and not task.rpartition(":")[0]:
            _refuse_file(task, verb)
        return task, rest
    file = None
    for word, following in zip_longest(argv, rest):
        option, equals, value = word.partition("=")
        if option == "--config":
            file = value if equals else following
    if not file:
        raise ConfigError(f"name the task first: trueloop {verb} TASK {task} …")
    named = read_config(Path(file)).get("task")
    if not isinstance(named, str) or not named:
        raise ConfigError(
            f"{file} names no task: write `task: spiral` into it, or trueloop {verb} TASK "
            f"--config {file}"
        )
    return named, list(argv)


def _refuse_file(word: str, verb: str) -> None:
    """Raise `ConfigError` if a file or folder is given in place of a task."""
    kind = option_for(word, ("--config", "--data"))
    if kind is None or word.endswith(".py"):
        return
    place = shlex.quote(word)
    if kind == "--config":
        remedy = f"write trueloop {verb} --config {place}"
    elif os.path.isdir(word):
        remedy = f"write trueloop {verb} images --data {place}"
    else:
        remedy = f"write trueloop {verb} table --data {place} --target COLUMN"
    what = "folder" if os.path.isdir(word) else "file"
    raise ConfigError(f"{word} is a {what}, not a task: {remedy}")


def resolve_task(task: str) -> tuple[str, type[Task]]:
    """The task's class and the name under which it is found again from any directory."""
    return _from_anywhere(task), load(task)


def _from_anywhere(task: str) -> str:
    file, colon, class_name = task.rpartition(":")
    return f"{Path(file).absolute()}:{class_name}" if colon else task


def _check_task(named: Any, task: str, source: str) -> None:
    """A configuration file's task must be the one that is asked for."""
    if not isinstance(named, str) or _from_anywhere(named) != task:
        # One that was written elsewhere, and moved together with its file.
        if isinstance(named, str) and named == task.rpartition("/")[2]:
            return
        raise ConfigError(f"{source} is for the task {named!r}: write trueloop train {named}")


def train_parser(
    task: str, task_class: type[Task], run_options: type[RunOptions] = RunOptions
) -> Parser:
    """The parser of `trueloop train TASK`, or of a different verb with its own `run_options`."""
    shown, verb = Path(task).name if ":" in task else task, run_options.verb
    parser = Parser(
        f"trueloop {verb} {shown}",
        usage=f"trueloop {verb} {shown} [options]",
        description=(task_class.__doc__ or "").strip().split("\n\n")[0],
        epilog=f"example:\n  trueloop {verb} {shown} {_DATA.get(task, '')}--epochs 30 --lr 3e-4",
    )
    parser.add_option(
        "--config",
        type=path_from,
        metavar="FILE",
        help="YAML, TOML or JSON file with any of these options; it may name the task too, and the "
        "command line overrides it",
    )
    if verb == "train":
        parser.add_option(
            "--print-config",
            action="store_true",
            help="print the options as a file; train nothing",
        )
    if dataclasses.fields(task_class.Options):
        add_dataclass(parser, f"the task {shown}", task_class.Options)
    recipe = task_class.recipe
    add_dataclass(
        parser,
        "how it trains (the task's defaults, which may go by the data)",
        type(recipe),
        recipe,
        left_out=run_options.of_recipe,
        usual=run_options.usual,
    )
    of_data = OptionFacts(
        usual=task not in READY_MADE or task in _DATA,
        group="data and run directory",
        required=task in _DATA,
    )
    add_dataclass(
        parser,
        "the run",
        run_options,
        left_out=run_options.left_out,
        usual=run_options.usual,
        changed={"data": of_data},
    )
    return parser


def replace_length(values: dict[str, Any], stated: Mapping[str, Any]) -> None:
    """Take the length of the run out of a file's `values` where the command line has `stated` one.

    Raises `ConfigError` where one of the two states several.
    """
    for source in (stated, values):
        given = [name for name in LENGTHS if source.get(name) is not None]
        if len(given) > 1:
            listed = " and ".join(f"--{name} {source[name]}" for name in given)
            raise ConfigError(f"{listed} each set the length of the run: write one of them")
    if any(stated.get(name) is not None for name in LENGTHS):
        for name in LENGTHS:
            values.pop(name, None)
