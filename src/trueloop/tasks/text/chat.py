"""Chat and instruction data: conversations in JSON lines, where only the responses are predicted.

A line is `{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", …}, …]}`, with the
roles system, user and assistant, or `{"prompt": "…", "response": "…"}`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trueloop.errors import DataError, nearest
from trueloop.feed import BatchDataset
from trueloop.files import cannot_read, open_regular
from trueloop.names import printable_line
from trueloop.tasks.data_findings import DataFinding
from trueloop.tasks.random_split import random_split
from trueloop.tasks.text.best_fit import best_fit
from trueloop.tasks.text.chat_template import END_SHOWN, PLAIN, ChatTemplate, Message
from trueloop.tasks.text.context_windows import IGNORE
from trueloop.tasks.text.text_data import TextOptions
from trueloop.tasks.text.tokenizer import ByteTokenizer, Tokenizer, tokenizer_for

Ids = npt.NDArray[np.integer]

ROLES = ("system", "user", "assistant")
SUFFIX = ".jsonl"
_MOST_LINE = 16_000_000
"""Bytes of one conversation, at most."""
_EXAMPLE = '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}'
_PARTS = {"train": "training", "val": "validation", "test": "test"}
_WORTH_A_WARNING = 0.01
"""Of the conversations: fewer that are cut are not worth a warning."""


def read_conversations(path: Path) -> list[list[Message]]:
    """All conversations of a file of JSON lines, in its order; empty lines are passed over.

    Raises `DataError` with file and line for the first that is not one, and for a file without.
    """
    found = []
    for number, line in _lines(path):
        try:
            found.append(_conversation(line.strip()))
        except DataError as error:
            raise DataError(f"{path} line {number}: {error}") from None
    if not found:
        raise DataError(f"{path} is empty: give one conversation a line, {_EXAMPLE}")
    return found


def read_each_conversation(path: Path) -> tuple[list[int], list[list[Message]], dict[int, str]]:
    """The numbers of the lines that are not empty, their conversations, and by its place among them
    what is wrong with one, which then has no messages.

    Raises `DataError` for a file that cannot be read or has no line.
    """
    numbers: list[int] = []
    found: list[list[Message]] = []
    errors: dict[int, str] = {}
    for number, line in _lines(path):
        try:
            found.append(_conversation(line.strip()))
        except DataError as error:
            errors[len(found)] = str(error)
            found.append([])
        numbers.append(number)
    if not found:
        raise DataError(f"{path} is empty: give one conversation a line, {_EXAMPLE}")
    return numbers, found, errors


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with open_regular(path) as file:
            number = 0
            while line := file.readline(_MOST_LINE + 1):
                number += 1
                if len(line) > _MOST_LINE:
                    raise DataError(
                        f"{path} line {number} has more than {_MOST_LINE:,} bytes: put one "
                        "conversation on each line"
                    )
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path} line {number} is not UTF-8 (byte {error.start + 1} of the line): "
                        "convert the file to UTF-8"
                    ) from None
                if text.strip():
                    yield number, text
    except OSError as error:
        raise DataError(cannot_read(path, error)) from None


def _conversation(line: str) -> list[Message]:
    """The messages of one line; raises `DataError` that says what is wrong and what to write."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"it is not JSON ({error.msg} at column {error.colno}): write one object, {_EXAMPLE}"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise DataError(f"it is not JSON ({error}): write one object, {_EXAMPLE}") from None
    if not isinstance(found, dict):
        raise DataError(f"it is JSON, and not an object: write {_EXAMPLE}")
    if "messages" in found:
        return _with_response(_messages(found["messages"]))
    if {"prompt", "response"} <= found.keys():
        return _messages(
            [
                {"role": "user", "content": found["prompt"]},
                {"role": "assistant", "content": found["response"]},
            ]
        )
    if "prompt" in found:
        raise DataError(
            "it has a prompt but no response, and only responses are trained on and scored: add "
            "one; "
            "trueloop generate RUN --preset chat --prompts FILE writes responses"
        )
    names = ", ".join(repr(printable_line(name)) for name in list(found)[:4]) or "none"
    raise DataError(
        f"it has neither 'messages' nor 'prompt' and 'response' (its keys: {names}): write "
        f"{_EXAMPLE}"
    )


def _messages(given: Any) -> list[Message]:
    if not isinstance(given, list) or not given:
        raise DataError(f"its 'messages' are not a list of messages: write {_EXAMPLE}")
    messages: list[Message] = []
    for number, message in enumerate(given, start=1):
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise DataError(f"message {number} has no 'role' and 'content': write {_EXAMPLE}")
        role, content = message["role"], message["content"]
        if role not in ROLES:
            hint = nearest(role, ROLES) if isinstance(role, str) else f"known: {', '.join(ROLES)}"
            raise DataError(f"message {number} has the unknown role {_shown(role)}: {hint}")
        if not isinstance(content, str):
            raise DataError(
                f"the content of message {number} is not text: write a string without anything "
                "that is not text"
            )
        if role == "assistant" and not content.strip():
            raise DataError(
                f"message {number} is an empty response, of which nothing can be learned: write "
                "the response, or remove the line"
            )
        messages.append({"role": role, "content": content})
    return messages


