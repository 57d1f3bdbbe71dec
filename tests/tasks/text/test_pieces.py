"""Files as pieces of documents, against the whole text split at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from trueloop.errors import DataError
from trueloop.tasks.text import pieces
from trueloop.tasks.text.pieces import documents
from trueloop.tasks.text.spans import Span


def joined(path: Path, separator: str | None = None, start: int = 0) -> list[str]:
    found, text = [], ""
    for piece in documents([Span(path, start, path.stat().st_size)], separator):
        assert piece.path == path
        text += piece.text
        if piece.ends:
            found.append(text)
            text = ""
    assert not text
    return found


@settings(deadline=None)
@given(
    st.text("ab|\n é☕😀", max_size=60),
    st.sampled_from([None, "|", "\n\n", "||b"]),
    st.integers(1, 9),
)
def test_pieces_join_to_the_documents(
    tmp_path_factory: pytest.TempPathFactory, text: str, separator: str | None, block: int
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "x.txt"
    path.write_bytes(text.encode())
    whole = text.split(separator) if separator else [text]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_READ", block)
        assert joined(path, separator) == [each for each in whole if each and not each.isspace()]


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfabc\xef\xbb\xbf")
    assert joined(path) == ["abc\ufeff"]
    assert joined(path, start=3) == ["abc\ufeff"]


@pytest.mark.parametrize("block", [1 << 20, 4, 3])
def test_bytes_that_are_not_utf8_are_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(pieces, "_READ", block)
    path = tmp_path / "x.txt"
    path.write_bytes("é\nab\ncaf".encode() + b"\xe9 au lait")
    with pytest.raises(DataError, match=r"offset 9 \(line 3\) does not begin a .* iconv"):
        joined(path)
    with pytest.raises(DataError, match=r"offset 9 \(line 3\)"):
        joined(path, start=3)
    path.write_bytes("ab☕".encode()[:-1])
    with pytest.raises(DataError, match=r"byte 0xe2 at offset 2 \(line 1\)"):
        joined(path)


def test_binary_data_are_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_READ", 3)
    path = tmp_path / "x.txt"
    path.write_bytes(b"abcde\0f")
    with pytest.raises(DataError, match=r"looks like binary data \(a NUL byte at offset 5\): give"):
        joined(path)
    monkeypatch.setattr(pieces, "_READ", 1 << 20)
    path.write_bytes("abc".encode("utf-16"))
    with pytest.raises(DataError, match="is UTF-16, not UTF-8: convert it, iconv -f utf-16"):
        joined(path)


def test_the_advance_counts_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("é" * 1000)
    seen: list[int] = []
    list(documents([Span(path, 0, 2000)], None, seen.append))
    assert sum(seen) == 2000
    with pytest.raises(DataError, match="has become shorter while it was read"):
        list(documents([Span(path, 0, 2001)], None))
