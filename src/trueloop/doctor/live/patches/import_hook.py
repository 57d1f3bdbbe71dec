"""The moment that the program's own `import torch` is done.

A program may set environment variables, or the number of threads, before it imports torch: so
nothing of ours imports torch first, and what is put into torch is put there directly afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from trueloop.doctor.live.frames.user_frames import passed_over

if TYPE_CHECKING:
    from importlib.abc import Loader


class ImportHook:
    """Calls `then` once a module has been imported; at once if it is there already.

    It is in `sys.meta_path` until then, and answers for no other module.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def await_it(self) -> None:
        if self._name in sys.modules:
            self._then()
        else:
            sys.meta_path.insert(0, self)

    def withdraw(self) -> None:
        """Await it no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    @passed_over
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the later finders find, with a loader that calls back."""
        if fullname != self._name:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                self._attend(spec.loader)
                return spec
        return None

    def _attend(self, loader: Loader | None) -> None:
        """The loader was made only for this spec; programs also ask for specs without importing
        anything, so the loading decides."""
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        @passed_over  # what is imported may warn of its importer
        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            original(module)
            if self in sys.meta_path:
                self.withdraw()
                self._then()

        try:
            setattr(loader, "exec_module", exec_module)  # noqa: B010
        except AttributeError:  # a class that is its own loader: the program goes unwatched
            self.withdraw()
