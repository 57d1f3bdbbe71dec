"""torch.compile around the model's forward pass, without replacing the model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trueloop.errors import ConfigError, nearest

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compiled(model: nn.Module, compile: bool | str | dict[str, Any] | None) -> nn.Module:
    """What the loss function calls: `model` itself, or a compiled view of the same parameters.

    `compile` is None or False (no), True, one of torch's modes, or a dict of options of
    `torch.compile`. On CUDA, `reduce-overhead` and `max-autotune` run the forward and backward
    passes as CUDA graphs.
    """
    if compile is None or compile is False:
        return model
    if isinstance(compile, str):
        if compile not in _MODES:
            raise ConfigError(f"unknown compile mode {compile!r}: {nearest(compile, _MODES)}")
        compile = {"mode": compile}
    options = compile if isinstance(compile, dict) else {}
    view = torch.compile(model, **options)
    assert isinstance(view, nn.Module)
    return view
