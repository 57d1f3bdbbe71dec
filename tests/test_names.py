"""Names of files and classes as text that can be printed, and back."""

from __future__ import annotations

import io
import json
import os

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from trueloop.names import from_printable, printable, printable_line, same_name

CASES = [
    ("cat", "cat"),
    ("Größe 大 🐈", "Größe 大 🐈"),
    (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
    ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
    ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
    ("\u202egnp.exe", "\\u202egnp.exe"),
    (" a b ", "\\x20a b\\x20"),
    ("\u00a0a\u3000", "\\u00a0a\\u3000"),
    ("back\\slash \\n", "back\\\\slash \\\\n"),
    ("\u2028\ud800\U000e0001", "\\u2028\\ud800\\U000e0001"),
    ("\x85", "\\u0085"),
    ("👩\u200d💻", "👩\u200d💻"),
    ("   ", "\\x20\\x20\\x20"),
    ("", ""),
]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_a_name_is_printed_and_read_back(name: str, text: str) -> None:
    assert printable(name) == text
    assert from_printable(text) == name


@given(
    st.text(st.characters(codec=None) | st.sampled_from("\\xuUn0 \udcff\u0085"), max_size=12)
    | st.binary(max_size=8).map(os.fsdecode)
)
@settings(max_examples=300, deadline=None)
def test_any_name_fits_json_parquet_and_a_terminal_and_comes_back(name: str) -> None:
    text = printable(name)
    text.encode("utf-8")
    assert from_printable(text) == name
    assert len(text.splitlines()) <= 1
    assert text == text.strip()
    assert json.loads(json.dumps(text, ensure_ascii=False)) == text
    buffer = io.BytesIO()
    pl.DataFrame({"name": [text]}).write_parquet(buffer)
    buffer.seek(0)
    assert pl.read_parquet(buffer)["name"].to_list() == [text]
    assert printable_line(text) == " ".join(text.split())


def test_a_message_keeps_its_backslashes_and_loses_what_steers_a_terminal() -> None:
    assert printable_line("C:\\data  is\n\x1b[2J\u202e a \udce9") == (
        "C:\\data is \\x1b[2J\\u202e a \\xe9"
    )


def test_composed_and_decomposed_are_the_same_name() -> None:
    assert same_name("e\u0301") == same_name("\u00e9") == "\u00e9"
    assert same_name("²") != same_name("2")
