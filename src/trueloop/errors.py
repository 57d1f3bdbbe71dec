"""The package's errors, as a small tree.

`UserError` and everything below it is the user's to fix: its message is one line that names the
cause and ends with the remedy, and the command line prints only that line, with exit status 2.
`NonFiniteError` is the training's own failure. Mistakes of ours are assertions, not these.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

__all__ = [
    "ConfigError",
    "DataError",
    "DeviceError",
    "Interrupted",
    "LossError",
    "MissingDependencyError",
    "NonFiniteError",
    "OutlierError",
    "RankError",
    "RunError",
    "ScheduleError",
    "TrueloopError",
    "UserError",
]


class TrueloopError(Exception):
    """The base of every error raised on purpose."""


class UserError(TrueloopError, ValueError):
    """Something that the user can fix: the message names the cause and the remedy.

    What the message repeats of very long input is cut (`shortened`).
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(arg) if isinstance(arg, str) else arg for arg in args))


class Interrupted(KeyboardInterrupt):
    """A signal ends the program: what was reached stays as it was last saved.

    Args:
        number: the signal's number.
        words: the message.

    Attributes:
        signal: the signal's number.
        history: the `History` of the `fit` that it has left, as far as it came; None outside one.
    """

    def __init__(self, number: int, *words: str) -> None:
        super().__init__(*words)
        self.signal = number
        """The signal's number."""
        self.history: Any = None
        """The `History` of the `fit` that it has left."""


class ConfigError(UserError):
    """An option or an argument has a value that cannot work."""


class DataError(UserError):
    """The data is missing, malformed, or not what the task needs."""


class LossError(UserError):
    """The model's output and the target do not fit the loss."""


class ScheduleError(UserError):
    """The schedule does not fit the run."""


class OutlierError(UserError):
    """More updates in a row than allowed had a gradient norm far above what was usual before."""


class RunError(UserError):
    """A run directory or a checkpoint cannot be used."""


class DeviceError(UserError):
    """The device asked for is not there or cannot do what is asked."""


class MissingDependencyError(UserError):
    """A library that an optional part needs is not installed."""


