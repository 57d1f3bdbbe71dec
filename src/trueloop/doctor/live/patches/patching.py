"""Attributes of other people's modules and classes, replaced for a while."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.patches import dynamo_skip

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Hub, Kwargs, P, R

_ABSENT = object()


class Patch:
    """One replacement. It can be taken off for a while."""

    def __init__(self, owner: object, name: str, replacement: object) -> None:
        self._owner = owner
        self._name = name
        self._own = vars(owner).get(name, _ABSENT)
        self._replacement = replacement
        self._is_on = False

    def _is(self, value: object) -> bool:
        return vars(self._owner).get(self._name, _ABSENT) is value

    def put_on(self) -> None:
        if not self._is_on and self._is(self._own):
            setattr(self._owner, self._name, self._replacement)
            self._is_on = True

    def take_off(self) -> None:
        if not self._is_on or not self._is(self._replacement):
            return  # somebody else has replaced it since, and calls ours, which is now idle
        self._is_on = False
        if self._own is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)


def _called(original: Callable[P, R]) -> Callable[P, R]:
    """The function that calls the original, as its warnings are to find it."""
    if hasattr(original, "__code__"):
        return original
    # Imported late: it imports torch, which the program must do first.
    from trueloop.doctor.live.frames.c_calls import from_program

    return from_program(original)


def disguised(replacement: Any, original: object) -> Any:
    """With the names of the original, and passed over where warnings look for the caller."""
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        if hasattr(original, attribute):
            setattr(replacement, attribute, getattr(original, attribute))
    return passed_over(replacement)


class FinishedCall(NamedTuple):
    """A call of the program's that has returned."""

    args: Args
    """With `self`, where it is of a method."""
    kwargs: Kwargs
    result: Any
    frame: FrameType
    """Of the caller."""

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)


class Patches:
    """Replacements that `undo` takes back, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._hooks: list[Callable[[], None]] = []

    def replace(self, owner: object, name: str, wrap: Callable[[Any], Any]) -> Patch | None:
        """Put `wrap(original)` in place of `owner.name`, if there is one.

        What is written in `owner` itself is wrapped as it is written there, so that a class
        method or a static method stays one.
        """
        original: Any = getattr(owner, name, _ABSENT)
        if original is _ABSENT:
            return None
        replacement = disguised(wrap(_called(original)), original)
        dynamo_skip.leave(replacement.__code__)
        replacement.__wrapped__ = original
        # TorchScript compiles a function from its source: give it the one that has some.
        replacement.__prepare_scriptable__ = lambda: original
        patch = Patch(owner, name, replacement)
        patch.put_on()
        self._undo.append(patch.take_off)
        return patch

    def after(
        self, hub: Hub, owner: object, name: str, act: Callable[[FinishedCall], object]
    ) -> None:
        """Call `act` after each call of `owner.name`: no error of it reaches the program."""
        # Imported late, as above.
        from torch.compiler import is_compiling

        def wrap(original: Callable[P, R]) -> Callable[P, R]:
            def call(*args: P.args, **kwargs: P.kwargs) -> R:
                result = original(*args, **kwargs)
                if not is_compiling():
                    hub.guarded(act, FinishedCall(args, kwargs, result, sys._getframe(1)))
                return result

            return call

        self.replace(owner, name, wrap)

    def add(self, undo: Callable[[], None], *, is_step_hook: bool = False) -> None:
        """Something else to take back: a hook's `remove`."""
        (self._hooks if is_step_hook else self._undo).append(undo)

    def undo(self, *, in_step: bool = False) -> None:
        """Take all back; `in_step`, all but the hooks that torch is going through just now."""
        while self._undo:
            self._undo.pop()()
        while self._hooks and not in_step:
            self._hooks.pop()()
