"""Text to token ids and back: characters, bytes, and how a tokenizer is chosen and kept."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trueloop.errors import ConfigError, DataError

Ids = npt.NDArray[np.int64]

_REPLACEMENT = "\ufffd"
_CODE_POINTS = 0x110000


class TextStream(Protocol):
    """Turns ids into text as they come: each call returns what is certain by then."""

    def push(self, token: int) -> str:
        """The text that is certain now that `token` has followed; often empty."""

    def finish(self) -> str:
        """The rest, once no more tokens follow: an unfinished character becomes U+FFFD."""


class Tokenizer(ABC):
    """Text to token ids and back.

    `decode` is the inverse of `encode`. Special tokens stand for no text: `decode` leaves the end
    of a text out.
    """

    vocab_size: int
    """Number of ids: they are 0 to vocab_size - 1."""
    end_of_text: int | None = None
    """The id between two documents; None where there is none."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without any special token.

        Raises `DataError` for text that no id stands for.
        """

    def encode_array(self, text: str) -> Ids:
        """`encode` as an int64 array."""
        return np.array(self.encode(text), dtype=np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; bytes that make no character become U+FFFD.

        Raises `DataError` for an id outside the vocabulary.
        """
        stream = self.stream()
        return "".join([stream.push(token) for token in ids] + [stream.finish()])

    @abstractmethod
    def bytes_per_token(self) -> Tensor:
        """Bytes of UTF-8 that each id stands for: int64 of shape (vocab_size,), 0 for special
        tokens."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain data (what JSON holds), for `tokenizer_from_state`."""

    @abstractmethod
    def stream(self) -> TextStream:
        """What decodes ids one by one; a new one for each text."""

    def _check_id(self, token: int) -> int:
        if not 0 <= token < self.vocab_size:
            raise DataError(
                f"the token id {token} is outside the vocabulary of {self.vocab_size:,} ids: give "
                f"ids from 0 to {self.vocab_size - 1}"
            )
        return int(token)


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


class BytesStream:
    """Decodes the bytes of ids as UTF-8: a character comes out with its last byte."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(self._bytes_of(token))

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)


def tokenizer_for(spec: str, texts: Iterable[str], *, end_of_text: bool = False) -> Tokenizer:
    """The tokenizer that `spec` names, fitted on `texts`, the pieces of the training text.

    `char` has the characters of the texts, `byte` the 256 bytes. `end_of_text` asks for an id
    between documents. Raises `ConfigError` for anything else.
    """
    if spec == "char":
        return CharTokenizer(characters_of(texts), end_of_text=end_of_text)
    if spec == "byte":
        return ByteTokenizer(end_of_text=end_of_text)
    raise ConfigError(f"unknown tokenizer {spec!r}: write --tokenizer char or --tokenizer byte")


def tokenizer_from_state(state: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer whose `state` this is. Raises `DataError` where it is none."""
    try:
        if state["kind"] == "char":
            return CharTokenizer(
                map(chr, state["characters"]),
                end_of_text=state["end_of_text"],
                unknown=state["unknown"],
            )
        if state["kind"] == "byte":
            return ByteTokenizer(end_of_text=state["end_of_text"])
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    raise DataError(
        "the saved tokenizer is not one that this version of Trueloop knows: train the run again, "
        "or use the version that trained it"
    )


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
