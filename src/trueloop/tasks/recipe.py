"""How a task trains by default."""

from __future__ import annotations

from dataclasses import dataclass

from trueloop.option import option
from trueloop.tasks.option_docs import documented

SCHEDULES = (
    "none", "cosine", "warmup_cosine", "warmup_stable_decay", "one_cycle", "plateau",
    "warm_restarts", "step_decay",
)  # fmt: skip
"""The names that `schedules.by_name` takes."""


@documented
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a task trains by default: each field is an option of `trueloop train`."""

    epochs: int | None = option(20, usual=True, group="length and evaluation")
    """Passes over the training data. null if updates or tokens set the length of the run."""
    updates: int | None = option(None, usual=True)
    """Optimizer updates, instead of --epochs."""
    tokens: int | None = option(None)
    """Tokens, instead of --epochs. The run ends with the update that reaches them."""
    eval_every: str | None = option(None, usual=True, unset="each epoch")
    """When to evaluate: "500 updates". "10_000 samples", "1_000_000 tokens", "2 epochs" and "10
    minutes" are intervals too; the end of the run is always evaluated."""
    batch_size: int = option(64, usual=True, group="updates", unit="samples")
    """Size of a micro-batch."""
    balance: bool = option(False)
    """Draw each class equally often in the training of a classifier: samples of rare classes come
    several times in an epoch, those of frequent ones not in each."""
    optimizer: str = option("adamw", usual=True, choices=("adamw", "adam", "sgd", "muon"))
    """Optimizer. sgd has Nesterov momentum 0.9; muon is for hidden matrices, and adamw has the
    rest."""
    lr: float = option(1e-3, usual=True)
    """Peak learning rate."""
    weight_decay: float = option(0.0, usual=True)
    """Weight decay of matrices and kernels; biases and norms have none."""
    layer_decay: float | None = option(None, unset="one rate")
    """Factor from each layer's learning rate to that of the layer before, such as 0.75 for
    fine-tuning. The first layers change least."""
    schedule: str = option("cosine", usual=True, choices=SCHEDULES)
    """Learning-rate schedule."""
    warmup: str | None = option(None, usual=True)
    """Warm-up: "5%", "2 epochs" or "300 updates". "5%" is of the run; for warmup_cosine and
    warmup_stable_decay (by default 5%) and one_cycle (30%)."""
    decay: str | None = option(None, unset="20%")
    """Length of the decay of warmup_stable_decay, in the same units."""
    decay_shape: str | None = option(None, choices=("linear", "cosine", "1-sqrt"), unset="linear")
    """Shape of the decay of warmup_stable_decay."""
    clip_norm: float | None = option(1.0, usual=True)
    """Largest global gradient norm; null for no clipping."""
    clip_value: float | None = option(None, unset="no limit")
    """Largest absolute value of a gradient's entry."""
    accumulate: int = option(1, usual=True)
    """Micro-batches per update."""
    precision: str = option("fp32", usual=True, choices=("fp32", "bf16", "fp16"))
    """Precision. bf16 and fp16 are autocast: the weights stay fp32."""
    nonfinite: str = option("stop", choices=("stop", "skip"))
    """After a NaN or infinite gradient: stop, or skip the update."""
    outliers: str | None = option(None, choices=("clip", "skip"), unset="neither")
    """After a gradient norm far above its running median: clip it, or skip the update."""
    outlier_factor: float = option(5.0)
    """With --outliers: a gradient norm of more than this many times its running median is an
    outlier."""
    ema: float | None = option(None, unset="none")
    """Decay of an exponential moving average of the weights, such as 0.999, which is scored, saved
    and used."""
    ema_warmup: bool = option(False)
    """With --ema: a smaller decay at first, for a short run."""
    swa: str | None = option(None, unset="none")
    """Start of stochastic weight averaging: "75%" of the run, "20 epochs" or "300 updates". The
    mean of the weights at the ends of epochs is scored, saved and used."""
    mixup: float | None = option(None, unset="none")
    """Mix each training sample with the one before it in the batch, and their classes: the alpha of
    the Beta distribution of the shares, such as 0.2."""
    cutmix: float | None = option(None, unset="none")
    """Put a box of the image before it in the batch into each training image: the alpha, such as
    1.0. With --mixup, each batch has one of the two."""
    unfreeze: list[str] | None = option(None, unset="nothing is frozen")
    """Freeze parts of a pretrained model at first: NAME=LENGTH of each, such as "backbone=2 epochs"
    or "backbone=10%"."""
    monitor: str = option("val_loss", usual=True, group="best weights and early stopping")
    """Score of the best weights. plateau and early stopping use it too."""
    patience: int | None = option(None, usual=True, unset="never")
    """Evaluations without gain before a stop."""
    min_delta: float = option(0.0)
    """Smallest improvement of the score that counts for --patience."""
