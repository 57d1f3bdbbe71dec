"""Characters and bytes as token ids."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from trueloop.errors import ConfigError, DataError
from trueloop.tasks.text.tokenizer import (
    ByteTokenizer,
    CharTokenizer,
    Tokenizer,
    tokenizer_for,
    tokenizer_from_state,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def again(tokenizer: Tokenizer) -> Tokenizer:
    return tokenizer_from_state(json.loads(json.dumps(tokenizer.state())))


@given(TEXTS, st.booleans())
def test_decoding_undoes_encoding(text: str, ends: bool) -> None:
    for spec in ("char", "byte"):
        tokenizer = tokenizer_for(spec, [text], end_of_text=ends)
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert np.array_equal(tokenizer.encode_array(text), ids)
        assert int(tokenizer.bytes_per_token()[ids].sum()) == len(text.encode())
        assert again(tokenizer).encode(text) == ids
        assert (tokenizer.end_of_text is not None) == ends
        if tokenizer.end_of_text is not None:
            assert tokenizer.decode([*ids, tokenizer.end_of_text]) == text
            assert tokenizer.bytes_per_token()[tokenizer.end_of_text] == 0


@given(st.lists(st.integers(0, 256), max_size=12))
def test_a_stream_of_bytes_gives_what_one_pass_gives(ids: list[int]) -> None:
    tokenizer = ByteTokenizer(end_of_text=True)
    expected = bytes(token for token in ids if token < 256).decode("utf-8", "replace")
    assert tokenizer.decode(ids) == expected


def test_a_character_comes_with_its_last_byte() -> None:
    stream = ByteTokenizer().stream()
    assert [stream.push(byte) for byte in "é!".encode()] == ["", "é", "!"]
    assert stream.push(0xE2) == ""
    assert stream.finish() == "\ufffd"


def test_characters_are_numbered_by_code_point() -> None:
    tokenizer = tokenizer_for("char", ["hello", " world"])
    assert (tokenizer.vocab_size, tokenizer.decode(range(8))) == (8, " dehlorw")
    assert tokenizer.end_of_text is None
    assert torch.equal(tokenizer.bytes_per_token(), torch.ones(8, dtype=torch.int64))


def test_an_unknown_character_is_named_with_its_place() -> None:
    tokenizer = CharTokenizer("ab\n")
    with pytest.raises(DataError, match=r"'é' \(line 2, column 3 of the text\).*--tokenizer byte"):
        tokenizer.encode("ab\nabé")
    assert tokenizer.encode_array("aéb").tolist() == [1, -1, 2]
    with_unknown = again(CharTokenizer("ab", end_of_text=True, unknown=True))
    assert (with_unknown.vocab_size, with_unknown.decode([0, 2, 3])) == (4, "a\ufffd")


def test_ids_outside_the_vocabulary_are_refused() -> None:
    for tokenizer in (CharTokenizer("ab"), ByteTokenizer()):
        for token in (-1, tokenizer.vocab_size):
            with pytest.raises(DataError, match=f"the token id {token} is outside"):
                tokenizer.decode([0, token])


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown tokenizer 'words'"):
        tokenizer_for("words", ["a"])
    for state in ({}, {"kind": "char"}, {"kind": "char", "characters": 3}, {"kind": "x"}):
        with pytest.raises(DataError, match="the saved tokenizer is not one"):
            tokenizer_from_state(state)


def test_ids_without_a_text_are_numbers() -> None:
    tokenizer = again(tokenizer_for("ids:300:299", []))
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (300, 299)
    assert tokenizer.encode(" 5 17\n298 ") == [5, 17, 298]
    assert tokenizer.decode([5, 299, 17, 298]) == "5 17 298"
    assert not tokenizer.bytes_per_token().any()
    with pytest.raises(DataError, match="'abc' is not a token id"):
        tokenizer.encode("5 abc")
    with pytest.raises(DataError, match="the token id 300 is outside"):
        tokenizer.encode("300")
