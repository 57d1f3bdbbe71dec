"""One program run with the batches that all get, and what came of it."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

SCORES = ("loss", "accuracy", "radius")


class Ended(NamedTuple):
    """What a program has at its end."""

    scores: dict[str, float]
    weights: dict[str, Any]
    """Each part of the model's state, a float64 array."""
    steps: int
    """Of its optimizers."""


def ran(program: Path, library: str) -> Ended:
    """Run one program in this process, with the batches that `library` gets like all others."""
    import pytest
    import torch
    from same_batches import draw_as_feed
    from torch.optim.optimizer import register_optimizer_step_post_hook

    torch.set_num_threads(1)
    sys.path.insert(0, str(program.parents[1]))
    steps = 0

    def count(*_: Any) -> None:
        nonlocal steps
        steps += 1

    hook = register_optimizer_step_post_hook(count)
    quiet = contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO())
    here = os.getcwd()
    with (
        pytest.MonkeyPatch.context() as patch,
        quiet[0],
        quiet[1],
        tempfile.TemporaryDirectory() as folder,
    ):
        if not library.startswith("trueloop"):
            draw_as_feed(patch)
        if library == "transformers":
            import transformers

            patch.setattr(transformers.trainer, "set_seed", lambda *_: None)
        os.chdir(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                names = runpy.run_path(str(program))
        finally:
            os.chdir(here)
            hook.remove()
    weights = {key: part.double().numpy() for key, part in names["model"].state_dict().items()}
    return Ended(_scores(names["result"]), weights, steps)


def _scores(result: Any) -> dict[str, float]:
    """Under one name in all libraries: val_loss and eval_loss are the loss."""
    found = {}
    for key, value in result.items():
        name = key.removeprefix("val_").removeprefix("eval_")
        if name in SCORES:
            found[name] = float(value)
    return found
