"""generate: a row is what it would be alone, with a cache or without, on and on."""

from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn
from toy_language_model import ToyModel, table_model

import documents
import trueloop
from trueloop.errors import ConfigError, DataError
from trueloop.generate import Piece, generate, stream
from trueloop.step import sharding

RAGGED = [[1, 2, 3, 4, 5], [6], [7, 8, 9], [10, 11, 12, 13, 14]]


class Letters:
    """A tokenizer of 17 letters, of which `é` takes two ids: half of it is no text yet."""

    ALPHABET = "abcdefghijklmno"

    def stream(self) -> Letters.Stream:
        return self.Stream()

    class Stream:
        def __init__(self) -> None:
            self.half = False

        def push(self, token: int) -> str:
            if token == 15:
                self.half = True
                return ""
            if token == 16:
                whole, self.half = self.half, False
                return "é" if whole else "�"
            return Letters.ALPHABET[token]

        def finish(self) -> str:
            return "�" if self.half else ""


def by_hand(model: ToyModel, row: list[int], count: int, **_: object) -> list[int]:
    """Greedy, one forward over the whole window for each token."""
    text = list(row)
    begin, context = 0, model.config.context
    with torch.no_grad():
        for _new in range(count):
            if len(text) - begin > context:
                begin = len(text) - context // 2
            text.append(int(model(torch.tensor([text[begin:]]))[0, -1].argmax()))
    return text[len(row) :]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [1, 10, 150])
def test_greedy_is_a_loop_of_whole_forwards(seed: int, count: int) -> None:
    """Beyond the context as well, where a text goes on with the last half of it."""
    model = ToyModel(seed=seed).eval()
    expected = [by_hand(model, row, count) for row in RAGGED]
    for cache in (True, False):
        done = generate(model, RAGGED, temperature=0, max_new_tokens=count, cache=cache)
        assert done.rows() == expected
        assert done.ended == ["length"] * 4
    for row, tokens in zip(RAGGED, expected, strict=True):
        alone = generate(model, row, temperature=0, max_new_tokens=count)
        assert alone.rows() == [tokens]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_row_is_what_it_would_be_alone(data: st.DataObject) -> None:
    """Sampled, with every strategy, cached or not, its log-probabilities too."""
    model = ToyModel(seed=data.draw(st.integers(0, 2)), context=data.draw(st.sampled_from([9, 32])))
    token = st.integers(0, 16)
    rows = data.draw(st.lists(st.lists(token, min_size=1, max_size=8), min_size=1, max_size=4))
    seeds = [data.draw(st.integers(0, 99)) for _ in rows]
    samples = data.draw(st.integers(1, 3))
    options = {
        "max_new_tokens": data.draw(st.integers(1, 20)),
        "num_samples": samples,
        "end_of_text": data.draw(st.none() | token),
        "stop": data.draw(st.lists(token, max_size=2)),
        "temperature": data.draw(st.sampled_from([None, 0.5, 2.0])),
        "top_k": data.draw(st.sampled_from([None, 3])),
        "top_p": data.draw(st.sampled_from([None, 0.8])),
        "min_p": data.draw(st.sampled_from([None, 0.1])),
        "typical": data.draw(st.sampled_from([None, 0.9])),
        "repetition_penalty": data.draw(st.sampled_from([1.0, 1.3])),
        "no_repeat_ngram": data.draw(st.sampled_from([None, 2])),
    }
    together = generate(model, rows, seed=seeds, **options)
    plain = generate(model, rows, seed=seeds, cache=False, **options)
    assert together.rows() == plain.rows()
    torch.testing.assert_close(together.log_probs, plain.log_probs, atol=1e-9, rtol=0)
    for number, (row, seed) in enumerate(zip(rows, seeds, strict=True)):
        alone = generate(model, row, seed=seed, **options)
        part = slice(number * samples, (number + 1) * samples)
        assert together.rows()[part] == alone.rows()
        assert together.ended[part] == alone.ended
        width = alone.log_probs.shape[1]
        torch.testing.assert_close(
            together.log_probs[part, :width], alone.log_probs, atol=1e-9, rtol=0
        )
    chosen = list(stream(model, rows, seed=seeds, **options))
    streamed = [[piece.tokens[row] for piece in chosen] for row in range(len(rows) * samples)]
    assert [[t for t in row if t is not None] for row in streamed] == together.rows()


def test_log_probs_are_the_models_own() -> None:
    model = ToyModel().eval()
    done = generate(model, RAGGED, max_new_tokens=6, temperature=0.5, top_k=4, seed=3)
    for row, new, found in zip(RAGGED, done.rows(), done.log_probs, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([row + new]))[0].log_softmax(-1)
        expected = [logits[len(row) - 1 + k, token] for k, token in enumerate(new)]
        torch.testing.assert_close(found, torch.stack(expected), atol=1e-9, rtol=0)


