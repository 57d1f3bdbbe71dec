"""A CSV or Parquet file as a frame, or one line that says what is wrong with it.

The cells of a CSV file stay text here: `columns` decides whether a column is numeric, and can then
name the row and the cell that do not fit.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trueloop.errors import DataError, nearest_path
from trueloop.files import cannot_read, read_bytes
from trueloop.tasks.table.column_encoding import RowErrors

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# First bytes of what people pass by mistake for a CSV file.
_NOT_A_TABLE = {
    b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or export the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: export the sheet as CSV",
    b"%PDF": "a PDF document: export the table as CSV",
    b"\x89PNG": "an image: `trueloop train images` reads folders of images",
    b"\xff\xd8\xff": "an image: `trueloop train images` reads folders of images",
    b"BZh": "compressed with bzip2: unpack it first",
    b"\xfd7zXZ": "compressed with xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"\xff\xfe": "encoded as UTF-16: convert it, e.g. `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "encoded as UTF-16: convert it, e.g. `iconv -f UTF-16 -t UTF-8`",
}


def read_frame(path: Path, errors: RowErrors | None = None) -> pl.DataFrame:
    """The table at `path` with at least one row: text columns from CSV, typed ones from Parquet.

    CSV may be gzipped and separated by comma, semicolon, tab or bar (the header decides); cells are
    stripped of spaces, empty ones are null, and blank lines are passed over. An unnamed first
    column, which is how pandas saves its index, is dropped. Raises `DataError`; with `errors`, a
    line with too many or too few cells becomes an empty row that is noted there.
    """
    content = _bytes(path)
    if content.startswith(b"PAR1"):
        frame = _read_parquet(path, content)
    elif path.suffix.lower() == ".parquet":
        raise DataError(
            f"{path} is not Parquet, it does not begin with PAR1: write it again, or rename it to "
            ".csv if it is CSV"
        )
    else:
        frame = _read_csv(path, content, errors)
    if frame.height == 0:
        raise DataError(f"{path} has a header but no rows: give a file with data")
    return frame


def _bytes(path: Path) -> bytes:
    if path.is_dir():
        raise DataError(f"{path} is a folder: give one CSV or Parquet file")
    try:
        content = read_bytes(path)
    except FileNotFoundError:
        raise DataError(f"no file {path}: {nearest_path(path, 'check --data')}") from None
    except OSError as error:
        raise DataError(cannot_read(path, error)) from None
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error):
            raise DataError(f"{path} is broken gzip: fetch or pack it again") from None
    if not content.strip():
        raise DataError(f"{path} is empty: give a file with a header and rows")
    return content


def _read_parquet(path: Path, content: bytes) -> pl.DataFrame:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = _first_line(error)
        raise DataError(f"{path} is broken Parquet ({reason}): write it again") from None
    check_names(path, frame.columns)
    return frame


def _read_csv(path: Path, content: bytes, errors: RowErrors | None) -> pl.DataFrame:
    import polars as pl

    text = _text(path, content)
    header = text[: text.find("\n") + 1 or None]
    separator = max(_SEPARATORS, key=lambda mark: _outside_quotes(header, mark))
    names = [name.strip() for name in _header(path, text, separator)]
    check_names(path, names)
    frame, ragged = _cells(path, text, separator, len(names), lenient=errors is not None)
    stripped = pl.all().str.strip_chars()
    frame = frame.select(pl.when(stripped.str.len_bytes() > 0).then(stripped))
    if frame.width > 1:
        blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
        blank[list(ragged)] = False
        if errors is not None:
            place = np.cumsum(~blank) - 1  # of each row, once blank lines are out
            found = {int(place[row]): reason for row, reason in ragged.items()}
            errors.add(found, found.__getitem__, "fix the line")
        frame = frame.filter(~blank)
    frame.columns = names
    return frame.drop("") if names[0] == "" else frame


def _cells(
    path: Path, text: str, separator: str, width: int, *, lenient: bool
) -> tuple[pl.DataFrame, dict[int, str]]:
    """The cells under the header as text, and of each ragged line, which is left empty, what is
    wrong with it; unless `lenient`, the first such line raises `DataError`."""
    import polars as pl

    try:
        frame = pl.read_csv(
            io.BytesIO(text.encode()),
            separator=separator,
            infer_schema_length=0,
            has_header=True,
        )
    except pl.exceptions.PolarsError as error:
        if lenient:
            return _cells_line_by_line(path, text, separator, width)
        _check_widths(path, text, separator, width)
        raise DataError(f"{path} cannot be read as CSV: {_first_line(error)}") from None
    frame.columns = [f"_{k}" for k in range(frame.width)]  # polars renames some; these are unique
    if frame.get_column(frame.columns[-1]).null_count():
        # A short line reads as empty cells, and is most often the sign of a file cut off.
        if lenient:
            return _cells_line_by_line(path, text, separator, width)
        _check_widths(path, text, separator, width)
    return frame, {}


def _cells_line_by_line(
    path: Path, text: str, separator: str, width: int
) -> tuple[pl.DataFrame, dict[int, str]]:
    """`_cells` for a file with ragged lines, which polars does not read."""
    import polars as pl

    rows: list[list[str | None]] = []
    ragged: dict[int, str] = {}
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    line = 1
    try:
        next(reader)
        for cells in reader:
            line = reader.line_num
            if cells and len(cells) != width:
                ragged[len(rows)] = f"line {line} has {len(cells)} cells, the header has {width}"
                rows.append([None] * width)
            elif cells:
                rows.append(list(cells))
    except csv.Error as error:
        raise DataError(f"{path}: line {line} is not CSV ({error}): fix the line") from None
    schema = {f"_{k}": pl.String for k in range(width)}
    return pl.DataFrame(rows, schema=schema, orient="row"), ragged


def _text(path: Path, content: bytes) -> str:
    """The file's content as text, once it is plausible that it is a table at all."""
    start = content[:64]
    for magic, what in _NOT_A_TABLE.items():
        if start.startswith(magic):
            raise DataError(f"{path} is {what}")
    if b"\x00" in content[:4096]:
        raise DataError(f"{path} is a binary file, not CSV: export the table as CSV or Parquet")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} is not UTF-8: byte 0x{content[error.start]:02x} in line {line}; convert it, "
            f"e.g. `iconv -f LATIN1 -t UTF-8`"
        ) from None
    first = text.lstrip()[:1]
    if first == "<":
        raise DataError(f"{path} is HTML or XML, not CSV: download the table itself")
    if first in ("{", "["):
        raise DataError(f"{path} is JSON, not CSV: convert it to CSV or Parquet")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as spreadsheets once wrote them on a Mac
    return text.lstrip("\r\n")


