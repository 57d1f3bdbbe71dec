"""Subword tokenizers: learned, read from a file, kept in a run's state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer as Library, decoders, models, normalizers, trainers

from trueloop.errors import ConfigError, DataError
from trueloop.tasks.text.subwords import END_OF_TEXT, SubwordTokenizer, from_file
from trueloop.tasks.text.tokenizer import tokenizer_for, tokenizer_from_state

SONG = (
    "the cat sat on the mat, the bat sat on the cat; naïve café ☕ — 1234 times.\n"
    "some other words that come more than twice, and would be merged into longer pieces\n"
) * 20
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
PLAIN = st.text("the catsonmé ☕1\n", min_size=1, max_size=40)


@pytest.fixture(scope="module")
def learned() -> SubwordTokenizer:
    found = tokenizer_for("bpe:300", [SONG])
    assert isinstance(found, SubwordTokenizer)
    return found


@pytest.fixture(scope="module")
def sentencepiece() -> SubwordTokenizer:
    """Of the family of Llama 2: spaces as marks, one before the text, bytes where nothing fits."""
    library = Library(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    library.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, limit_alphabet=20, show_progress=False
    )
    library.train_from_iterator([SONG], trainer)
    state = json.loads(library.to_str())
    for added in state["added_tokens"]:
        added["special"] = not added["content"].startswith("<0x")
    state["added_tokens"] = [a for a in state["added_tokens"] if a["special"]]
    return SubwordTokenizer(Library.from_str(json.dumps(state)), 2, literal=False)


@given(TEXTS)
def test_decoding_undoes_encoding(learned: SubwordTokenizer, text: str) -> None:
    ids = learned.encode(text)
    assert learned.decode(ids) == text
    assert learned.encode_array(text).tolist() == ids
    assert int(learned.bytes_per_token()[ids].sum()) == len(text.encode())


@given(PLAIN)
def test_marks_for_spaces_decode_as_the_library_does(
    sentencepiece: SubwordTokenizer, text: str
) -> None:
    ids = sentencepiece.encode(text)
    assert sentencepiece.decode(ids) == sentencepiece.library.decode(ids) == text
    # One byte more: the space that the tokenizer writes before a text.
    assert int(sentencepiece.bytes_per_token()[ids].sum()) == len(text.encode()) + 1


@given(st.data())
def test_a_stream_gives_what_one_pass_gives(
    learned: SubwordTokenizer, sentencepiece: SubwordTokenizer, data: Any
) -> None:
    # Bytes that make no character become U+FFFD one by one, or (sentencepiece) with their
    # neighbours, which a stream has returned by then.
    drawn = st.lists(st.integers(0, learned.vocab_size - 1), max_size=12)
    texts = st.lists(PLAIN.map(sentencepiece.encode) | st.just([1]) | st.just([2]), max_size=3)
    joined = texts.map(lambda lists: [token for each in lists for token in each])
    for tokenizer, given_ids in ((learned, drawn), (sentencepiece, joined)):
        ids = data.draw(given_ids)
        stream = tokenizer.stream()
        pushed = [stream.push(token) for token in ids]
        assert "".join([*pushed, stream.finish()]) == tokenizer.decode(ids)
        assert tokenizer.decode(ids) == tokenizer.library.decode(ids, skip_special_tokens=True)


def test_text_comes_as_soon_as_it_is_certain(sentencepiece: SubwordTokenizer) -> None:
    for text in ("the cat", "é☕a"):
        stream = sentencepiece.stream()
        seen = ""
        for token in sentencepiece.encode(text):
            seen += stream.push(token)
            assert text.startswith(seen)
        assert seen == text


def test_a_learned_vocabulary(learned: SubwordTokenizer) -> None:
    assert learned.vocab_size == 300
    assert learned.end_of_text == 0
    assert len(learned.encode("the cat sat on the mat")) < 12
    assert learned.decode([0, *learned.encode("a"), 0]) == "a"
    assert learned.decode(learned.encode(END_OF_TEXT)) == END_OF_TEXT  # a text may say so
    assert 0 not in learned.encode(END_OF_TEXT)
    again = tokenizer_for("bpe:300", iter([SONG]))
    assert again.state() == learned.state()
    kept = tokenizer_from_state(json.loads(json.dumps(learned.state())))
    assert kept.encode(SONG) == learned.encode(SONG)
    assert kept.encode(END_OF_TEXT) == learned.encode(END_OF_TEXT)
    assert tokenizer_for("bpe:9999", ["abab"]).vocab_size < 300


def test_a_file_and_its_folder(learned: SubwordTokenizer, tmp_path: Path) -> None:
    learned.library.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        read = tokenizer_for(str(path), [])
        assert read.encode(SONG) == learned.encode(SONG)
        assert read.end_of_text == 0
        assert read.encode(f"a{END_OF_TEXT}") == [*learned.encode("a"), 0]
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "!"}}')
    assert from_file(tmp_path).end_of_text == learned.encode("!")[0]
    (tmp_path / "tokenizer_config.json").write_text("broken")
    assert from_file(tmp_path).end_of_text == 0


def test_texts_are_cut_nowhere(learned: SubwordTokenizer, tmp_path: Path) -> None:
    state = json.loads(learned.library.to_str())
    state["truncation"] = {
        "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(state))
    read = from_file(tmp_path)
    assert read.encode(SONG) == learned.encode(SONG)
    assert np.array_equal(read.encode_array(SONG), learned.encode(SONG))


def test_lone_surrogates_become_question_marks(learned: SubwordTokenizer) -> None:
    assert learned.decode(learned.encode("a\udcffb")) == "a?b"


@pytest.mark.parametrize("content", ["", "{}", "[1]", "words", '{"model": {"type": "none"}}'])
def test_what_is_no_tokenizer_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match=r"tokenizer\.json is not a tokenizer file \(.*\): give"):
        tokenizer_for(str(tmp_path), [])


def test_bad_names_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="it is not text"):
        tokenizer_for(str(tmp_path / "binary.json"), [])
    with pytest.raises(DataError, match=r"has no tokenizer\.json: give a model's folder"):
        tokenizer_for(str(tmp_path), [])
    with pytest.raises(ConfigError, match=r"no tokenizer nowhere/tokenizer\.json: check the path"):
        tokenizer_for("nowhere/tokenizer.json", [])
    for spec in ("bpe:256", "bpe:0", "bpe:2_000_000"):
        with pytest.raises(ConfigError, match=r"is not a size from 257 .* write e\.g\."):
            tokenizer_for(spec, ["a"])
    for spec in ("bpe", "bpe:", "bpe:many", "ids:-5", "bpe:²"):
        with pytest.raises(ConfigError, match=f"--tokenizer {spec} has no size: write e.g."):
            tokenizer_for(spec, ["a"])
    for spec in ("ids:0", "ids:5:5", "ids:5:1:2"):
        with pytest.raises(ConfigError, match=f"{spec} is not a vocabulary: write its size"):
            tokenizer_for(spec, ["a"])
