"""Bitwise the weights of the plain loop, written out here: no line of ours is in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, OneCycleLR

import trueloop
from trueloop import schedules

UPDATES, EPOCHS = 200, 5
PER_EPOCH = UPDATES // EPOCHS

OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=3e-3),
    "adamw-fused": lambda m: torch.optim.AdamW(m.parameters(), lr=3e-3, fused=True),
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9),
}


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 4)
    )


def make_batches(n: int = PER_EPOCH, size: int = 16) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    centres = torch.randn(4, 6, generator=generator)
    batches = []
    for _ in range(n):
        y = torch.randint(0, 4, (size,), generator=generator)
        batches.append((centres[y] + torch.randn(size, 6, generator=generator), y))
    return batches


def assert_same(ours: nn.Module, theirs: nn.Module) -> None:
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert torch.equal(a, b), f"{name} differs by {(a - b).abs().max()}"


def plain_loop(
    precision: str,
    make_optimizer: Callable[[nn.Module], Optimizer],
    clip: float | None,
    make_scheduler: Callable[[Optimizer], LRScheduler] | None,
    per_epoch: bool,
) -> nn.Module:
    model = make_model()
    optimizer = make_optimizer(model)
    scheduler = make_scheduler(optimizer) if make_scheduler else None
    criterion = nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
    dtype = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    torch.manual_seed(2)
    model.train()
    for _ in range(EPOCHS):
        for inputs, targets in make_batches():
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                loss = criterion(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scheduler is not None and not per_epoch and scaler.get_scale() >= scale:
                scheduler.step()
        if scheduler is not None and per_epoch:
            scheduler.step()
    return model


@pytest.mark.parametrize("per_epoch", [False, True], ids=["per-update", "per-epoch"])
@pytest.mark.parametrize("clip", [None, 0.5], ids=["unclipped", "clipped"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_weights_of_200_updates(
    optimizer: str, precision: str, clip: float | None, per_epoch: bool
) -> None:
    ticks = EPOCHS if per_epoch else UPDATES
    theirs = plain_loop(
        precision, OPTIMIZERS[optimizer], clip, lambda o: CosineAnnealingLR(o, ticks), per_epoch
    )
    model = make_model()
    step = trueloop.Step(
        model,
        OPTIMIZERS[optimizer](model),
        trueloop.supervised(nn.CrossEntropyLoss()),
        schedule=schedules.cosine(tick="epoch" if per_epoch else "update"),
        precision=precision,
        clip_norm=clip,
    )
    step.plan(epochs=EPOCHS, batches=PER_EPOCH)
    torch.manual_seed(2)
    clipped = 0
    for _ in range(EPOCHS):
        for batch in make_batches():
            record = step(batch)
            assert record.grad_norm is not None
            clipped += bool(clip and record.grad_norm > clip)
        step.end_epoch()
    assert step.updates + step.skipped == UPDATES
    assert clip is None or 0 < clipped < UPDATES, "the case must exercise both sides of the clip"
    assert_same(model, theirs)


@pytest.mark.parametrize("accumulate", [3, 4])
def test_even_windows_match_the_loop_that_divides(accumulate: int) -> None:
    theirs = make_model()
    optimizer = OPTIMIZERS["adam"](theirs)
    scheduler = OneCycleLR(optimizer, 3e-3, total_steps=12)
    torch.manual_seed(2)
    for k, (inputs, targets) in enumerate(make_batches(12 * accumulate)):
        (nn.CrossEntropyLoss()(theirs(inputs), targets) / accumulate).backward()
        if (k + 1) % accumulate == 0:
            nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    ours = make_model()
    step = trueloop.Step(
        ours,
        OPTIMIZERS["adam"](ours),
        trueloop.supervised(nn.CrossEntropyLoss()),
        schedule=schedules.one_cycle(),
        accumulate=accumulate,
        clip_norm=1.0,
    )
    step.plan(epochs=1, batches=12 * accumulate)
    torch.manual_seed(2)
    for batch in make_batches(12 * accumulate):
        step(batch)
    assert step.updates == 12
    assert_same(ours, theirs)


def test_clip_by_value_matches_torch() -> None:
    theirs, ours = make_model(), make_model()
    optimizer = OPTIMIZERS["sgd"](theirs)
    step = trueloop.Step(
        ours,
        OPTIMIZERS["sgd"](ours),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_value=0.01,
    )
    torch.manual_seed(2)
    norms = []
    for inputs, targets in make_batches():
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(theirs(inputs), targets).backward()
        norms.append(float(nn.utils.clip_grad_norm_(theirs.parameters(), math.inf)))
        nn.utils.clip_grad_value_(theirs.parameters(), 0.01)
        optimizer.step()
    torch.manual_seed(2)
    records = [step(batch) for batch in make_batches()]
    assert [float(record.grad_norm) for record in records if record.grad_norm is not None] == norms
    assert_same(ours, theirs)


def test_decayed_and_undecayed_groups_clip_by_the_norm_in_the_models_own_order() -> None:
    """Groups reorder the parameters; the order of a sum decides its last bit."""
    theirs, ours = make_model(), make_model()
    optimizer = trueloop.optimizers.adamw(theirs, 3e-3, weight_decay=0.1)
    step = trueloop.Step(
        ours,
        trueloop.optimizers.adamw(ours, 3e-3, weight_decay=0.1),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=0.3,
    )
    torch.manual_seed(2)
    for inputs, targets in make_batches():
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(theirs(inputs), targets).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.3)
        optimizer.step()
    torch.manual_seed(2)
    for batch in make_batches():
        step(batch)
    assert_same(ours, theirs)


def test_a_gan_of_two_steps_matches_the_loop_by_hand() -> None:
    def parts() -> tuple[nn.Module, nn.Module, Optimizer, Optimizer]:
        torch.manual_seed(0)
        g, d = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        adam = torch.optim.Adam
        return g, d, adam(g.parameters(), 1e-2), adam(d.parameters(), 1e-2)

    bce = nn.functional.binary_cross_entropy_with_logits

    def d_loss(g: nn.Module, d: nn.Module, real: Tensor, noise: Tensor) -> Tensor:
        fake = g(noise).detach()
        return bce(d(real), torch.ones(8, 1)) + bce(d(fake), torch.zeros(8, 1))

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(3)
        for _ in range(50):
            yield torch.randn(8, 2, generator=generator), torch.randn(8, 3, generator=generator)

    g, d, og, od = parts()
    for real, noise in batches():
        od.zero_grad()
        d_loss(g, d, real, noise).backward()
        od.step()
        og.zero_grad()
        bce(d(g(noise)), torch.ones(8, 1)).backward()
        og.step()
    g2, d2, og2, od2 = parts()
    step_d = trueloop.Step(d2, od2, lambda m, b: d_loss(g2, m, *b))
    step_g = trueloop.Step(g2, og2, lambda m, b: bce(d2(m(b[1])), torch.ones(8, 1)))
    for batch in batches():
        step_d(batch)
        step_g(batch)
    assert_same(g2, g)
    assert_same(d2, d)


def test_frozen_layers_tied_weights_and_sparse_gradients() -> None:
    def make() -> nn.Module:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Flatten(), nn.Linear(8, 3))
        model.append(nn.Linear(3, 3))
        for p in model[3].parameters():
            p.requires_grad_(False)
        return model

    def batches() -> list[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(4)
        return [
            (torch.randint(0, 10, (5, 2), generator=generator), torch.zeros(5, dtype=torch.long))
            for _ in range(20)
        ]

    theirs, ours = make(), make()
    optimizer = torch.optim.SGD([p for p in theirs.parameters() if p.requires_grad], lr=0.1)
    norms = []
    for x, y in batches():
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(theirs(x), y).backward()
        dense = [p.grad.to_dense() for p in theirs.parameters() if p.grad is not None]
        norms.append(math.sqrt(sum(float(g.double().square().sum()) for g in dense)))
        for p in theirs.parameters():
            if p.grad is not None:
                p.grad = p.grad * min(1.0, 0.5 / (norms[-1] + 1e-6))
        optimizer.step()
    step = trueloop.Step(
        ours,
        torch.optim.SGD([p for p in ours.parameters() if p.requires_grad], lr=0.1),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=0.5,
    )
    found = [float(step(batch).grad_norm) for batch in batches()]  # type: ignore[arg-type]
    assert found == pytest.approx(norms, rel=1e-6)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