def _outside_quotes(line: str, mark: str) -> int:
    return sum(part.count(mark) for part in line.split('"')[::2])


def _header(path: Path, text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text), delimiter=separator))
    except (csv.Error, StopIteration) as error:
        raise DataError(f"{path} has no header that can be read ({error}): fix line 1") from None


def check_names(path: Path, names: list[str]) -> None:
    if len(names) < 2:
        found = f"one column only ({names[0][:40]!r})" if names else "no column"
        raise DataError(
            f"{path} has {found}: give a target and something to predict it from, separated by "
            "comma, semicolon, tab or bar"
        )
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = [str(k + 1) for k, name in enumerate(names) if name == twice[0]]
        raise DataError(
            f"{path} has more than one column called {twice[0]!r} (columns {', '.join(places)}): "
            "rename or remove all but one"
        )
    unnamed = [k + 1 for k, name in enumerate(names) if not name]
    if unnamed and unnamed != [1]:
        raise DataError(f"{path}: column {unnamed[-1]} has no name: name it in the header")


def _check_widths(path: Path, text: str, separator: str, width: int) -> None:
    """Raise `DataError` for the first line with more or fewer cells than the header."""
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    line = 1
    try:
        for row in reader:
            if row and len(row) != width:
                raise DataError(
                    f"{path}: line {line} has {len(row)} cells, the header has {width}: fix the "
                    "line (quote a cell that contains the separator)"
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}: line {line} is not CSV ({error}): fix the line") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
