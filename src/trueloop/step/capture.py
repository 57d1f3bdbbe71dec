"""torch.compile around the model's forward pass, without replacing the model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.step.base import StepBase
from trueloop.step.compiled_step import CompiledStep

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
WHOLE = ("step", "auto")
"""Ways of compiling that are the step's, not torch's."""


def forward_and_graphs(step: StepBase, compile: Any) -> tuple[nn.Module, CompiledStep | None]:
    """The model that the step's loss function calls, and the function that takes its batches first,
    if there is one."""
    graphs = CompiledStep(step, compile) if compile in WHOLE else None
    return compiled(step._parallel.view, None if graphs else compile), graphs


def compiled(model: nn.Module, compile: bool | str | dict[str, Any] | None) -> nn.Module:
    """The model that the loss function calls: `model` itself, or a compiled view of the same
    parameters.

    `compile` is None or False (no), True, one of torch's modes, or a dict of options of
    `torch.compile`. On CUDA, `reduce-overhead` and `max-autotune` run the forward and backward
    passes as CUDA graphs.
    """
    if compile is None or compile is False:
        return model
    if isinstance(compile, str):
        compile = {"mode": _options.by_name("compile mode", compile, (*MODES, *WHOLE))}
    if compile is not True and not isinstance(compile, dict):
        raise ConfigError(
            f"compile={_options.shown(compile)} is unknown: write compile=True, "
            "compile='max-autotune' or a dict of options of torch.compile"
        )
    options = compile if isinstance(compile, dict) else {}
    try:
        view = torch.compile(model, **options)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"torch.compile does not take compile={options} ({reason[:160]}): write "
            "compile=True, or options that it has"
        ) from error
    assert isinstance(view, nn.Module)
    return view
