"""Bytes read as Python reads them, or one clear reason why not."""

from __future__ import annotations

import ast
import codecs
from pathlib import Path

import pytest

from trueloop.doctor.static.inputs import documents
from trueloop.doctor.static.inputs.documents import UnreadableError, decode, decode_exactly
from trueloop.doctor.static.inputs.open_document import open_document


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"x = 1\r\ny = 2\rz = 3\n", "x = 1\ny = 2\nz = 3\n"),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        (b"# -*- coding: latin-1 -*-\n\xe9", "# -*- coding: latin-1 -*-\né"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n\x80", None),
        ("s = '日本\u2028x\x0c'\n".encode(), "s = '日本\u2028x\x0c'\n"),
    ],
    ids=["empty", "line breaks", "mark", "latin-1", "cp1252", "odd breaks"],
)
def test_text_is_what_python_reads(data: bytes, text: str | None) -> None:
    assert decode(data) == (data.decode("cp1252") if text is None else text)


@pytest.mark.parametrize(
    ("data", "line", "why"),
    [
        (b"x = 1\ns = '\xe9'\n", 2, "is not UTF-8 .byte 0xe9. and declares no other"),
        (b"a\rb\r\nc\n\xff", 4, "is not UTF-8"),
        (b"x = 1\n\0\n", 2, "null bytes"),
        ("x".encode("utf-16"), 1, "UTF-16"),
        (b"# coding: nonsense\n", 1, "declares an encoding"),
        (b"# coding: hex\n", 1, "declares an encoding"),
        (b"# coding: ascii\n\xe9\n", 2, "is not ascii"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, "declares an encoding"),
    ],
    ids=["latin-1", "mac", "null", "utf-16", "unknown", "hex", "ascii", "mark and declaration"],
)
def test_what_python_would_refuse_is_refused_with_a_reason(
    data: bytes, line: int, why: str
) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        ast.parse(data)
    with pytest.raises(UnreadableError, match=why) as caught:
        decode(data)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"# coding: unicode_escape\nx = '\\ud800'\n", "halves of characters in unicode_escape"),
        (b"# coding: unicode_escape\nx = '\\x00'\n", "null characters in unicode_escape"),
        (b"# coding: undefined\n", "declares an encoding that Python refuses"),
        (b"# coding: " + b"a" * 5_000 + b"\n", "Python does not know .unknown encoding: aaa"),
    ],
    ids=["halves", "null", "undefined", "long"],
)
def test_encodings_that_write_what_no_source_holds(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why) as caught:
        decode(data)
    assert len(caught.value.message) < 200


def test_for_an_edit_the_text_is_exact() -> None:
    data = codecs.BOM_UTF8 + "a\r\né\rb".encode()
    text, encoding = decode_exactly(data)
    assert text == "a\r\né\rb"
    assert text.encode(encoding) == data


def test_a_python_file_is_one_program(tmp_path: Path) -> None:
    path = tmp_path / "train"
    path.write_bytes(b"x = 1\r\n")
    document = open_document(str(path))
    assert [program.text for program in document.programs] == ["x = 1\n"]
    assert document.cell(7) == (0, 7)


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "CODE_LIMIT", 1000)
    path = tmp_path / "generated.py"
    path.write_text("x = 1\n" * 1000)
    (problem,) = open_document(str(path)).problems
    assert problem.message.startswith("is larger than 1 kB: ")


@pytest.mark.parametrize("name", ["gone.py", "."])
def test_a_file_that_cannot_be_opened_is_a_problem_of_that_file(tmp_path: Path, name: str) -> None:
    (problem,) = open_document(str(tmp_path / name)).problems
    assert "cannot be read" in problem.message or "is a folder" in problem.message