def test_beams_of_ragged_prompts_are_those_of_each_alone() -> None:
    model = ToyModel().eval()
    options = {"beams": 4, "num_samples": 2, "max_new_tokens": 9, "end_of_text": 5}
    together = generate(model, RAGGED, **options)
    plain = generate(model, RAGGED, cache=False, **options)
    assert together.rows() == plain.rows()
    for number, row in enumerate(RAGGED):
        alone = generate(model, row, **options)
        assert together.rows()[2 * number : 2 * number + 2] == alone.rows()
        scores = alone.log_probs.sum(1) / alone.lengths
        torch.testing.assert_close(alone.scores, scores, atol=1e-9, rtol=0)
        assert alone.scores[0] >= alone.scores[1]


def test_enough_beams_find_the_most_probable_text() -> None:
    """Brute force over all texts of four tokens out of four."""
    table = table_model(4, seed=5)
    done = generate(table, [2], beams=64, max_new_tokens=4, length_penalty=0.0)
    log_p = table(torch.arange(4)).log_softmax(-1)
    texts = torch.cartesian_prod(*[torch.arange(4)] * 4)
    sums = log_p[2, texts[:, 0]] + sum(log_p[texts[:, k], texts[:, k + 1]] for k in range(3))
    assert done.rows() == [texts[sums.argmax()].tolist()]
    torch.testing.assert_close(done.scores[0], sums.max(), atol=1e-5, rtol=0)


def test_samples_follow_the_models_distribution() -> None:
    """20,000 samples of one prompt: each count within what chance allows once in 10^6."""
    table = table_model(6, seed=1, scale=1.5)
    done = generate(table, [3], num_samples=20_000, max_new_tokens=2, seed=9)
    first = table(torch.tensor(3)).softmax(-1)
    joint = first[:, None] * table(torch.arange(6)).softmax(-1)
    counts = torch.zeros(6, 6).index_put_(
        tuple(done.tokens.t()), torch.ones(20_000), accumulate=True
    )
    spread = (20_000 * joint * (1 - joint)).sqrt()
    assert ((counts - 20_000 * joint).abs() < 5 * spread + 3).all()


def test_seeds() -> None:
    model = ToyModel().eval()
    state = torch.get_rng_state()
    one, again, other = (
        generate(model, [[1, 2]] * 3, max_new_tokens=12, temperature=3.0, seed=seed).rows()
        for seed in (4, 4, 5)
    )
    assert one == again != other
    assert one[0] != one[1] != one[2]
    assert torch.equal(state, torch.get_rng_state())
    several = generate(model, [1, 2], max_new_tokens=12, temperature=3.0, num_samples=3).rows()
    assert len({tuple(row) for row in several}) == 3


def test_a_tiny_temperature_is_greedy() -> None:
    model = ToyModel().eval()
    greedy = generate(model, RAGGED, temperature=0, max_new_tokens=20).rows()
    for tiny in (1e-3, 1e-40, 1e-300):
        assert generate(model, RAGGED, temperature=tiny, max_new_tokens=20).rows() == greedy


def test_ends() -> None:
    # 0 → 1 → 2 → 3 → 0 …
    chain = lambda tokens: 9.0 * torch.eye(4)[(tokens + 1) % 4]  # noqa: E731
    done = generate(chain, [[0], [2], [3]], temperature=0, max_new_tokens=3, end_of_text=3, stop=2)
    assert done.rows() == [[1, 2], [3], [0, 1, 2]]
    assert done.ended == ["stop", "end_of_text", "stop"]
    assert done.tokens.tolist() == [[1, 2, 3], [3, 3, 3], [0, 1, 2]]
    assert (done.log_probs[1, 1:] == 0).all()
    padded = generate(chain, [[0], [2]], temperature=0, max_new_tokens=5, stop=[3], pad=0)
    assert padded.tokens.tolist() == [[1, 2, 3], [3, 0, 0]]
    later = generate(chain, [2], temperature=0, max_new_tokens=5, end_of_text=3, min_new_tokens=2)
    assert later.lengths.tolist() == [
        5 if 3 not in later.rows()[0] else 1 + later.rows()[0].index(3)
    ]
    assert 3 not in later.rows()[0][:2]
    assert generate(chain, [[]], temperature=0, max_new_tokens=2, end_of_text=0).rows() == [[1, 2]]


