"""Places of findings as ranges of the protocol, which counts lines from 0 and columns in units that
the client chooses; and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from lsprotocol import types
from pygls import uris
from pygls.workspace import PositionCodec

from trueloop.doctor.language_server.open_files import OpenFile
from trueloop.doctor.model.findings import Location
from trueloop.doctor.static.fixes.edits import LINE
from trueloop.doctor.static.inputs.open_document import Documents


@dataclass(frozen=True)
class Places:
    """Where the editor shows the places of findings."""

    codec: PositionCodec
    files: Mapping[str, OpenFile]
    documents: Documents

    def uri(self, path: str, line: int = 1) -> str:
        """The document that has a line of a file: of a notebook, a cell."""
        file = self.files.get(path)
        if file is None:
            return uris.from_fs_path(path) or path
        cell, _ = self.documents[path].cell(line) if file.cells else (0, line)
        return file.cells[cell - 1] if cell else file.uri

    def location(self, place: Location) -> types.Location:
        """A place; of several lines the first."""
        start = self.position(place.path, place.line, place.column)
        if place.end_line == place.line:
            end = self.position(place.path, place.line, place.end_column)
        else:
            end = self.position(place.path, place.line, len(self._line(place)) + 1)
        return types.Location(self.uri(place.path, place.line), types.Range(start, end))

    def position(self, path: str, line: int, column: int) -> types.Position:
        """A line and a column of a file, both from 1."""
        text = self._line(Location(path, line))
        _, within = self.documents[path].cell(line)
        return types.Position(within - 1, self.codec.client_num_units(text[: column - 1]))

    def _line(self, place: Location) -> str:
        lines = self.documents[place.path].lines
        return lines[place.line - 1].rstrip() if 0 < place.line <= len(lines) else ""


def edits_between(before: str, after: str, codec: PositionCodec) -> Iterator[types.TextEdit]:
    """The changes of whole lines that lead from one text to the next."""
    old: Sequence[str] = LINE.findall(before)
    new: Sequence[str] = LINE.findall(after)

    def start_of(line: int) -> types.Position:
        if line < len(old) or not old or old[-1].endswith(("\r", "\n")):
            return types.Position(line, 0)
        return types.Position(line - 1, codec.client_num_units(old[-1]))

    for kind, first, last, new_first, new_last in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            changed = types.Range(start_of(first), start_of(last))
            yield types.TextEdit(changed, "".join(new[new_first:new_last]))
