"""A text, or token ids, as what a language model trains on, is chosen by and is judged by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from trueloop.errors import ConfigError, DataError
from trueloop.names import printable
from trueloop.option import option
from trueloop.tasks import limits
from trueloop.tasks.data_findings import DataFinding
from trueloop.tasks.option_docs import documented
from trueloop.tasks.progress_bar import progress_bar
from trueloop.tasks.text import spans
from trueloop.tasks.text.characters import CharTokenizer, IdTokenizer, characters_of
from trueloop.tasks.text.context_windows import Contexts, WindowDataset
from trueloop.tasks.text.pieces import Advance, documents
from trueloop.tasks.text.spans import Span, TextParts
from trueloop.tasks.text.token_cache import Encoded, EncodingJob, in_files, in_memory
from trueloop.tasks.text.token_file import Tokens, dtype_for, open_tokens
from trueloop.tasks.text.tokenizer import Tokenizer, is_kind, tokenizer_for

DTYPES = ("uint8", "uint16", "uint32", "int32", "int64")
"""The range of raw token ids."""
_IN_MEMORY = 8 * 2**20
"""Bytes of text up to which characters and bytes are encoded again at each start; an eighth of it
for subwords, which take that much longer."""
_LEARNED_ON = 256 * 2**20
"""Bytes of text that a BPE is learned on at most: evenly spaced pieces of more."""
_NAMED = 5
_PARTS = {"train": "training", "val": "validation", "test": "test"}
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}


@documented
@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How a text, or token ids, are read and split."""

    tokenizer: str | None = option(
        None,
        usual=True,
        group="text",
        choices=("char", "byte", "bpe:N", "ids:N", "ids:N:END", "PATH"),
        unset="char; of ids, theirs",
    )
    """Tokenizer. bpe:N is learned on the training text; PATH is a tokenizer.json or a folder
    with one; ids:N and ids:N:END are token ids without a text; by default token ids have the
    tokenizer.json next to them."""
    val_fraction: float = option(0.1, usual=True)
    """Share of the text for validation. It is the end, before the test part; not used if a folder
    or val_data contains the validation part."""
    test_fraction: float = option(0.0)
    """Share of the text, at the very end, for the test."""
    val_data: Path | None = option(None)
    """A file or folder with the validation part."""
    test_data: Path | None = option(None)
    """A file or folder with the test part."""
    document_separator: str | None = option(None)
    """The text between two documents of a file, e.g. <|endoftext|>; \\n means a new line."""
    pack: bool = option(False)
    """Keep documents separate: attention does not cross them, and positions restart in each. For
    conversations: pack several into one context in this way."""
    token_dtype: str | None = option(
        None, choices=DTYPES, unset="uint16, or uint32 if the vocabulary needs it"
    )
    """Dtype of raw token ids."""

    def __post_init__(self) -> None:
        spec = self.tokenizer
        if spec and not is_kind(spec) and (path := Path(spec).expanduser()).exists():
            # Absolute: the run must find it again from any directory.
            object.__setattr__(self, "tokenizer", str(path.absolute()))
        val, test = self.val_fraction, self.test_fraction
        limits.check_range("--val-fraction", val, 0, 0.9, example=0.1, open_below=True)
        limits.check_range("--test-fraction", test, 0, 0.9, example=0.1)
        if val + test >= 1:
            raise ConfigError(
                f"--val-fraction {val:g} and --test-fraction {test:g} leave nothing to train on: "
                "write smaller ones"
            )
        if self.token_dtype is not None and self.token_dtype not in DTYPES:
            raise ConfigError(
                f"--token-dtype {self.token_dtype} is not one of {', '.join(DTYPES)}: write e.g. "
                "--token-dtype uint16"
            )
        if self.document_separator == "":
            raise ConfigError(
                "--document-separator is empty: write the text between two documents, e.g. "
                "--document-separator '<|endoftext|>', or leave it out"
            )

    @property
    def separator(self) -> str | None:
        """`document_separator` with its escapes replaced."""
        separator = self.document_separator
        for written, meant in _ESCAPES.items():
            separator = separator.replace(written, meant) if separator else separator
        return separator


