"""What `torch.compile` leaves to Python of the watcher: a frame alone, or all that it calls."""

from __future__ import annotations

import sys
from types import CodeType, ModuleType

import pytest

from trueloop.doctor.live.frames.user_frames import passed_over
from trueloop.doctor.live.nonfinite.recent_calls import RecentCalls
from trueloop.doctor.live.patches import dynamo_skip


def test_what_calls_the_program_is_left_without_what_it_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mark decides it, not the name of a parameter."""
    alone: list[CodeType] = []
    below: list[CodeType] = []
    monkeypatch.setattr(dynamo_skip, "skipped_by_compiler", lambda: (alone.append, below.append))

    @passed_over
    def calls_it(inner: object) -> None: ...
    def does_not(original: object) -> None: ...

    marked = [calls_it.__code__, RecentCalls.run.__code__]
    others = [does_not.__code__, RecentCalls.begin.__code__]
    for code in (*marked, *others):
        dynamo_skip.leave(code)
    assert (alone, below) == (marked, others)


def test_a_module_that_is_imported_later_is_left_too(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo_skip.leave_to_python()
    left: list[CodeType] = []
    monkeypatch.setattr(dynamo_skip, "skipped_by_compiler", lambda: (left.append, left.append))
    monkeypatch.setattr(dynamo_skip, "_left", set(dynamo_skip._left))
    dynamo_skip.leave_to_python()
    assert left == []
    for name in ("trueloop.doctor.live.later", "of_somebody_else"):
        module = ModuleType(name)
        exec("def act(): ...", vars(module))
        monkeypatch.setitem(sys.modules, name, module)
    dynamo_skip.leave_to_python()
    assert left == [sys.modules["trueloop.doctor.live.later"].act.__code__]
