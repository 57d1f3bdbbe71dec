"""mixup and CutMix: what they compute, against loops; their randomness, and the loss of their
targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

import trueloop
from bits import same
from trueloop import Checkpoints, Feed, load_checkpoint, transforms
from trueloop.errors import ConfigError, DataError
from trueloop.feed.draws import Draws

CLASSES = 5


def batch(size: int = 8, shape: tuple[int, ...] = (3, 7, 9)) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(size, *shape, generator=generator)
    return images, torch.randint(CLASSES, (size,), generator=generator)


def draws(first: int = 0, *, seed: int = 0, epoch: int = 0, size: int = 8) -> Draws:
    return Draws(seed, epoch, np.arange(first, first + size))


def test_mixup_against_a_loop() -> None:
    x, y = batch()
    found, soft = transforms.mixup(0.4, classes=CLASSES)((x, y), draws())
    shares = draws().generator().beta(0.4, 0.4, 8)
    for i, share in enumerate(shares):
        mixed = share * x[i].double() + (1 - share) * x[i - 1].double()
        assert torch.allclose(found[i].double(), mixed, atol=1e-6)
        target = torch.zeros(CLASSES, dtype=torch.float64)
        target[y[i]] += share
        target[y[i - 1]] += 1 - share
        assert torch.allclose(soft[i].double(), target, atol=1e-6)
    assert soft.dtype == found.dtype == torch.float32


def test_cutmix_against_the_paper_s_code() -> None:
    """`rand_bbox` of Yun et al., image by image."""
    x, y = batch(64)
    found, soft = transforms.cutmix(1.0, classes=CLASSES)((x, y), draws(size=64))
    generator = draws(size=64).generator()
    shares, centres = generator.beta(1.0, 1.0, 64), generator.random_sample((64, 2))
    height, width = x.shape[2:]
    for i, (share, centre) in enumerate(zip(shares, centres, strict=True)):
        cut_h, cut_w = int(height * np.sqrt(1 - share)), int(width * np.sqrt(1 - share))
        cy, cx = int(centre[0] * height), int(centre[1] * width)
        top, bottom = np.clip([cy - cut_h // 2, cy + cut_h // 2], 0, height)
        left, right = np.clip([cx - cut_w // 2, cx + cut_w // 2], 0, width)
        image = x[i].clone()
        image[:, top:bottom, left:right] = x[i - 1][:, top:bottom, left:right]
        assert torch.equal(found[i], image)
        kept = 1 - (bottom - top) * (right - left) / (height * width)
        target = torch.zeros(CLASSES, dtype=torch.float64)
        target[y[i]] += kept
        target[y[i - 1]] += 1 - kept
        assert torch.allclose(soft[i].double(), target, atol=1e-6)
    assert 0 < (found != x).float().mean() < 0.6


@pytest.mark.parametrize("criterion", [nn.CrossEntropyLoss(), "multiclass"])
def test_the_loss_is_that_of_both_targets(criterion: Any) -> None:
    x, y = batch()
    if criterion == "multiclass":
        criterion = trueloop.losses.for_task("multiclass", classes=CLASSES)
    _, soft = transforms.mixup(1.0, classes=CLASSES)((x, y), draws())
    logits = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(2))
    share = torch.as_tensor(draws().generator().beta(1.0, 1.0, 8))
    each = [
        nn.functional.cross_entropy(logits.double(), labels, reduction="none")
        for labels in (y, y.roll(1))
    ]
    expected = (share * each[0] + (1 - share) * each[1]).mean()
    assert float(criterion(logits, soft)) == pytest.approx(float(expected), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    mix=st.sampled_from([transforms.mixup, transforms.cutmix]),
    alpha=st.floats(0.05, 5.0),
    size=st.integers(1, 9),
    first=st.integers(0, 99),
)
def test_targets_stay_probabilities_and_pixels_within_the_batch(
    mix: Any, alpha: float, size: int, first: int
) -> None:
    x, y = batch(size, (1, 4, 6))
    found, soft = mix(alpha, classes=CLASSES)((x, y), draws(first, size=size))
    assert found.shape == x.shape
    assert torch.allclose(soft.sum(1), torch.ones(size), atol=1e-5)
    assert bool((soft >= 0).all())
    assert x.min() - 1e-6 <= found.min() <= found.max() <= x.max() + 1e-6
    if size == 1:
        assert torch.allclose(found, x)


def test_a_batch_is_mixed_by_seed_epoch_and_place() -> None:
    both = transforms.random_choice(
        transforms.mixup(1.0, classes=CLASSES), transforms.cutmix(classes=CLASSES)
    )
    one = both(batch(), draws())
    assert same(one, both(batch(), draws()))
    others = [draws(8), draws(seed=1), draws(epoch=1)]
    assert not any(torch.equal(one[0], both(batch(), other)[0]) for other in others)
    blends = [both(batch(), draws(epoch=epoch))[0] for epoch in range(64)]
    x = batch()[0]
    cut = sum(bool(((found == x) | (found == x.roll(1, 0))).all()) for found in blends)
    assert 20 < cut < 44, "each is chosen about as often"


def test_float_targets_are_mixed_as_the_inputs_are() -> None:
    x = batch(shape=(3,))[0]
    found, targets = transforms.mixup(1.0)((x, x * 2 + 1), draws())
    assert torch.allclose(targets, found * 2 + 1, atol=1e-6)


def test_a_run_goes_on_exactly(tmp_path: Path) -> None:
    images, labels = batch(40)

    def noisy(batch: Any, draws: Draws) -> Any:
        return batch[0] + 0.1 * draws(1)[:, :, None, None], batch[1]

    def feed() -> Feed:
        mix = transforms.random_choice(
            transforms.mixup(classes=CLASSES), transforms.cutmix(classes=CLASSES)
        )
        return Feed((images, labels), 8, shuffle=True, transform=transforms.compose(noisy, mix))

    def step() -> trueloop.Step:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 7 * 9, CLASSES))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return trueloop.Step(model, optimizer, trueloop.supervised(nn.CrossEntropyLoss()))

    whole, first, second = step(), step(), step()
    trueloop.fit(whole, feed(), updates=13)
    kept = Checkpoints(tmp_path, keep_best=None)
    trueloop.fit(first, feed(), updates=7, checkpoints=kept)
    trueloop.fit(second, feed(), updates=13, resume_from=load_checkpoint(tmp_path))
    assert same(whole.state_dict()["model"], second.state_dict()["model"])


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda: transforms.mixup(0), ConfigError, "alpha=0 must be above 0"),
        (lambda: transforms.cutmix(classes=1), ConfigError, "classes"),
        (lambda: transforms.compose(), ConfigError, r"write compose\(mixup\(\), cutmix\(\)\)"),
        (lambda: transforms.random_choice(3), ConfigError, r"transforms\[0\]=3 is not a function"),
        (
            lambda: transforms.mixup()(batch(), draws()),
            DataError,
            "are class indices .*write classes=10",
        ),
        (
            lambda: transforms.mixup(classes=3)(batch(), draws()),
            DataError,
            r"have the class 4.*write classes=5",
        ),
        (
            lambda: transforms.mixup(classes=5)((batch()[0].byte(), batch()[1]), draws()),
            DataError,
            r"these are torch\.uint8: write compose\(lambda",
        ),
        (lambda: transforms.cutmix()(batch(shape=(4,)), draws()), DataError, r"\(B, C, H, W\)"),
        (lambda: transforms.mixup()({"x": batch()[0]}, draws()), DataError, "two tensors"),
    ],
)
def test_what_cannot_be_mixed_is_refused(wrong: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        wrong()
