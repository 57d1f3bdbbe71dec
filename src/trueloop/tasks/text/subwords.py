"""Subword tokenizers of the library `tokenizers`: a byte-level BPE that is learned on the training
text, or the tokenizer file of a model."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trueloop import files
from trueloop.errors import ConfigError, DataError, MissingDependencyError
from trueloop.tasks.text.tokenizer_base import BytesStream, Ids, TextStream, Tokenizer

if TYPE_CHECKING:
    import tokenizers

END_OF_TEXT = "<|endoftext|>"
LEAST = 257
"""Ids of a learned BPE at least: the 256 bytes and the end of a text."""
MOST = 1_000_000
_ENDS = (END_OF_TEXT, "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "[SEP]")
"""How models call their end of a text, where nothing beside the file says it."""
_FILE = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_MOST_BYTES = 256_000_000
_SPACE = "\u2581"  # how sentencepiece writes a space


class SubwordTokenizer(Tokenizer):
    """A tokenizer of the library `tokenizers`.

    `encode` adds no special tokens. Those that the text itself names (`<|endoftext|>`) are special
    tokens where the tokenizer comes from a file, as in `transformers`, and plain text where it was
    learned here (`literal`).
    """

    def __init__(
        self, library: tokenizers.Tokenizer, end_of_text: int | None, *, literal: bool
    ) -> None:
        self.library = library
        library.no_truncation()
        library.no_padding()
        library.encode_special_tokens = literal
        self._literal = literal
        self.end_of_text = end_of_text
        self.vocab_size = 1 + max(library.get_vocab(with_added_tokens=True).values())
        added = library.get_added_tokens_decoder()
        self._special = {token for token, each in added.items() if each.special}
        self._is_byte_level = _kind(_parts(library)["decoder"]) == {"ByteLevel"}

    def encode(self, text: str) -> list[int]:
        return list(self.library.encode(_clean(text), add_special_tokens=False).ids)

    def encode_array(self, text: str) -> Ids:
        return self.encode_arrays([_clean(text)])[0]

    def encode_arrays(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of each text; on all cores."""
        found = self.library.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(each.ids, dtype=np.int64) for each in found]

    def encode_spans(self, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
        """The ids of each text, and the place in it after each id's last character; on all
        cores."""
        found = self.library.encode_batch(list(texts), add_special_tokens=False)
        return [
            (
                np.array(each.ids, dtype=np.int64),
                np.array([stop for _, stop in each.offsets], dtype=np.int64),
            )
            for each in found
        ]

    def decode(self, ids: Sequence[int]) -> str:
        checked = [self._check_id(token) for token in ids]
        if self._is_byte_level:
            return super().decode(checked)
        return str(self.library.decode(checked, skip_special_tokens=True))

    def stream(self) -> TextStream:
        if self._is_byte_level:
            return BytesStream(lambda token: self._bytes[self._check_id(token)])
        return _PieceStream(self)

    def bytes_per_token(self) -> Tensor:
        return torch.tensor([len(each) for each in self._bytes], dtype=torch.int64)

    def state(self) -> dict[str, Any]:
        return {
            "kind": "subwords",
            "tokenizer": self.library.to_str(),
            "end_of_text": self.end_of_text,
            "literal": self._literal,
        }

    @functools.cached_property
    def _bytes(self) -> list[bytes]:
        """The UTF-8 of each id; none for special tokens."""
        found = [b""] * self.vocab_size
        read = _byte_level if self._is_byte_level else _with_marks
        for piece, token in self.library.get_vocab(with_added_tokens=True).items():
            if token not in self._special:
                found[token] = read(piece)
        return found


class _PieceStream:
    """Decodes ids whose text depends on their neighbours (a space at the start of a text, bytes
    that make a character together): what two passes over the last ids differ in is certain."""

    def __init__(self, tokenizer: SubwordTokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._known = 0
        """Ids, of those kept, whose text has been returned."""

    def push(self, token: int) -> str:
        self._ids.append(self._tokenizer._check_id(token))
        text = self._rest()
        if not text or text.endswith("\ufffd"):
            return ""
        # The ids that came last stay, as the neighbours of the next.
        self._ids, self._known = self._ids[self._known :], len(self._ids) - self._known
        return text

    def finish(self) -> str:
        return self._rest()

    def _rest(self) -> str:
        decode = self._tokenizer.decode
        return decode(self._ids)[len(decode(self._ids[: self._known])) :]


def learned(texts: Iterable[str], size: int) -> SubwordTokenizer:
    """A byte-level BPE of `size` ids, learned on `texts`: the end of a text (id 0), the 256 bytes,
    then merges, the most frequent pair first (Sennrich et al. 2016; on bytes: Radford et al. 2019).

    A text with fewer pairs that come twice gives fewer ids. Raises `ConfigError` for a size outside
    `LEAST` to `MOST`.
    """
    if not LEAST <= size <= MOST:
        raise ConfigError(
            f"--tokenizer bpe:{size} is not a size from {LEAST} (256 bytes and the end of a text) "
            f"to {MOST:,}: write e.g. --tokenizer bpe:4096"
        )
    library = _library()
    from tokenizers import decoders, models, pre_tokenizers, trainers

    bpe = library.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    bpe.train_from_iterator(map(_clean, texts), trainer)
    return SubwordTokenizer(bpe, bpe.token_to_id(END_OF_TEXT), literal=True)


def from_file(path: Path) -> SubwordTokenizer:
    """The tokenizer in the file `path`, or in the `tokenizer.json` of the folder `path`.

    Its end of a text is what the `tokenizer_config.json` beside it calls `eos_token`, or else a
    special token of a usual name. Raises `DataError` without a tokenizer.
    """
    if path.is_dir():
        path = path / _FILE
        if not path.exists():
            raise DataError(
                f"{path.parent} has no {_FILE}: give a model's folder that has one, or the file "
                "itself"
            )
    try:
        text = files.read_text(path, _MOST_BYTES)
    except OSError as error:
        raise DataError(files.cannot_read(path, error)) from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is not a tokenizer file (it is not text): give the {_FILE} of a model"
        ) from None
    try:
        library = _library().Tokenizer.from_str(text)
    except MissingDependencyError:
        raise
    except Exception as error:  # the library raises nothing narrower
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path} is not a tokenizer file ({reason}): give the {_FILE} of a model"
        ) from None
    return SubwordTokenizer(library, _end_of_text(library, path.parent), literal=False)