def test_texts_and_stop_strings() -> None:
    # a → b → … → o → ½é → é → a
    chain = lambda tokens: 9.0 * torch.eye(17)[(tokens + 1) % 17]  # noqa: E731
    common = {"temperature": 0, "tokenizer": Letters()}
    done = generate(chain, [[2], [0], [12]], stop=["ef", "oé"], max_new_tokens=8, **common)
    assert done.texts == ["d", "bcd", "n"]
    assert done.ended == ["stop"] * 3
    assert done.rows()[0] == [3, 4, 5]
    done = generate(chain, [[12], [13]], stop="zz", max_new_tokens=2, **common)
    assert done.texts == ["no", "o�"]
    assert done.ended == ["length"] * 2
    pieces = list(stream(chain, [[12], [2]], stop=["éb", "ef"], max_new_tokens=5, **common))
    assert all(isinstance(piece, Piece) for piece in pieces)
    assert ["".join(piece.texts[k] for piece in pieces) for k in (0, 1)] == ["noéa", "d"]
    # What may be the beginning of a stop string is held back until it is none.
    assert [piece.texts[1] for piece in pieces[:3]] == ["d", "", ""]
    ended = generate(chain, [12], stop=14, max_new_tokens=9, **common)
    assert (ended.texts, ended.rows()) == (["n"], [[13, 14]])


def test_the_model_is_left_as_it_was() -> None:
    model = ToyModel()
    model.train()
    model.head.eval()
    before = [module.training for module in model.modules()]
    one = generate(model, [1, 2], max_new_tokens=4, temperature=0)
    assert [module.training for module in model.modules()] == before
    for number, piece in enumerate(stream(model, [1, 2], max_new_tokens=4, temperature=0)):
        assert [module.training for module in model.modules()] == before
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
        assert piece.tokens == [one.rows()[0][number]]  # no dropout
    # What comes back is of use in training.
    loss = nn.functional.cross_entropy(model(one.tokens)[0], one.tokens[0])
    (loss + one.log_probs.sum()).backward()


class Counting(nn.Module):
    """Counts what a model is asked."""

    def __init__(self, model: ToyModel) -> None:
        super().__init__()
        self.model, self.config, self.shapes = model, model.config, []

    def new_cache(self, batch: int, capacity: int):
        return self.model.new_cache(batch, capacity)

    def forward(self, tokens: torch.Tensor, **options: object) -> torch.Tensor:
        self.shapes.append(tuple(tokens.shape))
        return self.model(tokens, **options)


def test_prompts_are_read_in_one_pass_and_tokens_one_by_one() -> None:
    model = Counting(ToyModel())
    generate(model, RAGGED, max_new_tokens=5, num_samples=2)
    assert model.shapes == [(4, 5)] + [(8, 1)] * 4
    model.shapes.clear()
    generate(model, [1] * 30, max_new_tokens=20, temperature=0)
    # Full after two more: the last 16 are read anew, the newest of them as ever.
    assert model.shapes == [(1, 30), (1, 1), (1, 1), (1, 15)] + [(1, 1)] * 17


