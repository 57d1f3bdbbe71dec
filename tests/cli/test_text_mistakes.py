"""Texts that no language model can be trained on: one line with what to type, status 2, no run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Command = Callable[..., Any]

TEXTS = {
    "empty.txt": b"",
    "short.txt": b"to be",
    "blank.txt": b" \n\n" * 200,
    "latin.txt": b"one\ntwo\ncaf\xe9 au lait",
    "utf16.txt": "to be or not to be".encode("utf-16"),
    "program.txt": b"\x7fELF\x02\0\0\0" * 100,
    "odd.bin": b"abc",
    "fine.txt": b"To be, or not to be: that is the question.\n" * 40,
}
WRONG = [
    ("gone.txt", "no file or folder gone.txt: check the path"),
    ("empty.txt", "empty.txt is empty: give a file with text"),
    ("short.txt", "the training text has 4 tokens, and a context of 8 needs 9: write --context 3"),
    ("blank.txt --tokenizer byte", "blank.txt has no text to train on, only white space"),
    (
        "latin.txt",
        "latin.txt is not UTF-8: byte 0xe9 at offset 11 (line 3) does not begin a character",
    ),
    ("utf16.txt", "utf16.txt is UTF-16, not UTF-8: convert it, iconv -f utf-16"),
    ("program.txt", "program.txt looks like binary data (a NUL byte at offset 5): give UTF-8 text"),
    ("fifo", "fifo is a FIFO: give a text file"),
    ("pictures", "pictures contains no text file, and 1 of other kinds: give a text file"),
    ("odd.bin --tokenizer ids:9", "odd.bin has 3 bytes, not a multiple of the 2 of an id"),
    ("ids.bin", "ids.bin contains token ids, which need their tokenizer: write"),
    ("ids.bin --tokenizer ids:100", "ids.bin contains the id 100 at position 100, outside the voc"),
    ("fine.txt --tokenizer fine.txt", "fine.txt is not a tokenizer file ("),
    (
        "fine.txt --tokenizer gone/tokenizer.json",
        "no tokenizer gone/tokenizer.json: check the path",
    ),
    ("fine.txt --tokenizer bpe:10", "--tokenizer bpe:10 is not a size from 257"),
    ("fine.txt --tokenizer bpe:9999999", "--tokenizer bpe:9999999 is not a size from 257"),
    ("fine.txt --tokenizer words", "unknown tokenizer 'words': write --tokenizer char, byte"),
    ("fine.txt --tokenizer ids:9", "--tokenizer ids:9 is for token ids, and the data is text"),
    ("fine.txt --val-fraction 1.5", "--val-fraction must be above 0, up to 0.9, not 1.5: write"),
    ("fine.txt --pack true", "--pack separates documents, and the text is one document: write"),
    ("fine.txt --val-data ids.bin", "ids.bin contains token ids and fine.txt text: give both in"),
]


def test_each_is_one_line(command: Command, tmp_path: Path) -> None:
    for name, content in TEXTS.items():
        Path(name).write_bytes(content)
    os.mkfifo("fifo")
    Path("pictures").mkdir()
    Path("pictures/x.png").write_bytes(b"\x89PNG\0\0")
    np.arange(500, dtype=np.uint16).tofile("ids.bin")
    for text, expected in WRONG:
        data, *more = text.split()
        said = command("train", "text", "--data", data, "--context", 8, "--run", "r", *more)
        assert said.status == 2, text
        line = said.complaint.replace(f"{tmp_path}/", "")
        assert expected in line, (text, line)
        assert not Path("r").exists(), text


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_text_that_may_not_be_read(command: Command) -> None:
    Path("x.txt").write_text("to be")
    Path("x.txt").chmod(0)
    said = command("train", "text", "--data", "x.txt", "--run", "r")
    assert said.status == 2
    assert "cannot read x.txt (Permission denied): check its permissions" in said.complaint