def _with_response(messages: list[Message]) -> list[Message]:
    if not any(message["role"] == "assistant" for message in messages):
        raise DataError(
            "it has no message of the role assistant, and only responses are trained on: add one, "
            "or remove the line"
        )
    return messages


def messages_to_answer(given: Any) -> list[Message]:
    """The messages of a conversation that a response follows. Raises `DataError`."""
    messages = _messages(given)
    if messages[-1]["role"] == "assistant":
        raise DataError("it ends with a response: let it end with a message of the role user")
    return messages


def _shown(value: Any) -> str:
    return repr(printable_line(str(value))[:40])


@dataclass
class Conversations:
    """Conversations as ids, flat: memory is 5 bytes a token."""

    ids: npt.NDArray[np.int32]
    predicted: npt.NDArray[np.bool_]
    """Whether an id is to be predicted; of the same length."""
    starts: npt.NDArray[np.int64]
    """Where each conversation begins, and the end: one more than there are conversations."""
    cut: int = 0
    """Conversations that were longer than the context, and lost their end."""
    left_out: int = 0
    """Those of which no response was left."""

    def __len__(self) -> int:
        return len(self.starts) - 1


def encode(
    conversations: Iterable[list[Message]], template: ChatTemplate, context: int
) -> Conversations:
    """The conversations as ids. One that is longer than context + 1 tokens keeps its first ones;
    where no response is among them, it is dropped.

    Raises `DataError` where nothing is left.
    """
    ids, predicted, starts = [], [], [0]
    cut = left_out = count = 0
    for messages in conversations:
        count += 1
        here, responses = template.encode(messages)
        if len(here) > context + 1:
            cut += 1
            here, responses = here[: context + 1], responses[: context + 1]
        if not responses[1:].any():
            left_out += 1
            continue
        ids.append(here.astype(np.int32))
        predicted.append(responses)
        starts.append(starts[-1] + len(here))
    if not ids:
        raise DataError(
            f"of {count:,} conversations none has a response within the context of {context:,} "
            "tokens: write a larger --context"
        )
    return Conversations(
        np.concatenate(ids),
        np.concatenate(predicted),
        np.array(starts),
        cut,
        left_out,
    )


class ChatSamples(BatchDataset):
    """Conversations, one a row: (tokens, targets), int64 (B, T), as long as the longest of the
    batch needs. The target is the next token where that is one of a response; elsewhere, and in the
    padding after a conversation, it is -100."""

    def __init__(self, conversations: Conversations) -> None:
        self._all = conversations

    def __len__(self) -> int:
        return len(self._all)

    def get_batch(self, indices: npt.NDArray[np.int64], epoch: int) -> tuple[Tensor, ...]:
        tokens, targets = self._padded([self._piece(index) for index in indices], (0, IGNORE))
        return tokens, targets

    def _piece(self, index: int) -> tuple[Ids, Ids]:
        """Tokens and targets of one conversation."""
        begin, end = self._all.starts[index], self._all.starts[index + 1]
        following, is_response = (
            self._all.ids[begin + 1 : end],
            self._all.predicted[begin + 1 : end],
        )
        return self._all.ids[begin : end - 1], np.where(is_response, following, IGNORE)

    @staticmethod
    def _padded(rows: Sequence[tuple[Ids, ...]], fills: tuple[int, ...]) -> list[Tensor]:
        """Rows of parts of one length each, as a tensor for each part, int64 (rows, longest)."""
        longest = max(len(row[0]) for row in rows)
        batch = [np.full((len(rows), longest), fill, dtype=np.int64) for fill in fills]
        for number, row in enumerate(rows):
            for whole, part in zip(batch, row, strict=True):
                whole[number, : len(part)] = part
        return [torch.from_numpy(whole) for whole in batch]

    @property
    def predicted_tokens(self) -> int:
        """How many targets there are in an epoch."""
        # The first id of a conversation is never a target.
        first = self._all.predicted[self._all.starts[:-1]]
        return int(self._all.predicted.sum() - first.sum())


class PackedChat(ChatSamples):
    """Conversations, as many in a row as fit into a context: (tokens, targets, documents), int64
    (B, T), T as the fullest row of the batch needs.

    Tokens and targets are those of `ChatSamples`, conversation after conversation; `documents` is
    the number of each position's conversation in its row, from 0, by which the model keeps them
    apart. The rest of a row is a separate document whose targets are -100. Which conversations
    share a row is the same in every epoch.
    """

    def __init__(self, conversations: Conversations, context: int) -> None:
        super().__init__(conversations)
        self._rows = best_fit(np.diff(conversations.starts) - 1, context)

    def __len__(self) -> int:
        return len(self._rows)

    def get_batch(self, indices: npt.NDArray[np.int64], epoch: int) -> tuple[Tensor, ...]:
        rows = [self._row(self._rows[index]) for index in indices]
        tokens, targets, documents = self._padded(rows, (0, IGNORE, -1))
        return tokens, targets, documents

    def _row(self, members: list[int]) -> tuple[Ids, Ids, Ids]:
        pieces = [self._piece(member) for member in members]
        numbers = np.repeat(np.arange(len(pieces)), [len(tokens) for tokens, _ in pieces])
        tokens, targets = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return tokens, targets, numbers


