"""Scores: the model's log-probabilities, as one computes them token by token."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings, strategies as st
from toy_language_model import ToyModel, table_model

from trueloop.errors import ConfigError, DataError
from trueloop.generate import generate, multiple_choice, score

TOKEN = st.integers(0, 16)


def direct(model: ToyModel, text: list[int], first: int) -> list[float]:
    """log p of the tokens from `first` on, one forward for each, in float64."""
    with torch.no_grad():
        logits = [model(torch.tensor([text[:k]]))[0, -1] for k in range(first, len(text))]
    return [float(row.log_softmax(-1)[t]) for row, t in zip(logits, text[first:], strict=True)]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_token_is_scored_after_all_before_it(data: st.DataObject) -> None:
    model = ToyModel(seed=data.draw(st.integers(0, 2))).eval()
    rows = data.draw(st.lists(st.lists(TOKEN, min_size=1, max_size=9), min_size=1, max_size=4))
    shared = data.draw(st.booleans())
    each = st.lists(TOKEN, min_size=0, max_size=5)
    before = [data.draw(each)] * len(rows) if shared else [data.draw(each) for _ in rows]
    found = score(model, rows, after=before[0] if shared else before)
    for number, (row, first) in enumerate(zip(rows, before, strict=True)):
        expected = ([] if first else [0.0]) + direct(model, first + row, max(1, len(first)))
        got = found.log_probs[number].tolist()
        assert got[: len(row)] == pytest.approx(expected, abs=1e-5)
        assert not any(got[len(row) :])
        assert int(found.counts[number]) == len(row) - (not first)
        assert float(found.sums[number]) == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("context", [1, 2, 5, 8])
def test_long_texts_go_through_in_windows(context: int) -> None:
    """Of a model that looks at the last token alone, any window gives the same."""
    table = table_model(9)
    text = torch.randint(9, (31,), generator=torch.Generator().manual_seed(0)).tolist()
    found = score(table, text, context=context)
    expected = [0.0] + [
        float(table(torch.tensor(a)).log_softmax(-1)[b]) for a, b in itertools.pairwise(text)
    ]
    assert found.log_probs[0].tolist() == pytest.approx(expected, abs=1e-6)
    begun = score(table, text[3:], after=text[:3], context=context)
    assert begun.log_probs[0].tolist() == pytest.approx(expected[3:], abs=1e-6)


def test_windows_show_at_least_half_a_context() -> None:
    seen = []

    def model(tokens: torch.Tensor) -> torch.Tensor:
        seen.append(tokens.tolist())
        return torch.zeros(*tokens.shape, 50)

    assert score(model, list(range(20)), context=8).sums.tolist() == pytest.approx(
        [-19 * torch.tensor(50.0).log().item()], rel=1e-6
    )
    (windows,) = seen
    assert [row[0] for row in windows] == [0, 5, 10, 15]


def test_it_agrees_with_generate_and_with_the_loss_of_transformers() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=17, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    reference = GPT2LMHeadModel(config).double().eval()
    tokens = torch.randint(17, (3, 12))
    found = score(lambda ids: reference(ids).logits, tokens)
    with torch.no_grad():
        loss = reference(tokens, labels=tokens).loss
    assert float(-found.sums.sum() / found.counts.sum()) == pytest.approx(float(loss), abs=1e-6)
    model = ToyModel()
    done = generate(model, [[1, 2], [3]], max_new_tokens=9, temperature=0.7)
    after = score(model, done.tokens, after=[[1, 2], [3]])
    torch.testing.assert_close(after.log_probs.double(), done.log_probs, atol=1e-5, rtol=0)
    assert model.training


def test_multiple_choice() -> None:
    model = ToyModel().eval()
    choices = [[1, 2, 3], [4], [5, 6]]
    sums = [sum(direct(model, [7, 8, *row], 2)) for row in choices]
    assert multiple_choice(model, [7, 8], choices) == pytest.approx(sums, abs=1e-5)
    means = [total / len(row) for total, row in zip(sums, choices, strict=True)]
    assert multiple_choice(model, [7, 8], choices, normalize="token") == pytest.approx(means, 1e-5)
    per_byte = [total / size for total, size in zip(sums, (6, 2, 9), strict=True)]
    found = multiple_choice(model, [7, 8], choices, normalize="byte", sizes=[6, 2, 9])
    assert found == pytest.approx(per_byte, 1e-5)


def test_mistakes() -> None:
    model = ToyModel()
    with pytest.raises(ConfigError, match="tokens has nothing to score"):
        score(model, [])
    with pytest.raises(ConfigError, match="after has 2 texts for 3"):
        score(model, [[1], [2], [3]], after=[[1], [2]])
    with pytest.raises(DataError, match="the model knows 0 to 16"):
        score(model, [1, 2], after=[17])
    with pytest.raises(ConfigError, match="normalize='mean' is unknown"):
        multiple_choice(model, [1], [[2]], normalize="mean")
    with pytest.raises(ConfigError, match="needs the bytes of each choice"):
        multiple_choice(model, [1], [[2]], normalize="byte")
    with pytest.raises(ConfigError, match="is empty"):
        multiple_choice(model, [], [[2]])
    with pytest.raises(ConfigError, match="must return logits"):
        score(lambda tokens: tokens, [1, 2])
