"""Augmentation: pure functions of the draws that leave an image within its range."""

from __future__ import annotations

import pytest
import torch

from trueloop import Feed
from trueloop.tasks.images.augment import Augment, flip, shift, warp


def images(count=6, channels=3, height=12, width=10) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = (count, channels, height, width)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def test_a_shift_moves_whole_pixels_and_mirrors_at_the_edge():
    batch = images(3)
    # Draws of 0, 1/2 and almost 1 with a reach of 2: two to one side, none, two to the other.
    across = torch.tensor([0.0, 0.5, 0.999])
    moved = shift(batch, (2, 2), across, torch.full((3,), 0.5))
    assert torch.equal(moved[1], batch[1])
    assert torch.equal(moved[0][:, :, 2:], batch[0][:, :, :-2])
    assert torch.equal(moved[0][:, :, :2], batch[0][:, :, 1:3].flip(2))
    assert torch.equal(moved[2][:, :, :-2], batch[2][:, :, 2:])
    down = shift(batch, (2, 2), torch.full((3,), 0.5), across)
    assert torch.equal(down[0][:, 2:], batch[0][:, :-2])
    assert torch.equal(down[2][:, :-2], batch[2][:, 2:])


def test_every_shift_is_as_frequent_as_any_other():
    reach, steps = 2, 1000
    draws = torch.arange(steps) / steps
    batch = torch.zeros(steps, 1, 1, 9, dtype=torch.uint8)
    batch[:, 0, 0, 4] = 1
    places = shift(batch, (0, reach), draws, torch.zeros(steps)).flatten(1).argmax(1)
    assert torch.bincount(places, minlength=9).tolist() == [0, 0, 200, 200, 200, 200, 200, 0, 0]


def test_a_flip_mirrors_left_and_right():
    batch = images(2)
    flipped = flip(batch, torch.tensor([0.2, 0.7]))
    assert torch.equal(flipped[0], batch[0].flip(2))
    assert torch.equal(flipped[1], batch[1])


def test_a_warp_by_nothing_changes_nothing():
    batch = images()
    assert torch.equal(warp(batch, 10, 0.1, 0.1, torch.full((6, 4), 0.5)), batch)


def test_a_warp_by_a_quarter_turn_is_a_quarter_turn():
    square = images(height=11, width=11)
    draws = torch.full((6, 4), 0.5)
    draws[:, 0] = 1.0
    turned = warp(square, 90, 0.1, 0.1, draws)
    clockwise, other = square.rot90(-1, (2, 3)), square.rot90(1, (2, 3))
    assert torch.equal(turned, clockwise) or torch.equal(turned, other)


def test_a_turned_oblong_image_keeps_its_proportions():
    # A small square in the middle of an oblong image, turned by 45°, keeps its area.
    batch = torch.zeros(1, 1, 40, 80)
    batch[:, :, 12:28, 32:48] = 1
    draws = torch.full((1, 4), 0.5)
    draws[:, 0] = 1.0
    turned = warp(batch, 45, 0, 0, draws)
    assert turned.sum().item() == pytest.approx(16 * 16, rel=0.03)
    high, wide = (turned > 0.5).any(3).sum().item(), (turned > 0.5).any(2).sum().item()
    assert abs(high - wide) <= 2
    assert abs(high - 16 * 2**0.5) <= 2


def test_a_warp_scales_and_moves():
    batch = torch.zeros(2, 1, 40, 40)
    batch[:, :, 15:25, 15:25] = 1
    draws = torch.full((2, 4), 0.5)
    draws[0, 1] = 1.0
    assert warp(batch, 0, 0.2, 0, draws)[0].sum().item() == pytest.approx(144, rel=0.02)
    draws[1, 2] = 1.0
    moved = warp(batch, 0, 0, 0.1, draws)[1, 0]
    centre = (moved.sum(0) * torch.arange(40.0)).sum() / moved.sum()
    assert abs(abs(centre.item() - 19.5) - 4) < 0.05


@pytest.mark.parametrize("augment", [Augment(warp=True, mirror=False), Augment(False, True)])
def test_the_same_draws_give_the_same_images(augment):
    generator = torch.Generator().manual_seed(1)
    numbers = [torch.rand(6, 4, generator=generator) for _ in range(3)]
    batch = (images(), torch.arange(6))

    def drawn():
        rest = iter(numbers)
        return lambda k: next(rest)[:, :k]

    torch.manual_seed(1)
    first = augment(batch, drawn())
    torch.manual_seed(2)
    again = augment(batch, drawn())
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], torch.arange(6))
    assert first[0].dtype == torch.uint8
    assert first[0].shape == batch[0].shape
    assert not torch.equal(first[0], batch[0])
    # Each image by its own numbers alone, whichever batch it stands in.
    part = [n[2:4] for n in numbers]
    rest = iter(part)
    alone = augment((batch[0][2:4], batch[1][2:4]), lambda k: next(rest)[:, :k])
    assert torch.equal(alone[0], first[0][2:4])


def test_through_a_feed_it_depends_on_epoch_and_sample_only():
    data = (images(20, 1), torch.arange(20))
    augment = Augment(warp=True, mirror=False)

    def epoch(number, batch_size):
        feed = Feed(data, batch_size, shuffle=True, seed=3, transform=augment)
        batches = list(feed.epoch(number))
        labels = torch.cat([y for _, y in batches])
        return torch.cat([x for x, _ in batches])[labels.argsort()]

    assert torch.equal(epoch(0, 5), epoch(0, 8))
    assert not torch.equal(epoch(0, 5), epoch(1, 5))
