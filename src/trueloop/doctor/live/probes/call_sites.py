"""The place of a call, as a few numbers that distinguish it from others."""

from __future__ import annotations

from types import FrameType

from trueloop.doctor.live.frames import user_frames


def near(frame: FrameType) -> tuple[int, ...]:
    """The positions of some frames."""
    back = frame.f_back
    if back is None:
        return (id(frame), frame.f_lasti)
    further = back.f_back
    above = 0 if further is None else further.f_lasti
    return (id(frame), frame.f_lasti, id(back), back.f_lasti, above)


def path(frame: FrameType) -> list[int]:
    """The positions of the program's own frames: distinguishes the calls of one function."""
    # The line: the instruction is a different one once Python has specialised the call.
    return [
        number
        for each in user_frames.frames_of_user(frame)
        for number in (id(each.f_code), each.f_lineno or 0)
    ]
