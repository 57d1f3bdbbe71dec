"""Attributes of other people's modules and classes, replaced for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueloop.doctor.runtime import uncompiled
from trueloop.doctor.runtime.frames import passed_over

_ABSENT = object()


class Patches:
    """Replacements that `undo` takes back, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._hooks: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Put `wrap(original)` in place of `owner.name`, if there is one.

        What is written in `owner` itself is wrapped as it is written there, so that a class
        method or a static method stays one.
        """
        original = getattr(owner, name, _ABSENT)
        if original is _ABSENT:
            return
        own = vars(owner).get(name, _ABSENT)
        replacement = passed_over(wrap(original))
        uncompiled.leave(replacement.__code__)
        replacement.__wrapped__ = original
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            if hasattr(original, attribute):
                setattr(replacement, attribute, getattr(original, attribute))
        # TorchScript compiles a function from its source: give it the one that has some.
        replacement.__prepare_scriptable__ = lambda: original
        setattr(owner, name, replacement)
        self._undo.append(lambda: self._restore(owner, name, own, replacement))

    @staticmethod
    def _restore(owner: Any, name: str, own: Any, replacement: Any) -> None:
        if vars(owner).get(name) is not replacement:
            return  # somebody else has replaced it since, and calls ours, which is now idle
        if own is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    def add(self, undo: Callable[[], None], *, is_step_hook: bool = False) -> None:
        """Something else to take back: a hook's `remove`."""
        (self._hooks if is_step_hook else self._undo).append(undo)

    def undo(self, *, in_step: bool = False) -> None:
        """Take all back; `in_step`, all but the hooks that torch is going through just now."""
        while self._undo:
            self._undo.pop()()
        while self._hooks and not in_step:
            self._hooks.pop()()
