"""A text read, divided and encoded: what a language model trains on and is judged by."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trueloop import Feed
from trueloop.atomic import WriteError
from trueloop.errors import ConfigError, DataError
from trueloop.tasks.text import text_data, token_cache
from trueloop.tasks.text.context_windows import IGNORE
from trueloop.tasks.text.text_data import TextData, TextOptions, read_text, read_windows
from trueloop.tasks.text.tokenizer import tokenizer_for

POEM = "To be, or not to be: that is the question.\nWhether 'tis nobler in the mind\n" * 12


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(path: Path, context: int = 8, **options: Any) -> TextData:
    return read_text(path, context, TextOptions(**options))


def ids_of(data: Any) -> list[int]:
    return data.tokens.read(0, len(data.tokens)).tolist()


@pytest.mark.parametrize("spec", ["char", "byte", "bpe:300"])
def test_the_end_of_a_file_validates(tmp_path: Path, spec: str) -> None:
    path = write(tmp_path / "x.txt", POEM)
    data = read(path, tokenizer=spec)
    cut = int(len(POEM) * 0.9)
    expected = tokenizer_for(spec, [POEM[:cut]])
    assert data.tokenizer.state() == expected.state()
    assert ids_of(data.train) == expected.encode(POEM[:cut])
    assert ids_of(data.val) == expected.encode(POEM[cut:])
    assert data.test is None
    assert data.facts["training tokens"] == len(data.train.tokens)
    assert not data.findings
    assert not data.packed
    again = read(path, tokenizer=spec)
    assert again.digest == data.digest
    assert read(path, tokenizer=spec, val_fraction=0.2).digest != data.digest


def test_parts_by_fraction_by_file_and_by_folder(tmp_path: Path) -> None:
    text = "0123456789" * 10
    path = write(tmp_path / "all" / "x.txt", text)
    data = read(path, val_fraction=0.2, test_fraction=0.1)
    assert data.test is not None
    parts = [data.train, data.val, data.test]
    assert [data.tokenizer.decode(ids_of(part)) for part in parts] == [
        text[:70],
        text[70:90],
        text[90:],
    ]
    other = write(tmp_path / "more" / "val.txt", text[:30])
    data = read(path, val_data=other, test_fraction=0.1)
    assert data.test is not None
    assert [len(part.tokens) for part in (data.train, data.val, data.test)] == [90, 30, 10]
    write(tmp_path / "more" / "train.txt", text[:50])
    data = read(tmp_path / "more")
    assert [len(part.tokens) for part in (data.train, data.val)] == [50, 30]


def test_documents_of_a_folder_and_of_a_file(tmp_path: Path) -> None:
    texts = [f"document {k} " * (k + 1) for k in range(8)]
    for k, text in enumerate(texts):
        write(tmp_path / "many" / f"{k}.txt", text)
    one = write(tmp_path / "one.txt", "\n--\n".join([*texts, "\n  "]))
    for data in (
        read(tmp_path / "many", tokenizer="byte", pack=True),
        read(one, tokenizer="byte", pack=True, document_separator="\\n--\\n"),
    ):
        assert data.tokenizer.end_of_text == 256
        assert data.facts["documents"] == 8
        found = [*ids_of(data.train), *ids_of(data.val)]
        assert found == [token for text in texts for token in [*text.encode(), 256]]
        assert ids_of(data.train)[-1] == 256
        tokens, targets, documents = data.val.get_batch(np.arange(len(data.val)), 0)
        assert (targets[tokens == 256] == IGNORE).all()
        assert (documents[:, 0] == 0).all()
    assert read(tmp_path / "many", tokenizer="byte").train[0][0].shape == (8,)
    with pytest.raises(ConfigError, match="--pack separates documents, and the text is one"):
        read(one, pack=True)


def test_characters_that_only_held_out_text_has(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "abc" * 30)
    held_out = write(tmp_path / "val.txt", "abéaé☕abca")
    data = read(path, val_data=held_out)
    tokenizer = data.tokenizer
    assert tokenizer.decode(range(tokenizer.vocab_size)) == "abc\ufffd"
    assert (
        tokenizer.decode(ids_of(data.val))
        == "c" * 0 + "ab\ufffda\ufffd\ufffdabca"[-len(ids_of(data.val)) :]
    )
    (finding,) = data.findings
    assert finding.code == "TL716"
    assert "'é', '☕'" in finding.message
    assert "3 of the 10 validation characters" in finding.message
    assert not read(path, val_data=held_out, tokenizer="byte").findings
    plain = read(write(tmp_path / "y.txt", "abc" * 40)).tokenizer
    assert plain.vocab_size == 3
    with pytest.raises(DataError, match="contains 'é', which is not among the 3 characters"):
        read_windows(held_out, 8, TextOptions(), plain)


@pytest.mark.parametrize("spec", ["char", "bpe:270"])
def test_large_texts_are_encoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    monkeypatch.setenv("TRUELOOP_CACHE", str(tmp_path / "cache"))
    path = write(tmp_path / "x.txt", POEM)
    small = read(path, tokenizer=spec)
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(text_data, "_IN_MEMORY", 10)
    large = read(path, tokenizer=spec)
    folder = Path(large.facts["token files"])
    assert folder.parent == tmp_path / "cache" / "tokens"
    for one, other in ((small.train, large.train), (small.val, large.val)):
        assert ids_of(one) == ids_of(other)
    assert small.digest == large.digest
    assert small.tokenizer.state() == large.tokenizer.state()
    with monkeypatch.context() as patch:
        patch.setattr(token_cache, "_write", None)
        again = read(path, tokenizer=spec)
        assert (ids_of(again.train), again.digest) == (ids_of(large.train), large.digest)
    write(path, POEM + "and more")
    assert ids_of(read(path, tokenizer=spec).val) != ids_of(large.val)
    assert len(list(folder.parent.iterdir())) == 4  # two folders and their locks


def test_half_written_token_files_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUELOOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(text_data, "_IN_MEMORY", 10)
    path = write(tmp_path / "x.txt", POEM)
    data = read(path)
    folder = Path(data.facts["token files"])
    expected = ids_of(data.train)
    for damage in ("train.bin", "tokens.json"):
        (folder / damage).write_bytes((folder / damage).read_bytes()[:-5])
        left = folder.with_name(f"{folder.name}.1.tmp")
        left.mkdir()
        assert ids_of(read(path).train) == expected
        assert not left.exists()

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    write(path, POEM * 2)
    monkeypatch.setattr(token_cache, "write_tokens", fail)
    with pytest.raises(KeyboardInterrupt):
        read(path)
    assert not list(folder.parent.glob("*.tmp"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_data, "_IN_MEMORY", 10)
    monkeypatch.setenv("TRUELOOP_CACHE", "/proc/nowhere")
    with pytest.raises(WriteError, match=r"cannot write .* TRUELOOP_CACHE=FOLDER in the environm"):
        read(write(tmp_path / "x.txt", POEM))


def test_a_cache_on_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_data, "_IN_MEMORY", 10)
    monkeypatch.setenv("TRUELOOP_CACHE", str(write(tmp_path / "file", "")))
    with pytest.raises(WriteError, match=r"cannot write .* TRUELOOP_CACHE=FOLDER in the environm"):
        read(write(tmp_path / "x.txt", POEM))


def test_processes_that_ask_at_once_write_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.txt", POEM * 200)
    monkeypatch.setattr(text_data, "_IN_MEMORY", 10)
    monkeypatch.setenv("TRUELOOP_CACHE", str(tmp_path / "cache"))
    plain = token_cache._write

    def counted(job: Any, folder: Path) -> None:
        (tmp_path / f"writer-{os.getpid()}").touch()
        plain(job, folder)

    def work() -> None:
        token_cache._write = counted
        (tmp_path / f"digest-{os.getpid()}").write_text(read(path).digest)

    started = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert len(list(tmp_path.glob("writer-*"))) == 1
    digests = [each.read_text() for each in tmp_path.glob("digest-*")]
    assert (len(digests), len(set(digests))) == (3, 1)


def save_ids(path: Path, count: int = 500, kind: str = "uint16") -> np.ndarray:
    found = np.random.default_rng(0).integers(0, 200, count)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, found.astype(kind))
    else:
        found.astype(kind).tofile(path)
    return found


def test_token_ids(tmp_path: Path) -> None:
    expected = save_ids(tmp_path / "x.bin")
    data = read(tmp_path / "x.bin", tokenizer="ids:200:7", val_fraction=0.2, pack=True)
    assert ids_of(data.train) == expected[:400].tolist()
    assert ids_of(data.val) == expected[400:].tolist()
    assert data.tokenizer.vocab_size == 200
    assert len(data.train[0]) == 3
    save_ids(tmp_path / "y.npy", kind="int32")
    same = read(tmp_path / "y.npy", tokenizer="ids:200")
    assert [*ids_of(same.train), *ids_of(same.val)] == expected.tolist()
    save_ids(tmp_path / "z.bin", kind="uint8")
    bytes_of = read(tmp_path / "z.bin", tokenizer="byte", token_dtype="uint8")
    assert [*ids_of(bytes_of.train), *ids_of(bytes_of.val)] == expected.tolist()
    windows = read_windows(tmp_path / "x.bin", 8, TextOptions(), data.tokenizer)
    assert ids_of(windows) == expected.tolist()


def test_a_folder_of_token_ids_with_their_tokenizer(tmp_path: Path) -> None:
    expected = {part: save_ids(tmp_path / f"{part}.bin", 100 * k) for k, part in
                enumerate(("val", "train"), start=1)}  # fmt: skip
    tokenizer = tokenizer_for("bpe:300", [POEM])
    (tmp_path / "tokenizer.json").write_text(tokenizer.state()["tokenizer"])
    data = read(tmp_path)
    assert ids_of(data.train) == expected["train"].tolist()
    assert ids_of(data.val) == expected["val"].tolist()
    assert data.tokenizer.decode([260, 261]) == tokenizer.decode([260, 261])


def test_a_tokenizer_is_found_again_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "char"):
        write(tmp_path / name / "tokenizer.json", "{}")
    assert TextOptions(tokenizer="mine").tokenizer == str(tmp_path / "mine")
    assert TextOptions(tokenizer="char").tokenizer == "char"
    assert TextOptions(tokenizer="none.json").tokenizer == "none.json"


def test_contexts_of_token_ids_are_checked_as_they_come(tmp_path: Path) -> None:
    found = save_ids(tmp_path / "x.bin", 600_000)
    found[54_321] = 999
    found.astype("uint16").tofile(tmp_path / "x.bin")
    data = read(tmp_path / "x.bin", 100, tokenizer="ids:200")
    with pytest.raises(DataError, match=r"x\.bin contains the id 999 at position 54,321, outside"):
        list(Feed(data.train, 64).epoch(0))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"x\.txt is empty: give a file with text"),
        (b" \n\n ", r"has no text to train on|0 tokens"),
        (
            b"abcde",
            r"the training text has 4 tokens, and a context of 8 needs 9: write --context 3",
        ),
        (b"caf\xe9 " * 30, r"x\.txt is not UTF-8: byte 0xe9 at offset 3 \(line 1\)"),
        (b"\x7fELF\0\0" * 30, r"looks like binary data \(a NUL byte at offset 4\)"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(DataError, match=said):
        read(tmp_path / "x.txt")


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", POEM)
    save_ids(tmp_path / "x.bin")
    for given, said in (
        ({"val_fraction": 0.0}, "--val-fraction must be above 0, up to 0.9, not 0: write"),
        ({"test_fraction": 1.5}, "--test-fraction must be 0 to 0.9"),
        ({"val_fraction": 0.5, "test_fraction": 0.5}, "leave nothing to train on: write smaller"),
        ({"token_dtype": "float32"}, "--token-dtype float32 is not one of uint8, uint16"),
        ({"document_separator": ""}, "--document-separator is empty: write the text"),
        ({"tokenizer": "ids:200"}, "is for token ids, and the data is text: write"),
        ({"val_data": tmp_path / "x.bin"}, "contains token ids and .* text: give both in one form"),
        ({"val_data": tmp_path / "none"}, "no file or folder .*none: check the path"),
    ):
        with pytest.raises((ConfigError, DataError), match=said):
            read(path, **given)
    for given, said in (
        ({}, "need their tokenizer: write --tokenizer and the path"),
        ({"tokenizer": "bpe:500"}, "need their tokenizer"),
        ({"tokenizer": "ids:100"}, r"contains the id \d+ at position \d+, outside the vocabulary"),
        ({"tokenizer": "ids:200", "pack": True}, "by an end-of-text id, and the tokenizer has"),
    ):
        with pytest.raises((ConfigError, DataError), match=said):
            read(tmp_path / "x.bin", **given)
    (tmp_path / "odd.bin").write_bytes(b"abc")
    with pytest.raises(DataError, match="has 3 bytes, not a multiple of the 2 of an id as uint16"):
        read(tmp_path / "odd.bin", tokenizer="ids:200")


def test_a_text_of_another_kind_of_path(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataError, match="fifo is a FIFO: give a text file"):
        read(tmp_path / "fifo")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty contains no text file: give a text file"):
        read(tmp_path / "empty")


def test_any_text_can_be_scored(tmp_path: Path) -> None:
    data = read(write(tmp_path / "x.txt", POEM), pack=False)
    tokenizer = json.loads(json.dumps(data.tokenizer.state()))
    assert tokenizer["kind"] == "char"
    new = write(tmp_path / "new" / "y.txt", POEM[50:80])
    windows = read_windows(new, 8, TextOptions(), data.tokenizer)
    tokens, targets = windows.get_batch(np.arange(len(windows)), 0)
    assert tokens.shape == (4, 8)
    assert data.tokenizer.decode(targets[targets != IGNORE].tolist()) == POEM[51:80]
    assert tokens.dtype == torch.int64
