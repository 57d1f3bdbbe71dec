"""Training a character-level GPT: 6 layers, 192 wide, 6 heads, context 128, batches of 12, fp32.

AdamW (fused; decay on matrices), gradients clipped to a norm of 1, the loss read after each update.
Ours, the loop by hand and the floor train the same model, written as nanoGPT's readers write it
(`nanogpt_style.py`): what differs is the loop. By hand is nanoGPT's: contexts from random places,
the learning rate set by the loop. transformers' Trainer has its own GPT-2 of the same size, with
dropout off. The floor is forward, backward and the optimizer's step on one batch.

The ids are random: of 65 kinds, 10⁶ in number. What they say changes nothing of the speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import text_speed
import torch
from nanogpt_style import GPT, make_optimizer, update
from torch import Tensor

from side_by_side.workload import COMPILED, MEMORY, OURS, Figure, Goal, Settings, Turn, Workload

VOCAB, CONTEXT, LAYERS, WIDTH, HEADS, BATCH = 65, 128, 6, 192, 6, 12
LR, UNTIMED, UPDATES = 1e-3, 2, 12
FIGURE = "tokens per second"


def ids() -> Tensor:
    return torch.randint(VOCAB, (1_000_000,), generator=torch.Generator().manual_seed(0))


def model(settings: Settings) -> GPT:
    torch.manual_seed(0)
    return GPT(VOCAB, CONTEXT, 1 if settings.quick else LAYERS, WIDTH, HEADS)


def turns_of(one: Callable[[], object], settings: Settings) -> Turn:
    updates = 1 if settings.quick else UPDATES

    def turn() -> dict[str, float]:
        for _ in range(UNTIMED):
            one()
        started = time.perf_counter()
        for _ in range(updates):
            one()
        return {FIGURE: updates * BATCH * CONTEXT / (time.perf_counter() - started)}

    return turn


def ours(settings: Settings, compile: str | None = None) -> Turn:
    import trueloop
    from trueloop.tasks.text.context_windows import Contexts

    net = model(settings)
    step = trueloop.Step(
        net,
        make_optimizer(net, fused=True),
        lambda model, batch: model(*batch),
        clip_norm=1.0,
        compile=compile,
    )
    feed = trueloop.Feed(Contexts(ids().numpy(), CONTEXT), BATCH, shuffle=True, drop_last=True)

    def endless() -> Iterator[Any]:
        epoch = 0
        while True:
            yield from feed.epoch(epoch)
            epoch += 1

    batches = endless()
    return turns_of(lambda: float(step(next(batches)).loss), settings)


def by_hand(settings: Settings, *, compiled: bool = False) -> Turn:
    net, text = model(settings), ids()
    optimizer = make_optimizer(net, fused=True)
    forward: Any = torch.compile(net) if compiled else net
    return turns_of(lambda: update(forward, optimizer, text, BATCH, LR), settings)


def floor(settings: Settings) -> Turn:
    net = model(settings)
    optimizer = make_optimizer(net, fused=True)
    tokens, targets = torch.randint(VOCAB, (2, BATCH, CONTEXT))

    def one() -> None:
        net(tokens, targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return turns_of(one, settings)


def trainer(settings: Settings) -> Turn:
    size = (1 if settings.quick else LAYERS, WIDTH, HEADS)
    run = text_speed.trainer(ids(), VOCAB, CONTEXT, BATCH, str(settings.scratch), size)
    updates = 1 if settings.quick else UPDATES
    return lambda: {FIGURE: updates * BATCH * CONTEXT / run(updates)}


COMPILED_BY_HAND = "nanoGPT's loop, torch.compile(model)"
WORKLOAD = Workload(
    title="training a character-level GPT (6 layers, 192 wide, context 128)",
    figures=(Figure(FIGURE, digits=0, lower_is_better=False), Figure(MEMORY, digits=0)),
    beside="nanoGPT's loop",
    contenders={
        OURS: ours,
        COMPILED: lambda settings: ours(settings, "step"),
        "nanoGPT's loop": by_hand,
        COMPILED_BY_HAND: lambda settings: by_hand(settings, compiled=True),
        "transformers' Trainer": trainer,
        "floor": floor,
    },
    goals=(
        Goal(
            "compile=step: times as fast as nanoGPT's loop with torch.compile(model)",
            FIGURE,
            COMPILED,
            COMPILED_BY_HAND,
            at_least=1,
        ),
        Goal(
            "times as fast as transformers' Trainer",
            FIGURE,
            OURS,
            "transformers' Trainer",
            at_least=1.15,
        ),
    ),
)
