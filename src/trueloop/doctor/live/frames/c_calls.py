"""Functions written in C, called in a frame at the program's place.

A warning that C code raises names the innermost frame of Python's, whatever it is: ours, where a
function of ours calls the C function that the program has called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling

from trueloop.doctor.live.frames import user_frames

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Kwargs, P, R


def from_program(original: Callable[P, R]) -> Callable[P, R]:
    """A function written in C, called so that its warnings name the line that the program has
    reached, as they do where nothing of ours calls it."""

    @user_frames.passed_over
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling():
            return original(*args, **kwargs)
        stand_in = _stand_in(sys._getframe(1))
        if stand_in is None:
            return original(*args, **kwargs)
        result: R = stand_in(original, args, kwargs)
        return result

    return call


def _stand_in(frame: FrameType | None) -> Callable[..., Any] | None:
    """`_call` at the program's place, outside of our frames; None if that cannot be made."""
    try:
        while frame is not None and user_frames.is_watching(frame.f_code):
            frame = frame.f_back
        if frame is None:
            return None
        at = _standing_at(frame.f_code.co_filename, frame.f_lineno or 0)
        # The program's own names: a warning looks up there whether it has been shown.
        return FunctionType(at, frame.f_globals)
    except Exception:  # a warning may then name a line of ours; nothing else comes of it
        return None


def _call(original: Callable[..., R], args: Args, kwargs: Kwargs) -> R:
    return original(*args, **kwargs)


@lru_cache(maxsize=1024)
def _standing_at(path: str, line: int) -> CodeType:
    """`_call`, as if its one line were this one."""
    code = _call.__code__
    last = [number for *_, number in code.co_lines() if number is not None][-1]
    first = line - (last - code.co_firstlineno)
    return code.replace(co_filename=path, co_firstlineno=first, co_name=user_frames.STAND_IN)
