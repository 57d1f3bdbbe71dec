"""Texts to be scored one by one, as windows of a model's context."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from trueloop.errors import DataError
from trueloop.names import printable
from trueloop.tasks.text.contexts import IGNORE
from trueloop.tasks.text.pieces import documents
from trueloop.tasks.text.spans import find
from trueloop.tasks.text.tokenizer import Tokenizer


def documents_in(path: Path, separator: str | None) -> tuple[list[str], list[str]]:
    """Names and texts of the documents at `path`: those of a folder's files by their places in it,
    several of one file by their numbers. Raises `DataError`."""
    found = find(path)
    if found.are_tokens:
        raise DataError(f"{path} holds token ids: give text, one file or a folder of them")
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


def windows_of(
    texts: list[str], tokenizer: Tokenizer, context: int, start: int | None
) -> tuple[TensorDataset, list[int], dict[int, str]]:
    """Windows (tokens, targets), int64 (windows, context) each, in which every token of each text
    but its first is predicted once; with an id `start` ahead of each text, the first too.

    Returns also the number of the text that each window is of, among those that can be scored, and
    why the others cannot, by their number among all.
    """
    rows: list[tuple[Tensor, Tensor]] = []
    owners: list[int] = []
    errors: dict[int, str] = {}
    scored = 0
    for number, text in enumerate(texts):
        try:
            ids = tokenizer.encode(text)
        except DataError as error:
            errors[number] = str(error)
            continue
        if start is not None:
            ids = [start, *ids]
        if len(ids) < 2:
            errors[number] = "a score takes 2 tokens, and the text has fewer"
            continue
        for place in range(0, len(ids) - 1, context):
            rows.append(_window(ids[place : place + context + 1], context))
            owners.append(scored)
        scored += 1
    tokens = torch.stack([row[0] for row in rows]) if rows else torch.zeros(0, context).long()
    targets = torch.stack([row[1] for row in rows]) if rows else tokens
    return TensorDataset(tokens, targets), owners, errors


def _window(ids: list[int], context: int) -> tuple[Tensor, Tensor]:
    tokens = torch.zeros(context, dtype=torch.int64)
    targets = torch.full((context,), IGNORE)
    count = len(ids) - 1
    tokens[:count] = torch.tensor(ids[:-1])
    targets[:count] = torch.tensor(ids[1:])
    return tokens, targets
