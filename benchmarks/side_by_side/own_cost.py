"""What an update costs beside its computation, as the model grows from 10³ to 10⁸ parameters.

Multilayer perceptrons of growing width and depth; the largest has 148 parameter tensors, as many as
GPT-2 124M. Batches of 16, Adam (fused), gradients clipped to a norm of 1, one thread.

Timed, update by update, is `next(batches)` and `step(batch)`; taken off is the time within the
computation: the forward and the loss, autograd's engine, the norms, the clip's multiplication, the
optimizer's kernel. The same is done with a bare loop, update by update in turns: it calls
`loss.backward()` and `optimizer.step()` on one batch, and besides has only to gather the gradients,
to free the graph and to set the gradients to None. The difference of the two is our own cost; it is
below 0 where those two calls cost more beside their kernels than all that `Step` and `Feed` do.

With compile="step" the computation is the compiled graph, and there is no bare loop: our own cost
is all that an update takes beside its graph.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from side_by_side.loops import Job
from side_by_side.workload import MEMORY, Figure, Goal, Settings, Turn, Workload

OWN, BARE, WHOLE = "own cost, µs", "bare loop's, µs", "whole update, µs"
COMPILED = ", compile=step"
# Of parameters: hidden width, linear layers.
SIZES = {
    "10³": (20, 4),
    "10⁴": (34, 10),
    "10⁵": (77, 18),
    "10⁶": (174, 34),
    "10⁷": (393, 66),
    "10⁸": (1176, 74),
}
BATCH, CLIP = 16, 1.0


class Computation:
    """Adds up the time within the operations of an update, whoever calls them."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of_operations(self) -> None:
        """Count what an eager update calls beside the forward."""
        for owner, name in (
            # `loss.backward()` calls it by the first of these names, `Step` by the second.
            (torch.autograd, "_engine_run_backward"),
            (torch.autograd.graph, "_engine_run_backward"),
            (torch, "_foreach_norm"),
            (torch, "stack"),
            (torch.linalg, "vector_norm"),
            (torch, "clamp"),
            (torch, "_foreach_mul_"),
            (torch, "_foreach_add_"),
            (torch, "_fused_adam_"),
        ):
            setattr(owner, name, self._timed(getattr(owner, name)))

    def of(self, *modules: nn.Module) -> None:
        """Count their `forward`."""
        for module in modules:
            module.forward = self._timed(module.forward)

    def of_graphs(self) -> None:
        """Count the graphs of compiled updates."""
        from trueloop.step import lowering

        lower: Callable[..., Any] = lowering.LOWER
        lowering.LOWER = lambda *given: self._timed(lower(*given))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            result = function(*args, **options)
            self.seconds += time.perf_counter() - started
            return result

        return timed


def bare(job: Job, clock: Computation) -> Callable[[], None]:
    model, criterion = job.model(), nn.CrossEntropyLoss()
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=job.lr, fused=True)
    clock.of(model, criterion)
    inputs, targets = (part[:BATCH].clone() for part in job.data())

    def update() -> None:
        loss = criterion(model(inputs), targets)
        loss.backward()
        gradients = [parameter.grad for parameter in parameters]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if norm.item() > CLIP:
            torch._foreach_mul_(gradients, torch.clamp(CLIP / (norm + 1e-6), max=1.0))
        optimizer.step()
        for parameter in parameters:
            parameter.grad = None

    return update


def ours(job: Job, clock: Computation, *, compiled: bool = False) -> Callable[[], object]:
    import trueloop

    model, criterion = job.model(), nn.CrossEntropyLoss()
    optimizer = trueloop.optimizers.adam(model, job.lr)
    if compiled:
        clock.of_graphs()
    else:
        clock.of(model, criterion)
    compile = "step" if compiled else None
    loss_fn = trueloop.supervised(criterion)
    step = trueloop.Step(model, optimizer, loss_fn, clip_norm=CLIP, compile=compile)
    feed = trueloop.Feed(job.data(), BATCH, shuffle=True)

    def endless() -> Iterator[Any]:
        epoch = 0
        while True:
            yield from feed.epoch(epoch)
            epoch += 1

    batches = endless()
    return lambda: step(next(batches))


def timed(update: Callable[[], object], clock: Computation) -> tuple[float, float]:
    """Microseconds of an update beside its computation, and of all of it."""
    clock.seconds = 0.0
    started = time.perf_counter()
    update()
    whole = time.perf_counter() - started
    return (whole - clock.seconds) * 1e6, whole * 1e6


def contender(width: int, layers: int, *, compiled: bool = False) -> Callable[[Settings], Turn]:
    def make(settings: Settings) -> Turn:
        job = Job(sizes=(8, *[width] * (layers - 1), 3), samples=64 * BATCH, batch=BATCH)
        size = sum(parameter.numel() for parameter in job.model().parameters())
        updates = 5 if settings.quick else max(5, min(400, 30_000_000 // size))
        clock = Computation()
        mine = ours(job, clock, compiled=compiled)
        other: Callable[[], object] | None = None
        if not compiled:
            clock.of_operations()
            other = bare(job, clock)

        def turn() -> dict[str, float]:
            found = [
                (timed(mine, clock), timed(other, clock) if other else (0.0, 0.0))
                for _ in range(updates)
            ]
            return {
                OWN: statistics.median(our[0] - bare[0] for our, bare in found),
                BARE: statistics.median(bare[0] for _, bare in found),
                WHOLE: statistics.median(our[1] for our, _ in found),
            }

        return turn

    return make


CONTENDERS = {name: contender(*size) for name, size in SIZES.items()} | {
    name + COMPILED: contender(*size, compiled=True) for name, size in SIZES.items()
}
WORKLOAD = Workload(
    title="our own cost of an update, by the model's parameters, one thread",
    threads=1,
    figures=(
        Figure(OWN), Figure(BARE), Figure(WHOLE, digits=0), Figure(MEMORY, digits=0),
    ),
    contenders=CONTENDERS,
    compared=False,
    goals=tuple(
        Goal(f"µs of our own per update at {name} parameters", OWN, name, at_most=40)
        for name in CONTENDERS
    ),
)  # fmt: skip
