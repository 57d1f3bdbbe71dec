"""Tokenizers that need no learning: one id for a character, a byte, or a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trueloop.errors import DataError
from trueloop.tasks.text.tokenizer_base import BytesStream, Ids, TextStream, Tokenizer

_REPLACEMENT = "\ufffd"
_CODE_POINTS = 0x110000


class CharTokenizer(Tokenizer):
    """One id for each character, in the order of the code points; then, where they are asked for,
    one for the end of a text and one for characters that are not known."""

    def __init__(
        self, characters: Iterable[str], *, end_of_text: bool = False, unknown: bool = False
    ) -> None:
        self.characters = "".join(sorted(set(characters)))
        count = len(self.characters)
        self.end_of_text = count if end_of_text else None
        self.unknown = count + end_of_text if unknown else None
        """The id of characters that are not known; `encode` does not use it."""
        self.vocab_size = count + end_of_text + unknown
        self._points = _code_points(self.characters)
        # A table over all of Unicode (4 MiB) makes encoding one look-up.
        self._ids: npt.NDArray[np.int32] | None = None

    def encode(self, text: str) -> list[int]:
        ids = self.encode_array(text)
        unknown = np.flatnonzero(ids < 0)
        if len(unknown):
            place = int(unknown[0])
            before = text[:place]
            line, column = before.count("\n") + 1, place - before.rfind("\n")
            raise DataError(
                f"the character {text[place]!r} (line {line}, column {column} of the text) is not "
                f"among the {len(self.characters):,} characters that the model was trained on: "
                "leave it out, or train with --tokenizer byte, which knows them all"
            )
        return [int(token) for token in ids]

    def encode_array(self, text: str) -> Ids:
        """The ids of `text` as int64; -1 where a character is not known."""
        if self._ids is None:
            self._ids = np.full(_CODE_POINTS, -1, dtype=np.int32)
            self._ids[self._points] = np.arange(len(self._points))
        return self._ids[_code_points(text)].astype(np.int64)

    def bytes_per_token(self) -> Tensor:
        sizes = [len(_utf8(character)) for character in self.characters]
        return torch.tensor(sizes + [0] * (self.vocab_size - len(sizes)), dtype=torch.int64)

    def state(self) -> dict[str, Any]:
        return {
            "kind": "char",
            # Code points: JSON files keep no lone surrogates, which a text may hold.
            "characters": [ord(character) for character in self.characters],
            "end_of_text": self.end_of_text is not None,
            "unknown": self.unknown is not None,
        }

    def stream(self) -> TextStream:
        return _CharStream(self)

    def text_of(self, token: int) -> str:
        """The text of one id."""
        if self._check_id(token) < len(self.characters):
            return self.characters[token]
        return _REPLACEMENT if token == self.unknown else ""


class _CharStream:
    def __init__(self, tokenizer: CharTokenizer) -> None:
        self._tokenizer = tokenizer

    def push(self, token: int) -> str:
        return self._tokenizer.text_of(token)

    def finish(self) -> str:
        return ""


class ByteTokenizer(Tokenizer):
    """One id for each byte of UTF-8: 256, and the end of a text where it is asked for."""

    def __init__(self, *, end_of_text: bool = False) -> None:
        self.end_of_text = 256 if end_of_text else None
        self.vocab_size = 256 + end_of_text

    def encode(self, text: str) -> list[int]:
        return list(_utf8(text))

    def encode_array(self, text: str) -> Ids:
        return np.frombuffer(_utf8(text), dtype=np.uint8).astype(np.int64)

    def bytes_per_token(self) -> Tensor:
        sizes = torch.ones(self.vocab_size, dtype=torch.int64)
        sizes[256:] = 0
        return sizes

    def state(self) -> dict[str, Any]:
        return {"kind": "byte", "end_of_text": self.end_of_text is not None}

    def stream(self) -> TextStream:
        return BytesStream(self.bytes_of)

    def bytes_of(self, token: int) -> bytes:
        """The byte of one id."""
        return b"" if self._check_id(token) == self.end_of_text else bytes([token])


class IdTokenizer(Tokenizer):
    """Ids without a text: they are written as numbers with spaces between."""

    def __init__(self, vocab_size: int, end_of_text: int | None = None) -> None:
        self.vocab_size = vocab_size
        self.end_of_text = end_of_text

    def encode(self, text: str) -> list[int]:
        words = text.split()
        if wrong := [word for word in words if not (word.isascii() and word.isdigit())]:
            raise DataError(
                f"{wrong[0]!r} is not a token id, and the model was trained on ids without a "
                "tokenizer: write numbers, e.g. '12 7 305'"
            )
        return [self._check_id(int(word)) for word in words]

    def bytes_per_token(self) -> Tensor:
        return torch.zeros(self.vocab_size, dtype=torch.int64)

    def state(self) -> dict[str, Any]:
        return {"kind": "ids", "vocab_size": self.vocab_size, "end_of_text": self.end_of_text}

    def stream(self) -> TextStream:
        return _IdStream(self)

    def text_of(self, token: int) -> str:
        """The number of one id; nothing for the end of a text."""
        return "" if self._check_id(token) == self.end_of_text else str(token)


class _IdStream:
    def __init__(self, tokenizer: IdTokenizer) -> None:
        self._tokenizer = tokenizer
        self._space = ""

    def push(self, token: int) -> str:
        text = self._tokenizer.text_of(token)
        found = self._space + text if text else ""
        self._space = " " if text else self._space
        return found

    def finish(self) -> str:
        return ""


def characters_of(texts: Iterable[str]) -> set[str]:
    """All characters of the texts."""
    found: set[str] = set()
    for text in texts:
        found.update(text)
    return found


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _utf8(text: str) -> bytes:
    # A lone surrogate has no UTF-8: it is written as what every decoder replaces.
    return text.encode("utf-8", "surrogatepass")
