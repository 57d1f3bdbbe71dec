"""One name for each thing that libraries export under several."""

from __future__ import annotations

import re
from functools import lru_cache

_RENAMED = (
    (re.compile(r"^torch\.nn\.modules\.(?:\w+\.)?(?=_?[A-Z])"), "torch.nn."),
    (re.compile(r"^torch\.optim\.(?:adam|adamw|sgd|rmsprop|adagrad|adadelta|lbfgs|nadam|radam|rprop"
                r"|asgd|adamax|sparse_adam|optimizer)\."), "torch.optim."),
    (re.compile(r"^torch\.nn\.utils\.clip_grad\."), "torch.nn.utils."),
    (re.compile(r"^torch\.utils\.data\.(?:dataloader|dataset|sampler|distributed)"
                r"\.(?=[A-Z]|random_split)"), "torch.utils.data."),
    (re.compile(r"^torch\.nn\.parallel\.(?:distributed|data_parallel)\."), "torch.nn.parallel."),
    (re.compile(r"^torch\.(?:cuda\.amp|amp|cpu\.amp)\.(?:autocast_mode|grad_scaler)\."),
     "torch.amp."),
    (re.compile(r"^torch\.(?:cuda|cpu)\.amp\.GradScaler$"), "torch.amp.GradScaler"),
    (re.compile(r"^torch\.nn\.parameter\."), "torch.nn."),
    (re.compile(r"^torch\.distributions\.\w+\.(?=[A-Z])"), "torch.distributions."),
    (re.compile(r"^torch\.autograd\.(?:grad_mode\.)?(?=no_grad|enable_grad|set_grad_enabled|inference)"),
     "torch."),
    (re.compile(r"^torch\.autograd\.variable\."), "torch.autograd."),
    (re.compile(r"^torch\.(?:enable_grad|no_grad|inference_mode)\.__class__$"), "torch.no_grad"),
    (re.compile(r"^pytorch_lightning\b"), "lightning.pytorch"),
    (re.compile(r"^lightning_fabric\b"), "lightning.fabric"),
)  # fmt: skip

LONGEST = 400
"""Characters of a dotted name that a library may have."""


def canonical(name: str) -> str:
    """`torch.nn.Linear` for `torch.nn.modules.linear.Linear`."""
    if not name.startswith(("torch.", "pytorch_lightning", "lightning_fabric")):
        return name
    return name if len(name) > LONGEST else _renamed(name)


@lru_cache(maxsize=4096)
def _renamed(name: str) -> str:
    for pattern, short in _RENAMED:
        name = pattern.sub(short, name)
    return name
