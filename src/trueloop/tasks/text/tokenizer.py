"""How a tokenizer is chosen, and restored.

| `--tokenizer` | ids |
| --- | --- |
| `char` | the characters of the training text |
| `byte` | the 256 bytes of UTF-8 |
| `bpe:N` | a byte-level BPE of N ids, learned on the training text |
| a path | a `tokenizer.json`, or a model's folder that has one |
| `ids:N`, `ids:N:END` | numbers below N without a text; END ends a document |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trueloop.errors import ConfigError, DataError, MissingDependencyError
from trueloop.tasks.text import subwords
from trueloop.tasks.text.characters import (
    ByteTokenizer as ByteTokenizer,
    CharTokenizer as CharTokenizer,
    IdTokenizer as IdTokenizer,
    characters_of,
)
from trueloop.tasks.text.tokenizer_base import TextStream as TextStream, Tokenizer as Tokenizer

_KNOWN = "write --tokenizer char, byte, bpe:4096 or the path of a tokenizer.json"


def tokenizer_for(spec: str, texts: Iterable[str], *, end_of_text: bool = False) -> Tokenizer:
    """The tokenizer that `spec` names, fitted on `texts`, the pieces of the training text.

    `end_of_text` asks characters and bytes for an id between documents; a BPE always has one, and a
    file's tokenizer the one of its model. `texts` is read only for `char` and `bpe:N`.

    Raises `ConfigError` for an unknown name or a size that cannot be, `DataError` for a file that
    is not a tokenizer, `MissingDependencyError` without the library that a BPE takes.
    """
    kind, _, rest = spec.partition(":")
    if spec == "char":
        return CharTokenizer(characters_of(texts), end_of_text=end_of_text)
    if spec == "byte":
        return ByteTokenizer(end_of_text=end_of_text)
    if kind == "bpe":
        return subwords.learned(texts, _numbers(spec, rest, "bpe:4096")[0])
    if kind == "ids":
        return _ids(spec, rest)
    path = Path(spec).expanduser()
    if path.exists():
        return subwords.from_file(path)
    if path.suffix == ".json" or len(path.parts) > 1:
        raise ConfigError(f"no tokenizer {spec}: check the path, or {_KNOWN}")
    raise ConfigError(f"unknown tokenizer {spec!r}: {_KNOWN}")


def is_kind(spec: str) -> bool:
    """Whether `spec` names a kind of tokenizer, and not a path."""
    return spec in ("char", "byte") or spec.partition(":")[0] in ("bpe", "ids")


def tokenizer_from_state(state: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer whose `state` this is. Raises `DataError` if it is not one."""
    try:
        kind = state["kind"]
        if kind == "char":
            return CharTokenizer(
                map(chr, state["characters"]),
                end_of_text=state["end_of_text"],
                unknown=state["unknown"],
            )
        if kind == "byte":
            return ByteTokenizer(end_of_text=state["end_of_text"])
        if kind == "ids":
            return IdTokenizer(state["vocab_size"], state["end_of_text"])
        if kind == "subwords":
            return subwords.from_state(state)
    except MissingDependencyError:
        raise
    except Exception:  # the library that reads a tokenizer raises nothing narrower
        pass
    raise DataError(
        "the saved tokenizer is not one that this version of Trueloop knows: train the run again, "
        "or use the version that trained it"
    )


def _ids(spec: str, rest: str) -> IdTokenizer:
    size, *end = _numbers(spec, rest, "ids:50257")
    if size < 1 or len(end) > 1 or any(token >= size for token in end):
        raise ConfigError(
            f"--tokenizer {spec} is not a vocabulary: write its size, and the id that ends a "
            "document if there is one, e.g. --tokenizer ids:50257:50256"
        )
    return IdTokenizer(size, end[0] if end else None)


def _numbers(spec: str, rest: str, example: str) -> list[int]:
    words = rest.replace("_", "").replace(",", "").split(":")
    if not all(word.isascii() and word.isdigit() and len(word) < 16 for word in words):
        raise ConfigError(f"--tokenizer {spec} has no size: write e.g. --tokenizer {example}")
    return [int(word) for word in words]
