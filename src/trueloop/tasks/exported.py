"""A trained model in forms that run without Trueloop, each checked by running it."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from trueloop.atomic import flush_folder
from trueloop.checkpoint import cannot_write, write_atomic
from trueloop.checkpoint.export import save_weights
from trueloop.errors import ConfigError, MissingDependencyError, RunError
from trueloop.losses import apply_model

FORMS = ("python", "torch", "onnx")
PROGRAM, ONNX, WEIGHTS, TASK = "model.pt2", "model.onnx", "model.safetensors", "task.json"
_TOLERANCE = 1e-3
"""Largest difference of an output, as a share of the largest output; float32 gives some 1e-6."""


def write_exported(
    folder: Path,
    model: nn.Module,
    inputs: Any,
    state: Mapping[str, Any],
    files: Mapping[str, Path],
    forms: Sequence[str],
) -> dict[str, float]:
    """Write the model into a new folder, which is whole or absent.

    Args:
        folder: where to.
        model: in eval mode.
        inputs: of two samples, as the model takes them: a tensor, a tuple or a dict.
        state: that of the task.
        files: the sources of the standalone program, by the names that they take.
        forms: of `FORMS`.

    Returns:
        By file, the largest difference of its outputs from the model's.

    Raises:
        ConfigError: the model has no such form.
        MissingDependencyError: a package is not installed.
        RunError: the folder cannot be written, or a form does not compute what the model does.
    """
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    differences: dict[str, float] = {}
    try:
        temporary.mkdir(parents=True)
        program = None
        if "torch" in forms or "onnx" in forms or "network.py" not in files:
            program = exported_program(model, inputs)
        if "torch" in forms or ("python" in forms and "network.py" not in files):
            assert program is not None
            torch.export.save(program, temporary / PROGRAM)
            loaded = torch.export.load(temporary / PROGRAM).module()
            differences[PROGRAM] = _difference(PROGRAM, model, inputs, loaded)
        if "onnx" in forms:
            assert program is not None
            differences[ONNX] = _write_onnx(temporary / ONNX, program, model, inputs)
        if "python" in forms:
            for name, source in files.items():
                shutil.copyfile(source, temporary / name)
            if "network.py" in files:
                save_weights(model, temporary / WEIGHTS)
        text = json.dumps(state, indent=2, ensure_ascii=False)
        write_atomic(temporary / TASK, text.encode())
        temporary.rename(folder)
        flush_folder(folder.parent)
    except OSError as error:
        raise cannot_write(folder, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return differences


def exported_program(model: nn.Module, inputs: Any) -> torch.export.ExportedProgram:
    """The model as `torch.export` records it, for any number of samples. Raises `ConfigError`."""
    args, kwargs = _arguments(inputs)
    samples = torch.export.Dim("samples")
    dynamic = tree_map(lambda _: {0: samples}, (args, kwargs))
    # With gradients enabled, because models may compute in pieces without them.
    with torch.enable_grad(), _quiet():
        try:
            return torch.export.export(
                model, args, kwargs, dynamic_shapes=(*dynamic[0],) if not kwargs else dynamic[1]
            )
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise ConfigError(
                f"torch.export cannot record the model ({type(error).__name__}: {reason}): let its "
                "forward not branch on the values of tensors"
            ) from error


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


def _difference(name: str, model: nn.Module, inputs: Any, run: Callable[..., Any]) -> float:
    """How much `run` differs from the model on three samples, of which two are `inputs`."""
    three = tree_map(lambda leaf: torch.cat((leaf, leaf[:1])), inputs)
    args, kwargs = _arguments(three)
    with torch.no_grad():
        ours = tree_leaves(apply_model(model, three))
        theirs = tree_leaves(run(*args, **kwargs))
    apart = 0.0
    for a, b in zip(ours, theirs, strict=True):
        a, b = torch.as_tensor(a).double(), torch.as_tensor(b).double()
        if a.shape != b.shape or not torch.equal(a.isfinite(), b.isfinite()):
            apart = float("inf")
        elif a.numel():
            apart = max(apart, float((a - b).nan_to_num().abs().max()))
            if apart > _TOLERANCE * max(1.0, float(a.nan_to_num().abs().max())):
                break
    else:
        return apart
    raise RunError(
        f"{name} does not compute what the model does (outputs differ by {apart:.3g}): leave that "
        "form out"
    )


def _write_onnx(
    path: Path, program: torch.export.ExportedProgram, model: nn.Module, inputs: Any
) -> float:
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"--format onnx needs {error.name}, which is not installed: "
            "pip install 'trueloop[onnx]'"
        ) from None
    with _quiet():
        found = torch.onnx.export(program, dynamo=True, verbose=False)
        assert found is not None
        found.save(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def run(*args: Tensor, **kwargs: Tensor) -> list[Any]:
        given = [leaf.numpy() for leaf in tree_leaves((args, kwargs))]
        outputs: list[Any] = session.run(None, dict(zip(names, given, strict=True)))
        return outputs

    return _difference(ONNX, model, inputs, run)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' notes on packages that are not needed here."""
    import logging

    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
