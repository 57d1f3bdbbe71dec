"""The place of a call, as a few numbers that distinguish it from others."""

from __future__ import annotations

from typing import Any

from trueloop.doctor.live.frames import user_frames


def near(frame: Any) -> tuple[int, ...]:
    """The positions of some frames."""
    back = frame.f_back
    if back is None:
        return (id(frame), frame.f_lasti)
    further = back.f_back
    above = 0 if further is None else further.f_lasti
    return (id(frame), frame.f_lasti, id(back), back.f_lasti, above)


def path(frame: Any) -> list[int]:
    """The positions of the program's own frames: distinguishes the calls of one function."""
    found = []
    while frame is not None:
        code = frame.f_code
        if user_frames.kind_of(code.co_filename) == "user":
            # Its line: the instruction is a different one once Python has specialised the call.
            found += [id(code), frame.f_lineno or 0]
        frame = frame.f_back
    return found
