"""Each strategy is transformers' processor of the same name, on 10,000 rows of logits and more:
ties, infinities, one token, all equal, tiny and huge."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from torch import Tensor
from transformers.generation import logits_process as theirs

from trueloop.generate import strategies

CASES = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
ROWS = 40
"""Of each of the 250 examples: 10,000 rows of logits for each strategy."""
SHARES = st.floats(0.001, 1.0) | st.sampled_from([1e-6, 0.1, 0.25, 0.5, 0.9, 0.95, 1 - 1e-7])


@st.composite
def logits(draw: st.DrawFn, rows: int = ROWS) -> Tensor:
    vocab = draw(st.sampled_from([1, 2, 3, 5, 16, 17, 65, 300]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(["normal", "ties", "equal", "one-hot", "holes", "infinite"]))
    scale = draw(st.sampled_from([1e-6, 0.1, 1.0, 8.0, 1e3, 1e30]))
    found = scale * torch.randn(rows, vocab, generator=generator)
    if kind == "ties":
        found = scale * torch.randint(-2, 3, (rows, vocab), generator=generator).float()
    elif kind == "equal":
        found = found[:, :1].expand(rows, vocab).clone()
    elif kind == "one-hot":
        place = torch.randint(vocab, (rows, 1), generator=generator)
        found = torch.full((rows, vocab), -scale).scatter_(1, place, scale)
    elif kind in ("holes", "infinite"):
        hole = torch.rand(rows, vocab, generator=generator) < 0.5
        hole[torch.arange(rows), torch.randint(vocab, (rows,), generator=generator)] = False
        found[hole] = -math.inf if kind == "holes" else math.inf
    return found


def equal(ours: Tensor, reference: Tensor) -> None:
    assert ours.dtype == reference.dtype
    torch.testing.assert_close(ours, reference, rtol=0, atol=0, equal_nan=True)


@CASES
@given(logits(), st.floats(1e-30, 1e30) | st.sampled_from([1.0, 1e-45, 0.7]))
def test_temperature(scores: Tensor, value: float) -> None:
    reference = theirs.TemperatureLogitsWarper(value)(None, scores)
    equal(strategies.temperature(scores, value), reference)


@CASES
@given(logits(), st.integers(1, 400))
def test_top_k(scores: Tensor, k: int) -> None:
    equal(strategies.top_k(scores, k), theirs.TopKLogitsWarper(k)(None, scores))


@CASES
@given(logits(), SHARES)
def test_top_p(scores: Tensor, p: float) -> None:
    equal(strategies.top_p(scores, p), theirs.TopPLogitsWarper(p)(None, scores))


@CASES
@given(logits(), SHARES | st.just(0.0))
def test_min_p(scores: Tensor, p: float) -> None:
    equal(strategies.min_p(scores, p), theirs.MinPLogitsWarper(p)(None, scores))


@CASES
@given(logits(), SHARES.filter(lambda mass: mass < 1))
def test_typical(scores: Tensor, mass: float) -> None:
    equal(strategies.typical(scores, mass), theirs.TypicalLogitsWarper(mass)(None, scores))


@st.composite
def texts(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, tokens padded on the left, and where each row's own begin."""
    scores = draw(logits())
    length = draw(st.integers(1, 12))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    # Few different ones, so that they repeat.
    most = min(scores.shape[1], draw(st.integers(1, 6)))
    tokens = torch.randint(most, (ROWS, length), generator=generator)
    return scores, tokens, torch.randint(length, (ROWS,), generator=generator)


@CASES
@given(texts(), st.floats(0.01, 100.0))
def test_repetition_penalty(case: tuple[Tensor, Tensor, Tensor], penalty: float) -> None:
    scores, tokens, starts = case
    reference = theirs.RepetitionPenaltyLogitsProcessor(penalty)
    equal(strategies.repetition_penalty(scores, tokens, penalty), reference(tokens, scores))
    ragged = strategies.repetition_penalty(scores, tokens, penalty, starts)
    for row, start in list(enumerate(starts.tolist()))[:5]:
        alone = reference(tokens[row : row + 1, start:], scores[row : row + 1])
        equal(ragged[row : row + 1], alone)


@CASES
@given(texts(), st.integers(1, 5))
def test_no_repeat_ngram(case: tuple[Tensor, Tensor, Tensor], size: int) -> None:
    scores, tokens, starts = case
    reference = theirs.NoRepeatNGramLogitsProcessor(size)
    equal(strategies.no_repeat_ngram(scores, tokens, size), reference(tokens, scores))
    ragged = strategies.no_repeat_ngram(scores, tokens, size, starts)
    for row, start in list(enumerate(starts.tolist()))[:5]:
        alone = reference(tokens[row : row + 1, start:], scores[row : row + 1])
        equal(ragged[row : row + 1], alone)


@CASES
@given(logits(), st.integers(0, 3))
def test_without_is_the_rule_of_min_new_tokens(scores: Tensor, written: int) -> None:
    ends = torch.tensor([scores.shape[1] - 1, 0])
    reference = theirs.MinNewTokensLengthLogitsProcessor(4, 2, ends)
    tokens = torch.zeros(ROWS, 4 + written, dtype=torch.long)
    ours = strategies.without(scores, ends) if written < 2 else scores
    equal(ours, reference(tokens, scores))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    scores = torch.randn(3, 9).to(dtype)
    tokens = torch.zeros(3, 2, dtype=torch.long)
    for changed in (
        strategies.temperature(scores, 0.5),
        strategies.top_k(scores, 2),
        strategies.top_p(scores, 0.5),
        strategies.min_p(scores, 0.5),
        strategies.typical(scores, 0.5),
        strategies.repetition_penalty(scores, tokens, 1.5),
        strategies.no_repeat_ngram(scores, tokens, 1),
    ):
        assert changed.dtype == dtype
        assert changed.shape == scores.shape
