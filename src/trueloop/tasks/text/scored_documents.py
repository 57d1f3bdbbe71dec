"""Texts to be scored one by one, as windows of a model's context."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from trueloop.errors import DataError
from trueloop.names import printable
from trueloop.tasks.text.chat_template import ChatTemplate, Message
from trueloop.tasks.text.context_windows import IGNORE
from trueloop.tasks.text.pieces import documents
from trueloop.tasks.text.spans import find
from trueloop.tasks.text.tokenizer import Tokenizer

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def documents_in(path: Path, separator: str | None) -> tuple[list[str], list[str]]:
    """Names and texts of the documents at `path`: those of a folder's files by their places in it,
    several of one file by their numbers. Raises `DataError`."""
    found = find(path)
    if found.are_tokens:
        raise DataError(f"{path} contains token ids: give text, a file or a folder of files")
    names: list[tuple[str, Path, int]] = []
    texts: list[str] = []
    held: list[str] = []
    of_file: dict[Path, int] = {}
    for piece in documents(found.spans, separator):
        held.append(piece.text)
        if piece.ends:
            of_file[piece.path] = of_file.get(piece.path, 0) + 1
            below = piece.path.relative_to(path) if path.is_dir() else Path(piece.path.name)
            names.append((printable(below.as_posix()), piece.path, of_file[piece.path]))
            texts.append("".join(held))
            held = []
    if not texts:
        raise DataError(f"{path} has no text: give a file with text")
    return [name if of_file[file] == 1 else f"{name}#{k}" for name, file, k in names], texts


def windows_of(texts: list[str], tokenizer: Tokenizer, context: int, start: int | None) -> Scorable:
    """Windows in which every token of each text but its first is predicted once; with an id `start`
    ahead of each text, the first too."""
    found = Scorable(context)
    for text in texts:
        try:
            ids = tokenizer.encode(text)
        except DataError as error:
            found.leave_out(str(error))
            continue
        ids = ids if start is None else [start, *ids]
        if len(ids) < 2:
            found.leave_out("a score needs 2 tokens, and the text has fewer")
        else:
            found.add(np.array(ids), np.ones(len(ids), dtype=bool))
    return found


def windows_of_conversations(
    conversations: list[list[Message]],
    errors: Mapping[int, str],
    template: ChatTemplate,
    context: int,
) -> Scorable:
    """Windows in which every token of each response is predicted once; those of `errors` are
    skipped."""
    found = Scorable(context)
    for number, messages in enumerate(conversations):
        if number in errors:
            found.leave_out(errors[number])
            continue
        try:
            ids, predicted = template.encode(messages)
        except DataError as error:
            found.leave_out(str(error))
            continue
        if predicted[1:].any():
            found.add(ids, predicted)
        else:
            found.leave_out("its response has no token that something goes before")
    return found


class Scorable:
    """Pieces of text as windows (tokens, targets), int64 (context,) each."""

    def __init__(self, context: int) -> None:
        self._context = context
        self._rows: list[tuple[Tensor, Tensor]] = []
        self.owners: list[int] = []
        """The number of the piece that each window is of, among those that can be scored."""
        self.scored: list[int] = []
        """The numbers, among all, of the pieces that can be scored."""
        self.errors: dict[int, str] = {}
        """Why the others cannot, by their numbers among all."""

    def leave_out(self, reason: str) -> None:
        """Count a piece that cannot be scored."""
        self.errors[len(self.scored) + len(self.errors)] = reason

    def add(self, ids: Ids, predicted: Flags) -> None:
        """Cut a piece into windows; `predicted` says which ids are to be, of the same length."""
        context = self._context
        for place in range(0, len(ids) - 1, context):
            there = slice(place, place + context + 1)
            if predicted[there][1:].any():
                self._rows.append(_window(ids[there], predicted[there], context))
                self.owners.append(len(self.scored))
        self.scored.append(len(self.scored) + len(self.errors))

    def windows(self) -> TensorDataset:
        """All windows: two int64 tensors (windows, context)."""
        return TensorDataset(*(torch.stack(part) for part in zip(*self._rows, strict=True)))


def _window(ids: Ids, predicted: Flags, context: int) -> tuple[Tensor, Tensor]:
    tokens = torch.zeros(context, dtype=torch.int64)
    targets = torch.full((context,), IGNORE)
    count = len(ids) - 1
    tokens[:count] = torch.from_numpy(ids[:-1])
    targets[:count] = torch.from_numpy(np.where(predicted[1:], ids[1:], IGNORE))
    return tokens, targets
