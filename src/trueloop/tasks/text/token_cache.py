"""Texts as token ids: in memory where they are small, else in files that are kept for next time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueloop import cache, files
from trueloop.atomic import cannot_write
from trueloop.errors import DataError
from trueloop.tasks.text.encoding import DocumentEncoder
from trueloop.tasks.text.pieces import Advance, documents
from trueloop.tasks.text.spans import Span
from trueloop.tasks.text.token_file import Tokens, dtype_for, open_tokens, write_tokens
from trueloop.tasks.text.tokenizer import Tokenizer, tokenizer_from_state

_KIND = "tokens"
_VERSION = 1
_FACTS = "tokens.json"
_MOST_BYTES = 1_000_000_000


@dataclass(kw_only=True)
class Encoded:
    """A text as ids, with what was counted on the way."""

    tokenizer: Tokenizer
    tokens: dict[str, Tokens]
    """By part."""
    documents: dict[str, int]
    unknown: dict[str, dict[str, int]]
    """Characters without an id, and how often each came, by part."""
    folder: Path | None = None
    """Where the token files are kept; None for ids in memory."""


@dataclass(frozen=True, kw_only=True)
class EncodingJob:
    """The text to encode, and how."""

    parts: Mapping[str, list[Span]]
    separator: str | None
    ends: bool
    """Whether each document ends with the tokenizer's end of a text."""
    fit: Callable[[Advance], Tokenizer]
    """Makes the tokenizer; reads the training text where it is learned."""
    spec: str
    """Names the tokenizer for certain."""
    advance: Advance


def in_memory(job: EncodingJob) -> Encoded:
    """The ids of all parts, in arrays of the smallest dtype for them."""
    tokenizer = job.fit(job.advance)
    dtype = dtype_for(tokenizer.vocab_size)
    encoders = {part: DocumentEncoder(tokenizer, ends=job.ends) for part in job.parts}
    tokens = {}
    for part, encoder in encoders.items():
        pieces = documents(job.parts[part], job.separator, job.advance)
        ids = [each.astype(dtype) for each in encoder.encode(pieces)]
        tokens[part] = Tokens(np.concatenate(ids) if ids else np.empty(0, dtype))
    return Encoded(tokenizer=tokenizer, tokens=tokens, **_counts(encoders))


def in_files(job: EncodingJob) -> Encoded:
    """The ids of all parts in files: those of a former run, if the text and the
    tokenizer are the same, or new ones.

    They are whole or absent: written under a temporary name, flushed to disk and renamed. Several
    processes that ask at once (the ranks of a run) wait for the one that writes. Raises
    `WriteError` where they cannot be written, e.g. on a full disk.
    """
    folder = Path(f"~/.cache/trueloop/{_KIND}")
    try:
        folder = cache.directory(_KIND) / _key(job)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with cache.locked(folder) as alone:
            found = _opened(folder)
            if found is None:
                with cache.publishing(folder, alone=alone) as new:
                    _write(job, new)
                found = _opened(folder)
    except OSError as error:
        failure = cannot_write(folder, error)
        raise type(failure)(f"{failure}, with {cache.VARIABLE}=FOLDER in the environment") from None
    assert found is not None
    return found


def _key(job: EncodingJob) -> str:
    """A digest of all that the ids depend on. Files count by path, size and time of change."""
    found = hashlib.sha256(repr((_VERSION, job.spec, job.separator, job.ends)).encode())
    for part, spans in job.parts.items():
        for span in spans:
            try:
                status = span.path.stat()
            except OSError as error:
                raise DataError(files.cannot_read(span.path, error)) from None
            found.update(os.fsencode(span.path.resolve()))
            facts = (part, span.start, span.stop, status.st_size, status.st_mtime_ns)
            found.update(repr(facts).encode())
    return found.hexdigest()[:32]


def _write(job: EncodingJob, folder: Path) -> None:
    tokenizer = job.fit(job.advance)
    dtype = dtype_for(tokenizer.vocab_size)
    encoders = {part: DocumentEncoder(tokenizer, ends=job.ends) for part in job.parts}
    counts = {}
    for part, encoder in encoders.items():
        pieces = documents(job.parts[part], job.separator, job.advance)
        with cache.flushed(folder / f"{part}.bin") as file:
            counts[part] = write_tokens(file, encoder.encode(pieces), dtype)
    facts = {
        "tokenizer": tokenizer.state(),
        "dtype": dtype,
        "tokens": counts,
        **_counts(encoders),
    }
    with cache.flushed(folder / _FACTS) as file:
        file.write(json.dumps(facts).encode())


def _opened(folder: Path) -> Encoded | None:
    """The content that `_write` has written; None where it is not there, or not whole."""
    try:
        facts = json.loads(files.read_text(folder / _FACTS, _MOST_BYTES))
        tokenizer = tokenizer_from_state(facts["tokenizer"])
        tokens = {}
        for part, count in facts["tokens"].items():
            path = folder / f"{part}.bin"
            empty = Tokens(np.empty(0, facts["dtype"]))
            tokens[part] = open_tokens(path, facts["dtype"]) if count else empty
            if len(tokens[part]) != count:
                return None
        return Encoded(
            tokenizer=tokenizer,
            tokens=tokens,
            documents=facts["documents"],
            unknown=facts["unknown"],
            folder=folder,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _counts(encoders: Mapping[str, DocumentEncoder]) -> dict[str, Any]:
    return {
        "documents": {part: encoder.documents for part, encoder in encoders.items()},
        "unknown": {part: dict(encoder.unknown) for part, encoder in encoders.items()},
    }
