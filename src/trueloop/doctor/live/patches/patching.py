"""Attributes of other people's modules and classes, replaced for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.patches import dynamo_skip

_ABSENT = object()


class Patch:
    """One replacement. It can be taken off for a while."""

    def __init__(self, owner: Any, name: str, replacement: Any) -> None:
        self._owner = owner
        self._name = name
        self._own = vars(owner).get(name, _ABSENT)
        self._replacement = replacement
        self._is_on = False

    def _is(self, value: Any) -> bool:
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


def _called(original: Any) -> Any:
    """The function that calls the original, as its warnings are to find it."""
    if hasattr(original, "__code__"):
        return original
    # Imported late: it imports torch, which the program must do first.
    from trueloop.doctor.live.frames.c_calls import from_program

    return from_program(original)


class Patches:
    """Replacements that `undo` takes back, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._hooks: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> Patch | None:
        """Put `wrap(original)` in place of `owner.name`, if there is one.

        What is written in `owner` itself is wrapped as it is written there, so that a class
        method or a static method stays one.
        """
        original = getattr(owner, name, _ABSENT)
        if original is _ABSENT:
            return None
        replacement = passed_over(wrap(_called(original)))
        dynamo_skip.leave(replacement.__code__)
        replacement.__wrapped__ = original
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            if hasattr(original, attribute):
                setattr(replacement, attribute, getattr(original, attribute))
        # TorchScript compiles a function from its source: give it the one that has some.
        replacement.__prepare_scriptable__ = lambda: original
        patch = Patch(owner, name, replacement)
        patch.put_on()
        self._undo.append(patch.take_off)
        return patch

    def add(self, undo: Callable[[], None], *, is_step_hook: bool = False) -> None:
        """Something else to take back: a hook's `remove`."""
        (self._hooks if is_step_hook else self._undo).append(undo)

    def undo(self, *, in_step: bool = False) -> None:
        """Take all back; `in_step`, all but the hooks that torch is going through just now."""
        while self._undo:
            self._undo.pop()()
        while self._hooks and not in_step:
            self._hooks.pop()()