@pytest.mark.parametrize(
    ("tokens", "options", "expected"),
    [
        ([1], {"temperature": -1.0}, "temperature=-1.0 must not be below 0"),
        ([1], {"temperature": math.nan}, "temperature=nan is not a number"),
        ([1], {"top_p": 0.0}, "top_p=0.0 must be above 0 and at most 1"),
        ([1], {"top_p": 1.5}, "top_p=1.5 must be above 0 and at most 1"),
        ([1], {"typical": 0}, "typical=0 must be above 0 and at most 1"),
        ([1], {"min_p": 2}, "min_p=2 must be from 0 to 1"),
        ([1], {"top_k": 0}, "top_k=0 is not an integer of at least 1"),
        ([1], {"repetition_penalty": 0}, "repetition_penalty=0 must be above 0"),
        ([1], {"no_repeat_ngram": 0}, "no_repeat_ngram=0 is not an integer"),
        ([1], {"max_new_tokens": 0}, "max_new_tokens=0 is not an integer of at least 1"),
        ([1], {"min_new_tokens": 200}, "is more than max_new_tokens=128"),
        ([1], {"beams": 0}, "beams=0 is not an integer"),
        (
            [1],
            {"beams": 2, "top_k": 3},
            "beams=2 searches for the most probable text, and top_k is",
        ),
        ([1], {"beams": 2, "temperature": 0.5}, "temperature is for sampling"),
        ([1], {"beams": 2, "num_samples": 3}, "write beams=3 or more"),
        ([1], {"length_penalty": 2.0}, "length_penalty is for beam search"),
        ([1], {"early_stopping": True}, "early_stopping is for beam search"),
        ([1], {"beams": 2, "early_stopping": "yes"}, "write True, False or 'never'"),
        ([1], {"temperature": 0, "top_k": 5}, "temperature=0 is greedy, and top_k"),
        ([1], {"temperature": 0, "num_samples": 5}, "num_samples=5 texts would be equal"),
        ([1], {"temprature": 1}, "did you mean 'temperature'?"),
        ([1], {"seed": -1}, "seed=-1 is not an integer from 0"),
        ([1], {"seed": [1, 2]}, "2 seeds for 1 prompts"),
        ([1], {"stop": "x"}, "add tokenizer="),
        ([1], {"stop": ["x"], "tokenizer": 3}, "has no stream"),
        ([1], {"stop": 1.5}, "stop=1.5 stops nothing"),
        ([1], {"stop": [""]}, "neither text nor a token id"),
        ([1], {"stop": 99}, "a token id is 99, and the model knows 0 to 16"),
        ([1], {"end_of_text": -1}, "end_of_text=-1"),
        ([1], {"context": 0}, "context=0"),
        ([1], {"cache": 1}, "cache=1 is neither True nor False"),
        ([1], {"lengths": [1]}, "lengths go with a tensor"),
        ([1], {"pad": -3}, "pad=-3"),
        ("text", {}, "tokens='text' are not token ids"),
        ([1.5], {}, "are not token ids|which is not a token id"),
        ([[1], ["a"]], {}, "tokens contain 'a', which is not a token id"),
        ([], {}, "a prompt is empty, and no end-of-text token is known"),
        ([[1], []], {}, "a prompt is empty"),
        (torch.zeros(2, 0, dtype=torch.long), {}, "a prompt is empty"),
        (torch.zeros(0, 2, dtype=torch.long), {}, "tokens is empty"),
        (torch.zeros(2, 2), {}, "tokens are float32 of shape"),
        (
            torch.zeros(2, 2, dtype=torch.long),
            {"lengths": [3, 1]},
            "must be 2 integers",
        ),
        ([17], {}, "a token id is 17, and the model knows 0 to 16"),
        ([-1], {}, "a token id is -1"),
        ([1] * 33, {}, "a prompt has 33 tokens, and the model's context is 32"),
        ([1] * 30, {"beams": 2, "max_new_tokens": 4}, "write max_new_tokens=3 or fewer"),
    ],
)
def test_mistakes(tokens: object, options: dict[str, object], expected: str) -> None:
    with pytest.raises((ConfigError, DataError), match=expected) as caught:
        generate(ToyModel(), tokens, **options)
    assert "\n" not in str(caught.value)
    remedy = "write|leave|shorten|begin at 0|encode|give|add|did you mean"
    assert re.search(remedy, str(caught.value))


def test_mistakes_of_models() -> None:
    with pytest.raises(ConfigError, match="must be a callable that maps token ids"):
        generate(None, [1])
    with pytest.raises(ConfigError, match="not the class ToyModel"):
        generate(ToyModel, [1])
    with pytest.raises(ConfigError, match="must return logits"):
        generate(lambda tokens: {"logits": tokens}, [1])
    with pytest.raises(ConfigError, match=r"the model returned logits of shape \(1, 1\)"):
        generate(lambda tokens: tokens, [[1]])
    broken = lambda tokens: torch.full((*tokens.shape, 5), math.nan)  # noqa: E731
    for options in ({}, {"temperature": 0}, {"beams": 2}):
        with pytest.raises(ConfigError, match="new token 1 of row 1 are NaN or infinite"):
            generate(broken, [[1]], max_new_tokens=2, **options)
    with pytest.raises(ConfigError, match="beams=2 cannot be streamed"):
        stream(ToyModel(), [1], beams=2)


def test_it_is_public() -> None:
    assert trueloop.generate.generate is generate


def test_one_rank_of_many_may_generate_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for ever in a broadcast of buffers that the other ranks do not join."""
    model = ToyModel()
    model.register_buffer("table", torch.zeros(1))
    monkeypatch.setattr(sharding, "_broadcast", lambda _: pytest.fail("waits for the others"))
    monkeypatch.setattr(sharding.ranks, "is_distributed", lambda: True)
    assert len(generate(model, [1], max_new_tokens=2).rows()[0]) == 2


def test_the_page_shows_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = "docs/generate.md"
    (program,) = [b.text for b in documents.blocks(page) if "generate(model" in b.text]
    exec(program, {})
    (shown,) = documents.shown(
        "tests/generate/test_generate.py::test_the_page_shows_what_it_prints"
    )
    assert documents.is_shown(shown, capsys.readouterr().out)
