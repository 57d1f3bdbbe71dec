"""The stack as the program sees it: the frames that it would have without the watcher, and none of
ours.

Warnings and `logging` pass over the frames of Python's import system, which ours pretend to be
(`frames.passed_over`). `traceback` and `inspect` show every frame: their walks are replaced by ones
that leave ours out. A warning that C code raises names the innermost frame of all, whatever it is:
`from_program` calls C functions in a frame at the program's place.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.patches.patching import Patch, disguised

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import R

_RUNPY = "<frozen runpy>"


# ---------------------------------------------------------------------- traceback, inspect, threads


def is_hidden(code: CodeType) -> bool:
    """A frame with this code is ours."""
    return user_frames.is_watching(code)


def _ends(frame: FrameType) -> bool:
    """The frames from here outwards are not the program's."""
    return frame.f_code in user_frames.stages()


def _walk_tb(
    original: Callable[[TracebackType | None], Iterator[Any]],
) -> Callable[[TracebackType | None], Iterator[Any]]:
    def walk_tb(tb: TracebackType | None) -> Iterator[Any]:
        whole = list(original(tb))
        shown = [found for found in whole if not is_hidden(found[0].f_code)]
        yield from shown or whole  # who asks about one frame alone gets it

    return walk_tb


def _walk_stack(
    original: Callable[[FrameType | None], Iterator[Any]],
) -> Callable[[FrameType | None], Iterator[Any]]:
    def walk_stack(f: FrameType | None) -> Iterator[Any]:
        walk = original(f)
        if f is None:
            next(walk, None)  # it counts its callers, and this generator is one more
        for found in walk:
            if _ends(found[0]):
                return
            if not is_hidden(found[0].f_code):
                yield found

    return walk_stack


def _outer_frames(
    original: Callable[[FrameType, int], list[Any]],
) -> Callable[[FrameType, int], list[Any]]:
    def getouterframes(frame: FrameType, context: int = 1) -> list[Any]:
        found = original(frame, context)
        end = next((at for at, each in enumerate(found) if _ends(each[0])), len(found))
        return [each for each in found[:end] if not is_hidden(each[0].f_code)]

    return getouterframes


def _inner_frames(
    original: Callable[[TracebackType, int], list[Any]],
) -> Callable[[TracebackType, int], list[Any]]:
    def getinnerframes(tb: TracebackType, context: int = 1) -> list[Any]:
        whole = original(tb, context)
        return [each for each in whole if not is_hidden(each[0].f_code)] or whole

    return getinnerframes


def _thread_hook(original: Callable[[Any], R]) -> Callable[[Any], R]:
    """Of an exception that ends a thread; Python prints it without `traceback`."""

    def excepthook(args: Any) -> R:
        kept = strip(args.exc_traceback)
        if kept is not args.exc_traceback:
            values = (args.exc_type, args.exc_value, kept, args.thread)
            args = threading.ExceptHookArgs(values)
        return original(args)

    return excepthook


def _find_caller(original: Callable[[Any, bool, int], R]) -> Callable[[Any, bool, int], R]:
    """`logging` takes the outermost frame where a `stacklevel` reaches beyond it."""

    def findCaller(self: Any, stack_info: bool = False, stacklevel: int = 1) -> R:  # noqa: N802
        if stacklevel > 1:
            stacklevel = min(stacklevel, _depth(sys._getframe(1)))
        return original(self, stack_info, stacklevel)

    return findCaller


def _depth(frame: FrameType | None) -> int:
    """Frames that `logging` counts, from the program's outermost one to this one."""
    source = vars(sys.modules["logging"])["_srcfile"]
    count = 0
    while frame is not None and not _ends(frame):
        path = frame.f_code.co_filename
        inside = path == source or ("importlib" in path and "_bootstrap" in path)
        count += not inside
        frame = frame.f_back
    return max(1, count)


def strip(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without our frames; the others are linked again, in place."""
    shown: list[TracebackType] = []
    while trace is not None:
        if not is_hidden(trace.tb_frame.f_code):
            shown.append(trace)
        trace = trace.tb_next
    for each, inner in zip(shown, [*shown[1:], None], strict=False):
        each.tb_next = inner
    return shown[0] if shown else None


_PLACES: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("traceback", "walk_tb", _walk_tb),
    ("traceback", "_walk_tb_with_full_positions", _walk_tb),
    ("traceback", "walk_stack", _walk_stack),
    ("inspect", "getouterframes", _outer_frames),
    ("inspect", "getinnerframes", _inner_frames),
)


class CleanStacks:
    """Leaves our frames out where the program looks at its stack, from `put_on` to `take_off`."""

    def __init__(self) -> None:
        self._patches: list[Patch] = []
        self._has_logging = False

    def put_on(self) -> None:
        import inspect
        import traceback

        modules = {"traceback": traceback, "inspect": inspect}
        for module, name, wrap in _PLACES:
            self._patch(modules[module], name, wrap)
        self._patch(threading, "excepthook", _thread_hook)
        self.add_logging()

    def take_off(self) -> None:
        while self._patches:
            self._patches.pop().take_off()
        self._has_logging = False

    def add_logging(self) -> None:
        """Do the same for `logging`, once something has imported it: torch does."""
        logging = sys.modules.get("logging")
        if logging is not None and not self._has_logging:
            self._has_logging = True
            self._patch(logging.Logger, "findCaller", _find_caller)

    def _patch(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = vars(owner).get(name)
        if original is None:
            return
        patch = Patch(owner, name, disguised(wrap(original), original))
        patch.put_on()
        self._patches.append(patch)


# ---------------------------------------------------------------------- what calls the program


def hide_callers(frame: FrameType | None) -> None:
    """Let warnings skip the callers of the program, from `frame` outwards: unwatched, nothing calls
    it, and a `stacklevel` that reaches beyond it names `sys`.

    Nothing is done where somebody else's function is among the callers.
    """
    callers: list[CodeType] = []
    while frame is not None:
        code = frame.f_code
        is_entry = frame.f_back is None and code.co_name == "<module>"
        is_main = code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__"
        is_ours = user_frames.is_ours(code.co_filename) or user_frames.is_watching(code)
        if not (is_ours or is_entry or is_main or code.co_filename == _RUNPY):
            return
        callers.append(code)
        frame = frame.f_back
    runpy = sys.modules.get("runpy")
    functions = [f for f in vars(runpy).values() if isinstance(f, FunctionType)] if runpy else []
    for code in callers:
        # The program may call it too, and then its frames are to be seen.
        for function in functions:
            if function.__code__ is code:
                function.__code__ = code.replace(co_filename=code.co_filename)
        user_frames.pass_over(code)
