"""Functional dropout that is not told whether its module trains."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache, partial
from types import CodeType
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling
from torch.nn import functional

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.watcher import quietly
from trueloop.doctor.model.events import Used
from trueloop.doctor.model.vocabulary import tests_mode

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.watcher import Watcher

NAMES = ("dropout", "dropout1d", "dropout2d", "dropout3d")


def install(watcher: Watcher, patches: Patches) -> None:
    seen: set[tuple[CodeType, int]] = set()
    for name in NAMES:
        patches.replace(functional, name, partial(_dropout, watcher, name, seen))


def _dropout(watcher: Watcher, name: str, seen: set[tuple[CodeType, int]], original: Any) -> Any:
    def dropout(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not watcher.looking:
            return original(*args, **kwargs)
        if len(args) < 3 and "training" not in kwargs:
            p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            quietly(watcher, _used, watcher, name, p, seen, sys._getframe(1))
        return original(*args, **kwargs)

    return dropout


def _used(watcher: Watcher, name: str, p: Any, seen: set[tuple[CodeType, int]], frame: Any) -> None:
    site = (frame.f_code, frame.f_lasti)
    inside = watcher.track().inside
    share = inspection.number(p)
    if site in seen or not inside or share is None:
        return
    if user_frames.kind_of(site[0].co_filename) != "user":
        return
    seen.add(site)
    module = inside[-1]
    arguments = {
        "p": share,
        "training": False,
        "module": watcher.things.model(module),
        "asks": _asks(frame),
        "last": None,
        "self": "",
    }
    here = user_frames.sites(frame)
    fields = {"what": f"torch.nn.functional.{name}", "arguments": arguments}
    # No step of the program: where it stands says nothing about its loops.
    watcher.send(watcher.track(), Used, here, fields)


def _asks(frame: Any) -> bool:
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
