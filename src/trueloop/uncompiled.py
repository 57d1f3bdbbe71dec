"""Functions that `torch.compile` leaves to Python, wherever they are called from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any


@cache
def skipped_by_compiler() -> tuple[Callable[[CodeType], object], Callable[[CodeType], object]]:
    """Skips a frame in dynamo: only itself, and with all that it calls."""
    # Not from `torch._dynamo`, which takes seconds to import.
    from torch._C._dynamo import eval_frame

    compiled: Any = eval_frame
    if not hasattr(compiled, "set_code_exec_strategy"):  # torch 2.6
        return compiled.skip_code, compiled.skip_code
    action = compiled._FrameAction

    def leave(below: Any) -> Callable[[CodeType], object]:
        strategy = compiled._FrameExecStrategy(action.SKIP, below)
        return lambda code: compiled.set_code_exec_strategy(code, strategy)

    return leave(action.DEFAULT), leave(action.SKIP)
