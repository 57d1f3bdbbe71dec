"""Named ranges around the phases of an update, for as long as somebody wants them.

They are wrappers in the instances of one step, put there and taken away again: a step that nobody
measures pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from trueloop.step.base import StepBase

FORWARD, BACKWARD = "forward and loss", "backward"
CLIP, OPTIMIZER = "norm and clip", "optimizer"
GRAPH, EVALUATION = "compiled graph", "evaluation"
PHASES = (FORWARD, BACKWARD, CLIP, OPTIMIZER, GRAPH, EVALUATION)
"""In the order of an update; the graph is all of them, where an update is compiled."""

Mark = Callable[[str], AbstractContextManager[Any]]


def planned_updates(step: StepBase) -> int | None:
    """How many updates the planned run has; None where that is not known."""
    return None if step._plan is None else step._plan.ticks("update")


@contextmanager
def marked(step: StepBase, mark: Mark) -> Iterator[None]:
    """Within it, each phase of an update runs in `mark(its name)`."""
    with ExitStack() as stack:
        surround(stack, step, "_loss", mark, FORWARD)
        surround(stack, step.precision, "backward", mark, BACKWARD)
        surround(stack, step, "_apply", mark, OPTIMIZER)
        _mark_clip(stack, step, mark)
        surround(stack, step, "evaluating", mark, EVALUATION, whole=True)
        if step._compiled is not None:
            for name in ("_run", "_end"):
                surround(stack, step._compiled, name, mark, GRAPH)
        yield


def surround(
    stack: ExitStack, owner: Any, method: str, mark: Mark, name: str, *, whole: bool = False
) -> None:
    """Let `owner.method` run in `mark(name)` until the stack is closed; `whole`: the context that
    it returns does too."""
    call = getattr(owner, method)

    def marked_call(*args: Any, **options: Any) -> Any:
        with mark(name):
            return call(*args, **options)

    @contextmanager
    def marked_context(*args: Any, **options: Any) -> Iterator[Any]:
        with mark(name), call(*args, **options) as value:
            yield value

    replace(stack, owner, method, marked_context if whole else marked_call)


def replace(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute until the stack is closed."""
    missing = object()
    before = vars(owner).get(name, missing)

    def put_back() -> None:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    setattr(owner, name, value)
    stack.callback(put_back)


def _mark_clip(stack: ExitStack, step: StepBase, mark: Mark) -> None:
    """Unscale, divide, norm and clip are between two calls: from the first of them to the
    optimizer's step, or, without one, to the record."""
    opened = stack.enter_context(ExitStack())

    def begins(owner: Any, method: str) -> None:
        call = getattr(owner, method)

        def begin(*args: Any) -> Any:
            opened.close()  # of an update that an error has ended
            opened.enter_context(mark(CLIP))
            return call(*args)

        replace(stack, owner, method, begin)

    def ends(owner: Any, method: str) -> None:
        call = getattr(owner, method)

        def end(*args: Any, **options: Any) -> Any:
            opened.close()
            return call(*args, **options)

        replace(stack, owner, method, end)

    begins(step.precision, "unscale") if step.precision.scales else begins(step._gradients, "dense")
    ends(step, "_apply")
    ends(step, "_record")
