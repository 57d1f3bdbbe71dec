"""Documents encoded in pieces, against each encoded whole."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from trueloop.errors import DataError
from trueloop.tasks.text import encoding
from trueloop.tasks.text.encoding import DocumentEncoder
from trueloop.tasks.text.pieces import TextPiece
from trueloop.tasks.text.tokenizer import CharTokenizer, Tokenizer, tokenizer_for

HERE = Path("x.txt")
WORDS = "the cat sat on a mat, naïve cafés ☕ — 1234 times!\n\n\t  def f(x):  return".split(" ")


def cut_up(text: str, sizes: list[int]) -> list[TextPiece]:
    found = []
    for size in sizes:
        if len(text) <= size:
            break
        found.append(TextPiece(text[:size], HERE, ends=False))
        text = text[size:]
    return [*found, TextPiece(text, HERE, ends=True)]


def some_text(seed: int, length: int) -> str:
    draws = random.Random(seed)
    return "".join(draws.choice(WORDS) + draws.choice([" ", " ", "\n", ""]) for _ in range(length))


def tokenizers(tmp: Path) -> dict[str, Tokenizer]:
    text = some_text(0, 3000)
    return {
        "char": tokenizer_for("char", [text], end_of_text=True),
        "byte": tokenizer_for("byte", [text], end_of_text=True),
        "bpe": tokenizer_for("bpe:400", [text]),
    }


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    return tokenizers(tmp_path_factory.mktemp("tokenizers"))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=3),
    st.lists(st.integers(40, 600), max_size=6),
    st.integers(1, 3000),
)
def test_pieces_give_the_ids_of_the_whole(
    kinds: dict[str, Tokenizer], seeds: list[int], sizes: list[int], at_once: int
) -> None:
    texts = [some_text(seed, 10 + seed % 200) for seed in seeds]
    pieces = [piece for text in texts for piece in cut_up(text, sizes)]
    for tokenizer in kinds.values():
        end = tokenizer.end_of_text
        for ends in (True, False):
            expected = []
            for text in texts:
                expected += [*tokenizer.encode(text), *([end] if ends else [])]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(encoding, "_AT_ONCE", at_once)
                patch.setattr(encoding, "_OVERLAP", 64)
                encoder = DocumentEncoder(tokenizer, ends=ends)
                found = [int(token) for ids in encoder.encode(pieces) for token in ids]
            assert found == expected
            assert encoder.documents == len(texts)


@settings(deadline=None, max_examples=30)
@given(st.text("ab ☕", min_size=100, max_size=600), st.lists(st.integers(20, 80), max_size=8))
def test_nothing_is_lost_where_texts_have_no_place_to_join(
    kinds: dict[str, Tokenizer], text: str, sizes: list[int]
) -> None:
    tokenizer = kinds["bpe"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_OVERLAP", 3)
        ids = list(DocumentEncoder(tokenizer, ends=False).encode(cut_up(text, sizes)))
    assert tokenizer.decode(np.concatenate(ids).tolist()) == text


def test_unknown_characters_are_counted_or_refused() -> None:
    pieces = [TextPiece("abxé", HERE, ends=False), TextPiece("xa", HERE, ends=True)]
    encoder = DocumentEncoder(CharTokenizer("ab", end_of_text=True, unknown=True), ends=True)
    assert np.concatenate(list(encoder.encode(pieces))).tolist() == [0, 1, 3, 3, 3, 0, 2]
    assert encoder.unknown == {"x": 2, "é": 1}
    with pytest.raises(
        DataError, match=r"x\.txt contains 'x', which is not among the 2 characters"
    ):
        list(DocumentEncoder(CharTokenizer("ab"), ends=False).encode(pieces))