def from_state(state: Mapping[str, Any]) -> SubwordTokenizer:
    """The tokenizer whose `state` this is."""
    library = _library().Tokenizer.from_str(state["tokenizer"])
    return SubwordTokenizer(library, state["end_of_text"], literal=state["literal"])


def _end_of_text(library: tokenizers.Tokenizer, folder: Path) -> int | None:
    names = list(_ENDS)
    try:
        config = json.loads(files.read_text(folder / _CONFIG, _MOST_BYTES))
        named = config.get("eos_token")
        names.insert(0, named["content"] if isinstance(named, dict) else named)
    except (OSError, ValueError, AttributeError, KeyError):
        pass  # the file is not needed
    found = (library.token_to_id(name) for name in names if isinstance(name, str))
    return next((token for token in found if token is not None), None)


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingDependencyError(
            "subword tokenizers need the library tokenizers, which is not installed: "
            "pip install 'trueloop[text]', or write --tokenizer byte"
        ) from None
    return tokenizers


def _parts(library: tokenizers.Tokenizer) -> dict[str, Any]:
    """The tokenizer's file without its vocabulary."""
    found: dict[str, Any] = json.loads(library.to_str())
    del found["model"]
    return found


def _kind(decoder: Mapping[str, Any] | None) -> set[str]:
    """The types of a decoder's steps."""
    if decoder is None:
        return set()
    if decoder["type"] == "Sequence":
        return set().union(*map(_kind, decoder["decoders"]))
    return {str(decoder["type"])}


@functools.cache
def _bytes_of_marks() -> dict[str, int]:
    """The byte of each character of a byte-level vocabulary (GPT-2's table): visible ones of
    Latin-1 for themselves, the rest in turn from U+0100 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(visible)]
    return {chr(byte): byte for byte in visible} | {
        chr(0x100 + number): byte for number, byte in enumerate(others)
    }


def _byte_level(piece: str) -> bytes:
    table = _bytes_of_marks()
    if all(character in table for character in piece):
        return bytes(table[character] for character in piece)
    return piece.encode()  # an added token is written as it is


def _with_marks(piece: str) -> bytes:
    """The text of a piece of sentencepiece or WordPiece inside a text."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes.fromhex(piece[3:5])
    return piece.removeprefix("##").replace(_SPACE, " ").encode()


def _clean(text: str) -> str:
    # The library takes no lone surrogates, which no UTF-8 file holds but a prompt may.
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