def samples_of(conversations: Conversations, context: int, pack: bool) -> ChatSamples:
    """The conversations as `Feed` takes them: packed, or one a row."""
    return PackedChat(conversations, context) if pack else ChatSamples(conversations)


def findings(conversations: Conversations, context: int) -> list[DataFinding]:
    """The tokens that did not fit into the context."""
    count = len(conversations) + conversations.left_out
    if conversations.cut < max(1, _WORTH_A_WARNING * count):
        return []
    left = ""
    if conversations.left_out:
        left = f" {conversations.left_out:,} of them had no response within it and are skipped."
    finding = DataFinding(
        code="TL719",
        severity="warning",
        subject="long conversations",
        message=f"{conversations.cut:,} of {count:,} conversations are longer than the context of "
        f"{context:,} tokens: their end is cut.{left}",
        fix="Train with a larger --context, or shorten the conversations.",
    )
    return [finding]


def opening(messages: list[Message]) -> list[Message]:
    """The text before the first response."""
    first = next(k for k, message in enumerate(messages) if message["role"] == "assistant")
    return messages[:first]


def marked(template: ChatTemplate, messages: list[Message]) -> list[dict[str, Any]]:
    """A conversation as the report shows it: pieces of text, and whether each is learned. The end
    of a text is written as ⏹."""
    return [
        {"text": text.replace("\ufdd0", END_SHOWN), "learned": is_response}
        for text, is_response in template.segments(messages)
    ]


@dataclass(kw_only=True)
class ChatData:
    """The result of `read_chat`."""

    train: ChatSamples
    val: ChatSamples
    test: ChatSamples | None
    tokenizer: Tokenizer
    template: ChatTemplate
    example: list[Message]
    """The first conversation that validates."""
    facts: dict[str, Any]
    findings: list[DataFinding]
    digest: str
    tokens: int
    """Positions that the training part has at most: rows by the context."""


def is_chat(path: Path) -> bool:
    """Whether the data at `path` are conversations: a file of JSON lines."""
    return path.suffix.lower() == SUFFIX and not path.is_dir()


def read_chat(
    data: Path,
    context: int,
    options: TextOptions,
    *,
    tokenizer: Tokenizer | None = None,
    template: str | None = None,
    seed: int = 0,
) -> ChatData:
    """The conversations of a file, divided at random, or as the options name files for it.

    Without a `tokenizer` it is the one of the options, by default the bytes; without a `template`
    the plain one. Raises `DataError` and `ConfigError`.
    """
    parts = _divided(data, options, seed)
    if tokenizer is None:
        rough = ChatTemplate(template or PLAIN, ByteTokenizer())
        texts = (rough.text(messages) for messages in parts["train"])
        tokenizer = tokenizer_for(options.tokenizer or "byte", texts, end_of_text=True)
    made = ChatTemplate(template or PLAIN, tokenizer)
    encoded = {part: encode(found, made, context) for part, found in parts.items()}
    samples = {part: samples_of(found, context, options.pack) for part, found in encoded.items()}
    facts: dict[str, Any] = {
        "conversations": {_PARTS[part]: len(found) for part, found in encoded.items()},
        "rows": {_PARTS[part]: len(found) for part, found in samples.items()},
        "predicted tokens": {
            _PARTS[part]: found.predicted_tokens for part, found in samples.items()
        },
        "vocabulary": f"{tokenizer.vocab_size:,} ({tokenizer.state()['kind']})",
        "longer than the context, cut": sum(found.cut for found in encoded.values()),
        "without a response within it, skipped": sum(f.left_out for f in encoded.values()),
        "conversation": {"template": made.source, "example": marked(made, parts["train"][0])},
    }
    digest = hashlib.sha256(json.dumps([parts, tokenizer.state()], sort_keys=True).encode())
    return ChatData(
        train=samples["train"],
        val=samples["val"],
        test=samples.get("test"),
        tokenizer=tokenizer,
        template=made,
        example=parts["val"][0],
        facts=facts,
        findings=findings(encoded["train"], context),
        digest=digest.hexdigest(),
        tokens=(len(samples["train"]) + 1) * context,
    )


def _divided(data: Path, options: TextOptions, seed: int) -> dict[str, list[list[Message]]]:
    """The conversations that train, validate and test."""
    whole = read_conversations(data)
    named = {"val": options.val_data, "test": options.test_data}
    parts = {part: read_conversations(path) for part, path in named.items() if path is not None}
    shares = {"val": options.val_fraction, "test": options.test_fraction}
    shares = {part: share for part, share in shares.items() if part not in parts and share}
    chosen = random_split(len(whole), list(shares.values()), seed)
    for part, rows in zip(["train", *shares], chosen, strict=True):
        if not len(rows):
            raise DataError(
                f"{data} has {len(whole)} conversations, which leave none for the {_PARTS[part]} "
                "part: give more, or name a file with --val-data"
            )
        parts[part] = [whole[row] for row in rows]
    return parts
