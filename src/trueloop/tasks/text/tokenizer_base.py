"""The work of every tokenizer, and how ids become text one by one."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from trueloop.errors import DataError

Ids = npt.NDArray[np.int64]


class TextStream(Protocol):
    """Turns ids into text as they come: each call returns what is certain by then."""

    def push(self, token: int) -> str:
        """The text that is certain now that `token` has followed; often empty."""

    def finish(self) -> str:
        """The rest, once no more tokens follow: an unfinished character becomes U+FFFD."""


class Tokenizer(ABC):
    """Text to token ids and back.

    `decode` is the inverse of `encode`. Special tokens have no text: `decode` leaves the end of a
    text out.
    """

    vocab_size: int
    """Number of ids: they are 0 to vocab_size - 1."""
    end_of_text: int | None = None
    """The id between two documents; None where there is none."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without any special token.

        Raises `DataError` for text that has no id.
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
        """Bytes of UTF-8 of each id: int64 of shape (vocab_size,), 0 for special tokens."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain data (for JSON), for `tokenizer_from_state`."""

    @abstractmethod
    def stream(self) -> TextStream:
        """Decodes ids one by one; a new one for each text."""

    def _check_id(self, token: int) -> int:
        if not 0 <= token < self.vocab_size:
            raise DataError(
                f"the token id {token} is outside the vocabulary of {self.vocab_size:,} ids: give "
                f"ids from 0 to {self.vocab_size - 1}"
            )
        return int(token)


class BytesStream:
    """Decodes the bytes of ids as UTF-8: a character comes out with its last byte."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(self._bytes_of(token))

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)
