"""Greedy and beam search find what transformers' `generate` finds with the same weights."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import trueloop.generate as generate
from trueloop.tasks.text.pretrained import open_folder
from trueloop.tasks.text.transformer import Transformer

VOCABULARY, END = 12, 0


def reference(family: str, seed: int) -> torch.nn.Module:
    """A model of random weights, so large that its logits are peaked."""
    torch.manual_seed(seed)
    if family == "gpt2":
        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=48, n_embd=16, n_layer=2, n_head=2,
            initializer_range=0.6, bos_token_id=END, eos_token_id=END,
        )  # fmt: skip
        model = GPT2LMHeadModel(config)
    else:
        config = LlamaConfig(
            vocab_size=VOCABULARY, max_position_embeddings=48, hidden_size=16,
            intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, initializer_range=0.6, bos_token_id=END, eos_token_id=END,
        )  # fmt: skip
        model = LlamaForCausalLM(config)
    return model.double().eval()


def theirs(model: torch.nn.Module, rows: list[list[int]], **options: object) -> list[list[int]]:
    """New tokens of each row, up to the end of text; prompts are padded on the left."""
    longest = max(map(len, rows))
    tokens = torch.tensor([[END] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.generate(
            tokens, attention_mask=mask, pad_token_id=END, do_sample=False, **options
        )
    new = found[:, longest:].tolist()
    return [row[: row.index(END) + 1] if END in row else row for row in new]


def ours(model: torch.nn.Module, rows: list[list[int]], **options: object) -> list[list[int]]:
    with torch.inference_mode():
        done = generate.generate(
            lambda tokens: model(tokens, use_cache=False).logits,
            rows,
            end_of_text=END,
            **options,
        )
    return done.rows()


PROMPTS = [[3, 4, 5, 6], [1, 2], [7]]
FAMILIES = pytest.mark.parametrize("family", ["gpt2", "llama"])


@FAMILIES
def test_greedy(family: str) -> None:
    ended = 0
    for seed in range(3):
        model = reference(family, seed)
        for extra, same in (
            ({}, {}),
            ({"repetition_penalty": 1.7}, {"repetition_penalty": 1.7}),
            ({"no_repeat_ngram": 2}, {"no_repeat_ngram_size": 2}),
            ({"min_new_tokens": 6}, {"min_new_tokens": 6}),
        ):
            found = ours(model, PROMPTS, max_new_tokens=12, temperature=0, **extra)
            assert found == theirs(model, PROMPTS, max_new_tokens=12, **same)
            ended += sum(row[-1] == END for row in found)
    assert ended > 2


@FAMILIES
@pytest.mark.parametrize("early_stopping", [False, True, "never"])
def test_beam_search(family: str, early_stopping: bool | str) -> None:
    ended = 0
    for seed in range(4):
        model = reference(family, seed)
        for length_penalty in ((1.0, 0.0), (-1.0, 2.0))[seed % 2]:
            beams, best = 2 + seed % 3, 1 + seed % 2
            common = {"max_new_tokens": 7, "length_penalty": length_penalty}
            common["early_stopping"] = early_stopping
            found = ours(model, PROMPTS, beams=beams, num_samples=best, **common)
            expected = theirs(model, PROMPTS, num_beams=beams, num_return_sequences=best, **common)
            assert found == expected, (seed, length_penalty)
            ended += sum(row[-1] == END for row in found)
    assert ended > 3


@FAMILIES
def test_beam_search_with_strategies(family: str) -> None:
    for seed in range(2):
        model = reference(family, seed)
        found = ours(
            model, PROMPTS, beams=3, max_new_tokens=8, repetition_penalty=1.5, no_repeat_ngram=3,
            min_new_tokens=3,
        )  # fmt: skip
        expected = theirs(
            model, PROMPTS, num_beams=3, max_new_tokens=8, repetition_penalty=1.5,
            no_repeat_ngram_size=3, min_new_tokens=3,
        )  # fmt: skip
        assert found == expected


@FAMILIES
def test_published_weights_in_our_own_model(family: str, tmp_path: Path) -> None:
    """The same weights in both libraries, each with its cache: logits, greedy text and beams."""
    model = reference(family, 1)
    model.save_pretrained(tmp_path)
    found = open_folder(tmp_path)
    own = Transformer(found.config).double().eval()
    found.fill(own)
    tokens = torch.randint(VOCABULARY, (3, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(own(tokens), model(tokens).logits, atol=1e-5, rtol=1e-5)
    for common in ({"max_new_tokens": 30}, {"max_new_tokens": 30, "repetition_penalty": 1.4}):
        greedy = generate.generate(own, PROMPTS, temperature=0, end_of_text=END, **common)
        assert greedy.rows() == theirs(model, PROMPTS, **common)
    common = {"max_new_tokens": 12, "length_penalty": 0.5, "early_stopping": True}
    beams = generate.generate(own, PROMPTS, beams=4, num_samples=2, end_of_text=END, **common)
    assert beams.rows() == theirs(model, PROMPTS, num_beams=4, num_return_sequences=2, **common)
