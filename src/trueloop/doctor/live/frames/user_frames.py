"""Whose code is running: the frames of the program that is watched, and its places."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from trueloop.doctor.model.findings import Location

_Function = TypeVar("_Function", bound=Callable[..., Any])
_LIVE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HERE = os.path.dirname(_LIVE)
_LIBRARIES = tuple(
    {
        os.path.join(os.path.abspath(path), "")
        for path in (
            *site.getsitepackages(),
            site.getusersitepackages(),
            *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        )
        if path
    }
)
_PACKAGE = os.path.join(os.path.dirname(_HERE), "")
_RUNTIME = os.path.join(_LIVE, "")
_PASSED_OVER = "<trueloop: importlib._bootstrap>"
STAND_IN = "<trueloop>"
"""The name of the code in which the program is."""
_stages: set[CodeType] = set()
_starts: set[CodeType] = set()
_inside: set[str] = set()
_outside: set[str] = set()
"""Files of torch's and ours, and others, as far as they were met."""


def stage(code: CodeType, *, hides: bool = True) -> None:
    """Count no frame outside of one with this code as the program's: it is what runs it.

    `hides`: the program, looking at its own stack, does not see those frames either.
    """
    (_stages if hides else _starts).add(code)


def stages() -> set[CodeType]:
    """The code of what runs the program, unseen by it."""
    return _stages


def pass_over(code: CodeType) -> None:
    """Mark code that may be running now, as `passed_over` marks a function."""
    # What Python's import system does to a compiled file that was moved.
    import _imp

    rename: Any = vars(_imp)["_fix_co_filename"]
    rename(code, _PASSED_OVER)


def passed_over(function: _Function) -> _Function:
    """Mark a function of ours that calls the program or torch: no warning is to name its line, and
    the compiler leaves it, but not what it calls, to Python (`dynamo_skip`).

    When Python looks for the caller to warn (`stacklevel`), it skips the frames of its own import
    system, which it recognises by the name of their file.
    """
    details: Any = function
    details.__code__ = details.__code__.replace(co_filename=_PASSED_OVER)
    return function


def is_passed_over(code: CodeType) -> bool:
    """`passed_over` has marked it."""
    return code.co_filename == _PASSED_OVER


def is_watching(code: CodeType) -> bool:
    """It belongs to what watches a program, not to the program or to what that uses."""
    path = code.co_filename
    return path == _PASSED_OVER or path.startswith(_RUNTIME) or code.co_name == STAND_IN


class Site(NamedTuple):
    """Where one frame of the program is."""

    frame: int
    """`id` of the frame: a later frame may have it once this one is gone."""
    code: CodeType
    offset: int
    """Of the instruction that runs, in bytes."""
    line: int
    kind: str
    """`user` or `library`."""


@lru_cache(maxsize=4096)
def kind_of(path: str) -> str:
    """Of a file: `inside` (torch's and ours: never shown), `library`, or `user`."""
    if path.startswith("<") and not path.startswith("<ipython"):
        return "inside"
    full = os.path.abspath(path)
    torch = sys.modules.get("torch")
    roots = [_HERE]
    if torch is not None and torch.__file__:
        roots.append(os.path.dirname(torch.__file__))
    if any(full.startswith(os.path.join(root, "")) for root in roots):
        return "inside"
    if full.startswith(_PACKAGE):
        return "library"  # wherever it is installed
    if full.startswith(_LIBRARIES):
        folder = os.path.basename(os.path.dirname(full))
        name = os.path.basename(full)
        hidden = folder in ("multiprocessing", "importlib", "concurrent") or name in (
            "contextlib.py", "functools.py", "runpy.py", "threading.py", "_tensor.py",
        )  # fmt: skip
        return "inside" if hidden else "library"
    return "user"


def of_program(frame: FrameType) -> FrameType:
    """The innermost frame, from `frame` outwards, that is not inside of torch's code or ours; asked
    at every update."""
    while (name := frame.f_code.co_filename) not in _outside and frame.f_back is not None:
        if name in _inside:
            frame = frame.f_back
        else:
            (_inside if kind_of(name) == "inside" else _outside).add(name)
    return frame


def is_ours(path: str) -> bool:
    """Whether a file belongs to trueloop itself."""
    return os.path.abspath(path).startswith(_PACKAGE)


def frames_of_user(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the user's own files, innermost first, from `frame` outwards."""
    while frame is not None:
        if kind_of(frame.f_code.co_filename) == "user":
            yield frame
        frame = frame.f_back


def sites(frame: FrameType | None) -> list[Site]:
    """The frames of the program, outermost first, from `frame` outwards."""
    found: list[Site] = []
    while frame is not None:
        code = frame.f_code
        if code in _stages or code in _starts:
            break
        kind = kind_of(code.co_filename)
        if kind != "inside" and code.co_name != STAND_IN:
            found.append(Site(id(frame), code, frame.f_lasti, frame.f_lineno or 0, kind))
        frame = frame.f_back
    found.reverse()
    return found


@lru_cache(maxsize=16384)
def place_at(code: CodeType, offset: int, line: int) -> Location:
    """The expression that an instruction belongs to (only its line before Python 3.11)."""
    name = getattr(code, "co_qualname", code.co_name)
    name = "" if name == "<module>" else name.replace(".<locals>", "")
    if hasattr(code, "co_positions") and offset >= 0:
        first, last, column, end = next(
            islice(code.co_positions(), offset // 2, None), (line, None, None, None)
        )
        if first is not None and last is not None and column is not None and end is not None:
            begin, behind = _characters(code.co_filename, first, column, last, end)
            return Location(code.co_filename, first, begin, last, behind, name)
    return Location(code.co_filename, line, function=name)


def _characters(path: str, first: int, column: int, last: int, end: int) -> tuple[int, int]:
    """Columns from 1 in characters, of offsets from 0 in bytes."""
    import linecache

    def counted(line: int, offset: int) -> int:
        text = linecache.getline(path, line)
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1

    return counted(first, column), counted(last, end)


def standing_at(frame: FrameType) -> Location:
    """Where the program is."""
    return user_place(sites(frame))[0]


def user_place(found: list[Site]) -> tuple[Location, tuple[Location, ...]]:
    """The program's own innermost place, and the calls that led there; the library's where none of
    the program's own code is running."""
    own = [each for each in found if each.kind == "user"] or found
    places = [place_at(each.code, each.offset, each.line) for each in own]
    if not places:
        return Location("", 0), ()
    return places[-1], tuple(places[:-1])
