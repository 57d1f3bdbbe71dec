"""Chat and instruction data: conversations in JSON lines, where the responses alone are predicted.

A line is `{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", …}, …]}`, with the
roles system, user and assistant, or `{"prompt": "…", "response": "…"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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
from trueloop.tasks.findings import DataFinding
from trueloop.tasks.text.chat_template import ChatTemplate, Message
from trueloop.tasks.text.contexts import IGNORE

ROLES = ("system", "user", "assistant")
SUFFIX = ".jsonl"
_MOST_LINE = 16_000_000
"""Bytes of one conversation, at most."""
_EXAMPLE = '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}'
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
        return _messages(found["messages"])
    if {"prompt", "response"} <= found.keys():
        return _messages(
            [
                {"role": "user", "content": found["prompt"]},
                {"role": "assistant", "content": found["response"]},
            ]
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
                f"the content of message {number} is not text: write a string, and leave out what "
                "is not text"
            )
        if role == "assistant" and not content.strip():
            raise DataError(
                f"message {number} is an empty response, of which nothing can be learned: write "
                "the response, or remove the line"
            )
        messages.append({"role": role, "content": content})
    if not any(message["role"] == "assistant" for message in messages):
        raise DataError(
            "it has no message of the role assistant, and responses alone are learned: add one, or "
            "remove the line"
        )
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
    where no response is among them, it is left out.

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

    def __init__(self, conversations: Conversations, chosen: npt.NDArray[np.int64]) -> None:
        self._all = conversations
        self._chosen = chosen

    def __len__(self) -> int:
        return len(self._chosen)

    def get_batch(self, indices: npt.NDArray[np.int64], epoch: int) -> tuple[Tensor, Tensor]:
        rows = self._chosen[indices]
        begins, ends = self._all.starts[rows], self._all.starts[rows + 1]
        longest = int((ends - begins).max()) - 1
        tokens = np.zeros((len(rows), longest), dtype=np.int64)
        targets = np.full((len(rows), longest), IGNORE, dtype=np.int64)
        for row, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            length = end - begin - 1
            tokens[row, :length] = self._all.ids[begin : end - 1]
            following = self._all.ids[begin + 1 : end]
            is_response = self._all.predicted[begin + 1 : end]
            targets[row, :length] = np.where(is_response, following, IGNORE)
        return torch.from_numpy(tokens), torch.from_numpy(targets)

    @property
    def predicted_tokens(self) -> int:
        """How many targets there are in an epoch."""
        starts = self._all.starts
        inside = np.concatenate(([0], np.cumsum(self._all.predicted)))
        # The first id of a conversation is never a target.
        first = self._all.predicted[starts[:-1]].astype(np.int64)
        each = inside[starts[1:]] - inside[starts[:-1]] - first
        return int(each[self._chosen].sum())


def findings(conversations: Conversations, context: int) -> list[DataFinding]:
    """What was lost to the context."""
    count = len(conversations) + conversations.left_out
    if conversations.cut < max(1, _WORTH_A_WARNING * count):
        return []
    left = ""
    if conversations.left_out:
        left = f" {conversations.left_out:,} of them had no response within it and are left out."
    finding = DataFinding(
        code="TL719",
        severity="warning",
        subject="long conversations",
        message=f"{conversations.cut:,} of {count:,} conversations are longer than the context of "
        f"{context:,} tokens: their end is cut.{left}",
        fix="Train with a larger --context, or shorten the conversations.",
    )
    return [finding]


def marked(template: ChatTemplate, messages: list[Message]) -> list[dict[str, Any]]:
    """A conversation as the report shows it: pieces of text, and whether each is learned. The end
    of a text is written as ⏹."""
    return [
        {"text": text.replace("\ufdd0", "⏹"), "learned": is_response}
        for text, is_response in template.segments(messages)
    ]