class RankError(TrueloopError, RuntimeError):
    """Another rank of the run has failed or died, has ended too early, or has never come.

    Attributes:
        rank: the number of that rank; None where it is not known.
    """

    def __init__(self, message: str, rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank


class NonFiniteError(TrueloopError, ArithmeticError):
    """The loss or a gradient is NaN or infinite.

    Attributes:
        update: how many updates were applied before.
        epoch: that of the micro-batch, from 0 (the message counts from 1).
        batch: the position of the micro-batch in its epoch, from 0 (the message counts from 1).
        parameter: the first one with a non-finite gradient; None if the loss itself is not finite.
    """

    def __init__(
        self,
        message: str,
        *,
        update: int,
        epoch: int,
        batch: int,
        parameter: str | None = None,
    ) -> None:
        super().__init__(message)
        self.update = update
        self.epoch = epoch
        self.batch = batch
        self.parameter = parameter

    def __reduce__(self) -> tuple[Any, ...]:
        # On its way between processes, an exception would lose what is keyword-only.
        return functools.partial(type(self), **vars(self)), self.args


_LONGEST_WORD = 400
_LONGEST = 2_000


def shortened(text: str) -> str:
    """`text`, with the middle of each word above 400 characters cut, then that of the whole above
    2,000: a message ends with what to type, and its reader must find that."""
    if len(text) > _LONGEST_WORD:
        text = " ".join(cut(word, _LONGEST_WORD) for word in text.split(" "))
    return cut(text, _LONGEST)


def cut(text: str, most: int) -> str:
    """`text`, its middle cut if it is longer than `most` characters (40 at least)."""
    if len(text) <= most:
        return text
    gap = f"…({len(text):,} characters)…"
    ahead = most // 4
    return f"{text[:ahead]}{gap}{text[ahead + len(gap) - most :]}"


# Other names under which people look for ours.
_SYNONYMS = {
    "lr": "learning_rate learningrate learn_rate base_lr max_lr peak_lr initial_lr lr_rate eta",
    "epochs": "num_epochs n_epochs max_epochs num_train_epochs nepochs passes",
    "batch_size": "bs b batch batches batch_sz minibatch mini_batch_size train_batch_size "
    "per_device_train_batch_size",
    "weight_decay": "wd decay l2 l2_reg l2_penalty",
    "workers": "num_workers n_workers nworkers num_proc dataloader_num_workers processes",
    "device": "gpu gpus cpu cuda mps use_gpu use_cuda use_cpu no_cuda accelerator devices",
    "precision": "amp use_amp fp16 fp32 bf16 half float16 bfloat16 mixed_precision autocast dtype",
    "accumulate": "accum accum_steps grad_accum grad_accum_steps accumulate_grad_batches "
    "gradient_accumulation gradient_accumulation_steps accumulation_steps",
    "clip_norm": "clip clip_grad clip_grad_norm grad_clip grad_clip_norm gradient_clip "
    "gradient_clipping gradient_clip_val max_norm max_grad_norm",
    "clip_value": "clip_grad_value grad_clip_value",
    "optimizer": "optim opt",
    "schedule": "scheduler sched lr_scheduler lr_schedule lr_scheduler_type lrs",
    "warmup": "warm_up warmup_steps warmup_epochs warmup_ratio num_warmup_steps lr_warmup",
    "patience": "early_stopping early_stop early_stopping_patience",
    "min_delta": "early_stopping_min_delta early_stopping_threshold",
    "monitor": "metric metric_for_best_model best_metric watch_metric",
    "run": "output_dir out_dir outdir output out save_dir logdir log_dir run_dir work_dir "
    "checkpoint_dir ckpt_dir run_name experiment",
    "resume": "resume_from resume_from_checkpoint auto_resume restart ckpt ckpt_path",
    "seed": "random_seed manual_seed random_state rng_seed seed_everything",
    "data": "dataset data_path data_dir data_root datadir data_file input inputs root csv "
    "train_data train_file",
    "target": "label labels target_column target_col label_column y",
    "drop": "drop_columns exclude ignore_columns skip_columns",
    "categorical": "categories cat_columns categorical_columns cat_features",
    "compile": "torch_compile use_compile jit",
    "deterministic": "reproducible cudnn_deterministic",
    "doctor": "watch check",
    "quiet": "silent q no_progress disable_tqdm",
    "size": "img_size image_size imgsz resolution input_size img",
    "width": "hidden_size hidden_dim hidden_units units dim",
    "layers": "num_layers n_layers hidden_layers depth",
    "threads": "num_threads n_threads cpu_threads cores",
    "max_minutes": "time_limit max_time timeout minutes",
    "save_every": "save_freq save_steps save_interval save_every_n_epochs checkpoint_every "
    "checkpoint_freq checkpoint_interval",
    "keep_last": "save_total_limit save_top_k max_to_keep keep",
    "val_share": "val_split validation_split val_size val_ratio val_fraction valid_size",
    "test_share": "test_split test_size test_ratio test_fraction",
    "config": "cfg conf config_file yaml settings",
    "format": "fmt output_format",
    "out": "output output_file save o",
    "force": "overwrite f",
    "keep": "columns carry passthrough include id_columns id_column ids id",
    "select": "only rules enable",
    "ignore": "disable skip",
    "jobs": "j n_jobs num_jobs threads",
    "max_new_tokens": "length max_length max_tokens num_tokens n_tokens new_tokens tokens n",
    "temperature": "temp t",
    "top_k": "k topk",
    "top_p": "p topp nucleus",
}  # fmt: skip


@functools.cache
def _targets(name: str) -> tuple[str, ...]:
    """The names of ours for which `name` is a common one elsewhere, in snake case."""
    return tuple(ours for ours, others in _SYNONYMS.items() if name in others.split())


def nearest_path(path: Path, remedy: str) -> str:
    """The end of a message about a path that does not exist: one beside it that is spelled alike
    ("did you mean 'data/houses.csv'?"), or else the remedy."""
    try:
        beside = {each.stem: each for each in islice(path.parent.iterdir(), 10_000) if each != path}
    except OSError:
        return remedy
    alike = difflib.get_close_matches(path.stem[:100], beside, n=1, cutoff=0.75)
    return f"did you mean {str(beside[alike[0]])!r}?" if alike else remedy


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known ones that may be meant, or all.

    Those are the ones that this is a common name for (`learning_rate` for `lr`), or else those
    spelled alike. Returns e.g. "did you mean 'price'?" or "known: 'a', 'b'"; empty without
    candidates.
    """
    known = sorted(set(candidates))
    meant = _targets(re.sub(r"[\s-]", "_", name.strip().lower()))
    close = [candidate for candidate in known if candidate.replace("-", "_") in meant]
    if not close:
        lowered = {candidate.lower(): candidate for candidate in known}
        cutoff = 0.5 if len(name) <= 4 else 0.6  # one letter of a short name is much of it
        alike = difflib.get_close_matches(name[:100].lower(), lowered, n=3, cutoff=cutoff)
        close = [lowered[match] for match in alike]
    if close:
        return "did you mean " + " or ".join(repr(candidate) for candidate in close) + "?"
    if not known:
        return ""
    listed = ", ".join(repr(candidate) for candidate in known[:12])
    return f"known: {listed}" + (", …" if len(known) > 12 else "")
