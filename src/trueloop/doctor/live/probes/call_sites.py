"""Where a call is made from, as a few numbers that tell it from others."""

from __future__ import annotations

from typing import Any

from trueloop.doctor.live.frames import user_frames


def near(frame: Any) -> tuple[int, ...]:
    """Where some frames stand."""
    back = frame.f_back
    if back is None:
        return (id(frame), frame.f_lasti)
    further = back.f_back
    above = 0 if further is None else further.f_lasti
    return (id(frame), frame.f_lasti, id(back), back.f_lasti, above)


def path(frame: Any) -> list[int]:
    """Where the program's own frames stand: tells the calls of one function apart."""
    found = []
    while frame is not None:
        code = frame.f_code
        if user_frames.kind_of(code.co_filename) == "user":
            # Its line: the instruction is another one once Python has specialised the call.
            found += [id(code), frame.f_lineno or 0]
        frame = frame.f_back
    return found