@dataclass(kw_only=True)
class TextData:
    """The result of `read_text`."""

    train: Contexts
    val: WindowDataset
    test: WindowDataset | None
    tokenizer: Tokenizer
    facts: dict[str, Any]
    """For `Splits.facts`."""
    findings: list[DataFinding]
    digest: str
    """Of the files (sizes and bytes, see `spans.digest`), of how they were divided, and of the
    tokenizer: for `Task.digest`."""
    packed: bool
    """Whether batches have the documents of each position."""

    @property
    def tokens(self) -> int:
        """Of the training part."""
        return len(self.train.tokens)


def read_text(
    data: Path,
    context: int,
    options: TextOptions,
    *,
    tokenizer: Tokenizer | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> TextData:
    """Contexts of so many tokens over the text or the token ids at `data` (see `spans.find`), and
    windows over what validates and tests; `seed` is of where contexts begin in each epoch.
    `tokenizer` takes the place of the one that the options name.

    Texts of more than a few megabytes are encoded once, into files in the user's folder for caches;
    smaller ones at each start, in memory. Both in pieces: no text is in memory as a whole. The
    tokenizer is fitted only on the training part. Unless `quiet`, a terminal shows a progress bar.

    Raises `ConfigError` for options that do not fit each other or the data, `DataError` for data
    that cannot be read or are too few.
    """
    found = spans.find(data)
    for part, path in (("val", options.val_data), ("test", options.test_data)):
        if path is not None:
            found = _with_part(found, part, spans.find(path), data, path)
    if found.are_tokens:
        read = _read_tokens(found, options, data, tokenizer)
        _divide_tokens(read, options)
        has_documents = read.tokenizer.end_of_text is not None
    else:
        several = any(len(part) > 1 for part in found.parts.values())
        has_documents = several or options.separator is not None
        _divide_spans(found, options)
        read = _read_texts(found, tokenizer, options, has_documents, quiet)
        _check_not_blank(read, data)
    end = None
    if options.pack:
        end = _end_for_packing(read.tokenizer, has_documents or found.are_tokens)
    train = Contexts(read.tokens["train"], context, seed=seed, end_of_text=end)
    val, test = (
        WindowDataset(read.tokens[part], context, end_of_text=end, name=_PARTS[part])
        if part in read.tokens
        else None
        for part in ("val", "test")
    )
    assert val is not None
    return TextData(
        train=train,
        val=val,
        test=test,
        tokenizer=read.tokenizer,
        facts=_facts(found, read),
        findings=_findings(read),
        digest=_digest(found, data, read, has_documents),
        packed=options.pack,
    )


def read_windows(
    path: Path, context: int, options: TextOptions, tokenizer: Tokenizer, *, quiet: bool = True
) -> WindowDataset:
    """All of the text or the token ids at `path` in consecutive windows, for a model that was
    trained with this `tokenizer` and these options. Raises what `read_text` raises."""
    found = spans.find(path)
    several = len(found.spans) > 1
    # A folder with parts of its own is read whole, in the order of the parts.
    found = TextParts({"val": found.spans}, are_tokens=found.are_tokens)
    if found.are_tokens:
        if several:
            raise DataError(f"{path} has several token files: give one of them")
        tokens = _open_ids(found.spans[0], options, tokenizer)
    else:
        _check_not_empty(found, path)
        spec = json.dumps(tokenizer.state(), sort_keys=True)
        ends = several or options.separator is not None
        encoded = _encoded(found, lambda advance: tokenizer, spec, options, ends, quiet)
        tokens = encoded.tokens["val"]
    end = _end_for_packing(tokenizer, True) if options.pack else None
    return WindowDataset(tokens, context, end_of_text=end, name="new")


def _with_part(found: TextParts, part: str, other: TextParts, data: Path, path: Path) -> TextParts:
    if other.are_tokens != found.are_tokens:
        kinds = ("text", "token ids")
        raise DataError(
            f"{path} contains {kinds[other.are_tokens]} and {data} {kinds[found.are_tokens]}: give "
            "both in one form"
        )
    return TextParts(
        {**found.parts, part: other.spans},
        are_tokens=found.are_tokens,
        ignored=found.ignored + other.ignored,
        tokenizer=found.tokenizer,
    )


def _divide_spans(found: TextParts, options: TextOptions) -> None:
    """Cut what `found` has no files for off the end of its training text."""
    _check_not_empty(found, found.parts["train"][0].path)
    marks = options.separator.encode() if options.separator else None
    total = sum(span.size for span in found.parts["train"])
    kept = 1.0
    for part, fraction in _fractions(options):
        if part in found.parts or not fraction:
            continue
        kept -= fraction
        train, rest = spans.cut(found.parts["train"], int(total * kept), marks)
        found.parts["train"], found.parts[part] = train, rest


def _check_not_empty(found: TextParts, path: Path) -> None:
    if not found.size:
        raise DataError(f"{printable(str(path))} is empty: give a file with text")


def _fractions(options: TextOptions) -> tuple[tuple[str, float], ...]:
    """The pieces that are cut off the end, the last first."""
    return ("test", options.test_fraction), ("val", options.val_fraction)


def _divide_tokens(read: Encoded, options: TextOptions) -> None:
    """Cut the parts that have no file off the end of the training ids."""
    train = read.tokens["train"]
    kept, stop = 1.0, len(train)
    for part, fraction in _fractions(options):
        if part in read.tokens or not fraction:
            continue
        kept -= fraction
        start = int(len(train) * kept)
        read.tokens[part] = train.part(start, stop)
        stop = start
    read.tokens["train"] = train.part(0, stop)


def _read_tokens(
    found: TextParts, options: TextOptions, data: Path, tokenizer: Tokenizer | None
) -> Encoded:
    spec = options.tokenizer or (str(found.tokenizer) if found.tokenizer else None)
    if tokenizer is None:
        tokenizer = _tokenizer_of_ids(spec, data)
    tokens = {part: _open_ids(span, options, tokenizer) for part, (span,) in found.parts.items()}
    return Encoded(tokenizer=tokenizer, tokens=tokens, documents={}, unknown={})


def _tokenizer_of_ids(spec: str | None, data: Path) -> Tokenizer:
    if spec is None or spec == "char" or spec.startswith("bpe"):
        raise DataError(
            f"{data} contains token ids, which need their tokenizer: write --tokenizer and the "
            "path of its tokenizer.json, or --tokenizer ids:N for N ids without a text"
        )
    return tokenizer_for(spec, ())


def _open_ids(span: Span, options: TextOptions, tokenizer: Tokenizer) -> Tokens:
    tokens = open_tokens(
        span.path,
        options.token_dtype or _dtype_for(tokenizer),
        name=printable(str(span.path)),
        vocab_size=tokenizer.vocab_size,
    )
    tokens.probe()
    return tokens


def _dtype_for(tokenizer: Tokenizer) -> str:
    """The default dtype of raw ids, as in nanoGPT."""
    return max(dtype_for(tokenizer.vocab_size), "uint16", key=DTYPES.index)


def _read_texts(
    found: TextParts,
    tokenizer: Tokenizer | None,
    options: TextOptions,
    has_documents: bool,
    quiet: bool,
) -> Encoded:
    if tokenizer is not None:
        name = json.dumps(tokenizer.state(), sort_keys=True)
        return _encoded(found, lambda advance: tokenizer, name, options, has_documents, quiet)
    spec = options.tokenizer or "char"
    if spec.startswith("ids"):
        raise ConfigError(
            f"--tokenizer {spec} is for token ids, and the data is text: write --tokenizer char, "
            "byte or bpe:4096"
        )

    def fit(advance: Advance) -> Tokenizer:
        return _fit(found, spec, options.separator, has_documents, advance)

    name = spec
    if spec.startswith("bpe:"):
        name = f"{spec} {_installed('tokenizers')}"
    elif spec not in ("char", "byte"):
        name = json.dumps(tokenizer_for(spec, ()).state(), sort_keys=True)
    return _encoded(found, fit, name, options, has_documents, quiet)


def _encoded(
    found: TextParts,
    fit: Callable[[Advance], Tokenizer],
    name: str,
    options: TextOptions,
    ends: bool,
    quiet: bool,
) -> Encoded:
    """The ids of all parts, by the tokenizer that `fit` makes and `name` names for certain."""
    is_quick = name in ("char", "byte")
    passes = 2 if name == "char" or name.startswith("bpe:") else 1
    with progress_bar("text", found.size * passes, quiet) as advance:
        job = EncodingJob(
            parts=found.parts,
            separator=options.separator,
            ends=ends,
            fit=fit,
            spec=name,
            advance=advance,
        )
        is_small = found.size * (1 if is_quick else 8) <= _IN_MEMORY
        return in_memory(job) if is_small else in_files(job)


def _fit(
    found: TextParts, spec: str, separator: str | None, has_documents: bool, advance: Advance
) -> Tokenizer:
    """The tokenizer, fitted on the training text; for `char` with an id for characters that occur
    only in the held-out text, where it has any."""

    def texts(part: str) -> Iterator[str]:
        return (piece.text for piece in documents(found.parts[part], separator, advance))

    if spec == "char":
        known = characters_of(texts("train"))
        held_out = characters_of(
            text for part in found.parts if part != "train" for text in texts(part)
        )
        return CharTokenizer(known, end_of_text=has_documents, unknown=bool(held_out - known))
    size = sum(span.size for span in found.parts["train"])
    every = max(-(-size // _LEARNED_ON), 1)
    train: Iterable[str] = (text for k, text in enumerate(texts("train")) if k % every == 0)
    return tokenizer_for(spec, train, end_of_text=has_documents)


def _end_for_packing(tokenizer: Tokenizer, has_documents: bool) -> int:
    if not has_documents:
        raise ConfigError(
            "--pack separates documents, and the text is one document: write "
            "--document-separator and the text between two, give a folder of files, or leave it out"
        )
    if tokenizer.end_of_text is None:
        raise ConfigError(
            "--pack separates documents by an end-of-text id, and the tokenizer has none: "
            "write --tokenizer ids:N:END for token ids, name its eos_token in a "
            "tokenizer_config.json next to it, or leave --pack out"
        )
    return tokenizer.end_of_text


def _check_not_blank(read: Encoded, data: Path) -> None:
    if not len(read.tokens["train"]):
        raise DataError(
            f"{printable(str(data))} has no text to train on, only white space: give a file with "
            "text"
        )


def _facts(found: TextParts, read: Encoded) -> dict[str, Any]:
    facts: dict[str, Any] = {
        f"{_PARTS[part]} tokens": len(tokens) for part, tokens in read.tokens.items()
    }
    kinds = {CharTokenizer: "characters", IdTokenizer: "ids without a text"}
    kind = kinds.get(type(read.tokenizer), read.tokenizer.state()["kind"])
    facts["vocabulary"] = f"{read.tokenizer.vocab_size:,} ({kind})"
    if found.parts and not found.are_tokens:
        facts["documents"] = sum(read.documents.values())
        facts["bytes per token"] = round(
            found.size / max(sum(map(len, read.tokens.values())), 1), 2
        )
    if found.ignored:
        facts["files that are not text, ignored"] = found.ignored
    if read.folder is not None:
        facts["token files"] = str(read.folder)
    return facts


def _findings(read: Encoded) -> list[DataFinding]:
    """One finding for each held-out part with characters that the training text has not."""
    found = []
    for part, unknown in read.unknown.items():
        if not unknown:
            continue
        count, total = sum(unknown.values()), len(read.tokens[part])
        named = ", ".join(map(repr, list(unknown)[:_NAMED]))
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        finding = DataFinding(
            code="TL716",
            severity="warning" if count > 0.01 * total else "advice",
            subject=f"character {named}{more}",
            message=f"{count:,} of the {total:,} {_PARTS[part]} characters do not occur in the "
            f"training text ({named}{more}): the model cannot predict them, and reads one id "
            "instead of each.",
            fix="Train with --tokenizer byte, which knows every character, or leave them out.",
        )
        found.append(finding)
    return found


def _digest(found: TextParts, data: Path, read: Encoded, has_documents: bool) -> str:
    digest = hashlib.sha256()
    for part, part_spans in sorted(found.parts.items()):
        digest.update(f"{part} {spans.digest(part_spans, data)}".encode())
    counts = sorted((part, len(tokens)) for part, tokens in read.tokens.items())
    digest.update(repr((counts, has_documents)).encode())
    digest.update(json.dumps(read.tokenizer.state(), sort_keys=True).encode())
    return digest.hexdigest()


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
