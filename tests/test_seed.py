"""Randomness as a function of its place, and global generators saved as plain data."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from trueloop import seed
from trueloop.errors import ConfigError

words = st.integers(0, 2**64 - 1)


@settings(max_examples=50)
@given(prefix=st.lists(words, max_size=3), word=words)
def test_the_array_form_is_the_scalar_form(prefix: list[int], word: int) -> None:
    found = seed.mix_array(np.array([word], dtype=np.uint64), *prefix)
    assert int(found[0]) == seed.mix(*prefix, word)


def test_every_bit_of_the_input_reaches_every_bit_of_the_output() -> None:
    """Avalanche: flipping one input bit flips each output bit about half of the time."""
    rng = random.Random(0)
    flips = np.zeros((128, 64))
    trials = 400
    for _ in range(trials):
        a, b = rng.getrandbits(64), rng.getrandbits(64)
        base = seed.mix(a, b)
        for bit in range(128):
            other = seed.mix(a ^ (1 << bit if bit < 64 else 0), b ^ (1 << bit >> 64))
            flips[bit] += [(base ^ other) >> k & 1 for k in range(64)]
    share = flips / trials
    assert share.min() > 0.5 - 0.16
    assert share.max() < 0.5 + 0.16


def test_order_and_number_of_words_matter() -> None:
    values = {seed.mix(), seed.mix(0), seed.mix(0, 0), seed.mix(1, 0), seed.mix(0, 1), seed.mix(1)}
    assert len(values) == 6


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_seed_everything_repeats_and_differs_by_seed() -> None:
    seed.seed_everything(1, deterministic=False)
    first = draws()
    seed.seed_everything(1, deterministic=False)
    assert draws() == first
    seed.seed_everything(2, deterministic=False)
    assert draws() != first


def test_deterministic_mode_can_be_switched_on_and_off() -> None:
    seed.seed_everything(0, deterministic=True)
    assert torch.are_deterministic_algorithms_enabled()
    seed.seed_everything(0, deterministic=False)
    assert not torch.are_deterministic_algorithms_enabled()


def test_samples_have_draws_of_their_own() -> None:
    def draw(epoch: int, index: int, base: int) -> float:
        return float(torch.rand((), generator=seed.for_sample(epoch, index, base)))

    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(e, i, s) for e in range(4) for i in range(4) for s in range(4)}) == 64
    seed.seed_everything(5, deterministic=False)
    assert torch.rand((), generator=seed.for_sample(0, 0)) == draw(0, 0, 5)


def test_seeding_a_sample_sets_all_three_generators() -> None:
    with seed.rng_preserved():
        seed.seed_sample(1, 2, 3)
        first = draws()
        seed.seed_sample(1, 2, 3)
        assert draws() == first
        seed.seed_sample(1, 2, 4)
        assert all(a != b for a, b in zip(draws(), first, strict=True))


def test_preserving_leaves_no_trace() -> None:
    seed.seed_everything(3, deterministic=False)
    expected = draws()
    seed.seed_everything(3, deterministic=False)
    with seed.rng_preserved():
        draws()
    assert draws() == expected


def test_the_state_survives_a_file_without_pickle() -> None:
    draws()
    random.gauss(0, 1)  # leaves a cached second value behind
    np.random.randn()
    buffer = io.BytesIO()
    torch.save(seed.rng_state(), buffer)
    expected = draws(), random.gauss(0, 1), np.random.randn()
    buffer.seek(0)
    seed.set_rng_state(torch.load(buffer, weights_only=True))
    assert (draws(), random.gauss(0, 1), np.random.randn()) == expected


@pytest.mark.parametrize("value", [-1, 2**63, 1.0, True, "0"])
def test_seeds_that_are_none(value: object) -> None:
    with pytest.raises(ConfigError, match="seed="):
        seed.check_seed(value)  # type: ignore[arg-type]
