"""Tables that can be read, and those that cannot: each one line with cause and remedy."""

from __future__ import annotations

import gzip
import io
import zipfile

import polars as pl
import pytest

from trueloop.errors import DataError
from trueloop.tasks.table.table_files import read_frame


@pytest.fixture
def refused(one_line):
    """Lets `read_frame` refuse a file with one line that matches and names it."""

    def check(path, match: str) -> None:
        with pytest.raises(DataError, match=match) as error:
            read_frame(path)
        assert str(path) in one_line(error)

    return check


def test_cells_are_text_stripped_and_empty_ones_null(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a , b c,d\n1, x ,"p, q"\n\n2,,\n"", y ,z\n')
    frame = read_frame(path)
    assert frame.columns == ["a", "b c", "d"]
    assert frame.rows() == [("1", "x", "p, q"), ("2", None, None), (None, "y", "z")]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_header_tells_the_separator(tmp_path, mark):
    path = tmp_path / "t.tsv"
    path.write_text(f'a{mark}"b,b;b"{mark}c\r\n1{mark}2{mark}3\r\n')
    frame = read_frame(path)
    assert frame.columns == ["a", "b,b;b", "c"]
    assert frame.rows() == [("1", "2", "3")]


def test_lines_may_end_in_carriage_returns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\r1,2\r3,4\r")
    assert read_frame(path).rows() == [("1", "2"), ("3", "4")]


def test_a_byte_order_mark_a_gzip_and_a_saved_index(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf,a,b\n0,1,x\n1,2,y\n", mtime=0))
    frame = read_frame(path)
    assert frame.columns == ["a", "b"]
    assert frame.rows() == [("1", "x"), ("2", "y")]


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "t.parquet"
    table = pl.DataFrame({"a": [1.5, None], "b": ["x", "y"], "c": [True, False]})
    table.write_parquet(path)
    assert read_frame(path).equals(table)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("t.csv", "a,b\n1,2\n")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty: give a file"),
        (b" \n\n", "is empty: give a file"),
        (b"a,b\n", "has a header but no rows"),
        (b"a,b,a\n1,2,3\n", r"more than one column called 'a' \(columns 1, 3\): rename"),
        (b"a, a\n1,2\n", "more than one column called 'a'"),
        (b"a,,b\n1,2,3\n", "column 2 has no name"),
        (b"a\n1\n2\n", "one column only"),
        (b"just some words\nand more\n", "one column only"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, the header has 2: fix"),
        (b"a,b,c\n1,2,3\n1,2\n", "line 3 has 2 cells, the header has 3: fix"),
        (b'a,b\n"x\ny",1\n1\n', "line 4 has 1 cells, the header has 2"),
        (b"a,b\n1,2\n3,caf\xe9\n", "not UTF-8: byte 0xe9 in line 3; convert it"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16: convert it"),
        (b"<!doctype html>\n<html>a,b</html>\n", "HTML or XML, not CSV"),
        (b'{"a": [1, 2]}\n', "JSON, not CSV"),
        (b"\x7fELF\x00\x00\x01, \n", "binary file, not CSV"),
        (b"\x89PNG\r\n\x1a\n", "trueloop train images"),
        (zipped(), "zip archive or a spreadsheet: unpack it"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "broken gzip"),
        (b"PAR1 and then nothing", "broken Parquet"),
    ],
)
def test_what_is_no_table_is_named(tmp_path, content, match, refused):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    refused(path, match)


def test_places_that_hold_no_file(tmp_path, refused):
    refused(tmp_path / "none.csv", "no file .*: check --data")
    refused(tmp_path, "is a folder: give one CSV or Parquet file")


def test_parquet_without_rows(tmp_path, refused):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [], "b": []}).write_parquet(path)
    refused(path, "no rows")
