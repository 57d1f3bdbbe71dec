"""Functional dropout that does not depend on its module's training mode."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling
from torch.nn import functional

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.events import FunctionalDropout
from trueloop.doctor.model.vocabulary import tests_mode

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import P, R
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder

NAMES = ("dropout", "dropout1d", "dropout2d", "dropout3d")


def install(recorder: Recorder, patches: Patches) -> None:
    seen: set[tuple[CodeType, int]] = set()
    for name in NAMES:
        patches.replace(functional, name, partial(_dropout, recorder, name, seen))


def _dropout(
    recorder: Recorder, name: str, seen: set[tuple[CodeType, int]], original: Callable[P, R]
) -> Callable[P, R]:
    hub = recorder.hub

    def dropout(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling() or not hub.sampling:
            return original(*args, **kwargs)
        if len(args) < 3 and "training" not in kwargs:
            p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            hub.guarded(_used, recorder, name, p, seen, sys._getframe(1))
        return original(*args, **kwargs)

    return dropout


def _used(
    recorder: Recorder, name: str, p: Any, seen: set[tuple[CodeType, int]], frame: FrameType
) -> None:
    site = (frame.f_code, frame.f_lasti)
    inside = recorder.track().inside
    share = inspection.number(p)
    if site in seen or not inside or share is None:
        return
    if user_frames.kind_of(site[0].co_filename) != "user":
        return
    seen.add(site)
    fields = {
        "function": name,
        "p": share,
        "training": False,
        "module": recorder.things.model(inside[-1]),
        "asks_mode": _asks(frame),
    }
    # Not a step of the program: its place shows nothing about its loops.
    recorder.send(recorder.track(), FunctionalDropout, user_frames.sites(frame), fields)


def _asks(frame: FrameType | None) -> bool:
    """A condition in the module's `forward`, or in what it calls, asks for the mode."""
    while frame is not None and user_frames.kind_of(frame.f_code.co_filename) == "user":
        if _has_mode_test(frame.f_code):
            return True
        if frame.f_code.co_name == "forward":
            return False
        frame = frame.f_back
    return False


@lru_cache(maxsize=1024)
def _has_mode_test(code: CodeType) -> bool:
    tree = source_map.source_of(code.co_filename).tree
    if tree is None:
        return True
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = {node.lineno, *(each.lineno for each in node.decorator_list)}
            mine = node.name == code.co_name and code.co_firstlineno in lines
        else:
            mine = isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
        if mine and tests_mode(node):
            return True
    return False
