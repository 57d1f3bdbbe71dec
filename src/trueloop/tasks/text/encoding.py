"""Pieces of documents to token ids, in constant memory and as if each document were whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from trueloop.errors import DataError
from trueloop.names import printable
from trueloop.tasks.text.pieces import TextPiece
from trueloop.tasks.text.subwords import SubwordTokenizer
from trueloop.tasks.text.tokenizer import CharTokenizer, Tokenizer
from trueloop.tasks.text.tokenizer_base import Ids

_AT_ONCE = 4_000_000
"""Characters that are encoded at once, on all cores."""
_OVERLAP = 2048
"""Characters of a piece that are encoded again with the next: the ids around its middle agree, and
there the two are joined."""
_AGREE = 8
"""Ids after the place of joining that must agree."""


class DocumentEncoder:
    """Encodes documents, with the tokenizer's end of a text after each if `ends`."""

    def __init__(self, tokenizer: Tokenizer, *, ends: bool) -> None:
        self.tokenizer = tokenizer
        self.unknown: Counter[str] = Counter()
        """Characters that the tokenizer has no id for, and how often they came."""
        self.documents = 0
        self._end = (
            np.array([tokenizer.end_of_text])
            if ends and tokenizer.end_of_text is not None
            else None
        )

    def encode(self, pieces: Iterable[TextPiece]) -> Iterator[Ids]:
        """The ids of the pieces, one array after the other.

        Raises `DataError` for a character without an id, if the tokenizer has none for unknown
        ones either.
        """
        if isinstance(self.tokenizer, SubwordTokenizer):
            yield from self._subwords(pieces, self.tokenizer)
            return
        for piece in pieces:
            ids = self.tokenizer.encode_array(piece.text)
            if isinstance(self.tokenizer, CharTokenizer):
                ids = self._known(ids, piece, self.tokenizer)
            yield ids
            yield from self._ended(piece)

    def _ended(self, piece: TextPiece) -> Iterator[Ids]:
        if piece.ends:
            self.documents += 1
            if self._end is not None:
                yield self._end

    def _known(self, ids: Ids, piece: TextPiece, tokenizer: CharTokenizer) -> Ids:
        places = np.flatnonzero(ids < 0)
        if not len(places):
            return ids
        self.unknown.update(piece.text[place] for place in places)
        if tokenizer.unknown is None:
            raise DataError(
                f"{printable(str(piece.path))} contains {piece.text[places[0]]!r}, which is not "
                f"among the {len(tokenizer.characters):,} characters that the model was trained "
                "on: leave it out, or train with --tokenizer byte, which knows them all"
            )
        ids[places] = tokenizer.unknown
        return ids

    def _subwords(self, pieces: Iterable[TextPiece], tokenizer: SubwordTokenizer) -> Iterator[Ids]:
        join = _Join(tokenizer)
        for group in _groups(pieces):
            texts, cut, before = [], [], join.tail
            for piece in group:
                texts.append(before + piece.text)
                cut.append(bool(before) or not piece.ends)
                before = "" if piece.ends else texts[-1][-_OVERLAP:]
            whole = [text for text, is_cut in zip(texts, cut, strict=True) if not is_cut]
            parts = [text for text, is_cut in zip(texts, cut, strict=True) if is_cut]
            # Where the ids end takes as long again: asked for where texts are joined.
            ids_of_whole = iter(tokenizer.encode_arrays(whole))
            ids_of_parts = iter(tokenizer.encode_spans(parts))
            for piece, text, is_cut in zip(group, texts, cut, strict=True):
                if is_cut:
                    yield join.add(text, *next(ids_of_parts), ends=piece.ends)
                else:
                    yield next(ids_of_whole)
                yield from self._ended(piece)


class _Join:
    """Joins the ids of overlapping texts of one document."""

    def __init__(self, tokenizer: SubwordTokenizer) -> None:
        self._tokenizer = tokenizer
        self.tail = ""
        """The end of the last text, with which the next begins."""
        self._ids: Ids = np.empty(0, dtype=np.int64)
        self._stops = self._ids
        """Ids that are not certain yet, and where each ends in `tail`."""

    def add(self, text: str, ids: Ids, stops: Ids, *, ends: bool) -> Ids:
        """The ids that are certain now. `stops` (int64) is where each ends in `text`."""
        first = self._ids
        if self.tail:
            left, right = self._place(ids, stops)
            if right is None:
                # Nowhere do both end an id: what the former left over is encoded by itself.
                rest = text[int(self._stops[left - 1]) if left else 0 :]
                ids, stops = self._tokenizer.encode_spans([rest])[0]
                stops, right = stops + len(text) - len(rest), 0
            first, ids, stops = self._ids[:left], ids[right:], stops[right:]
        if ends:
            self.tail, self._ids, self._stops = "", ids[:0], stops[:0]
            return np.concatenate([first, ids])
        self.tail = text[-_OVERLAP:]
        start = len(text) - len(self.tail)
        sure = int(np.searchsorted(stops, start, side="right"))
        self._ids, self._stops = ids[sure:], stops[sure:] - start
        return np.concatenate([first, ids[:sure]])

    def _place(self, ids: Ids, stops: Ids) -> tuple[int, int | None]:
        """How many of the stored ids are used, and the index in `ids` to continue from."""
        middle = len(self.tail) // 2
        order = np.argsort(np.abs(self._stops - middle), kind="stable")
        for number in order:
            stop = self._stops[number]
            # After the last of the ids that share a character.
            left = int(np.searchsorted(self._stops, stop, side="right"))
            at = int(np.searchsorted(stops, stop, side="right"))
            if not at or stops[at - 1] != stop:
                continue
            after = self._ids[left : left + _AGREE]
            if np.array_equal(after, ids[at : at + len(after)]):
                return left, at
        left = self._stops[order[0]] if len(order) else 0
        return int(np.searchsorted(self._stops, left, side="right")), None


def _groups(pieces: Iterable[TextPiece]) -> Iterator[list[TextPiece]]:
    """Pieces that are encoded at once."""
    group: list[TextPiece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += len(piece.text)
        if size >= _AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group
