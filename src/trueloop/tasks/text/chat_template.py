"""How a conversation becomes text, and which of its tokens are to be predicted: the responses.

The template is a Jinja one, as published models have theirs in `tokenizer_config.json`, or the
plain one here. Of a conversation it gets `messages`, each with `role` and `content`, and writes a
text. The text of a response is what the template adds for it after the opening of a response
(`add_generation_prompt`): its content, and what ends it. All else is context: its target is -100.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from trueloop.errors import DataError
from trueloop.files import cannot_read, read_text
from trueloop.tasks.text.tokenizer import Tokenizer

Message = Mapping[str, str]
"""`role` (system, user or assistant) and `content`."""

PLAIN = (
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ message['content'] }}\n\n"
    "{% elif message['role'] == 'user' %}User: {{ message['content'] }}\n"
    "{% else %}Assistant: {{ message['content'] }}{{ eos_token }}\n"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""The template where a model brings none: a line for each message, an end of text after each
response."""

# A noncharacter of Unicode, which no text holds: it stands for the id that ends a text.
_END = "\ufdd0"
# Another, which stands for a message while it is asked what the template writes around it.
_MARK = "\ufdd1"
END_SHOWN = "⏹"
_MOST_TEMPLATE = 100_000
_MOST_TEXT = 4_000_000
_MOST_CALLS = 200_000
_MOST_RANGE = 10_000
"""Characters of a template and of what it writes, and what it may do: published templates stay far
below, and one that is broken or made to harm ends."""


class ChatTemplate:
    """A template for one tokenizer. Raises `DataError` where it is not a Jinja template."""

    def __init__(self, source: str, tokenizer: Tokenizer) -> None:
        self.source = source
        self._tokenizer = tokenizer
        self._template = _compiled(source)

    def text(self, messages: Sequence[Message], *, opens_response: bool = False) -> str:
        """The conversation as text, the end of a text as U+FDD0; `opens_response` adds what a
        response follows. Raises `DataError` where the template fails or refuses the messages."""
        end = "" if self._tokenizer.end_of_text is None else _END
        values = {
            "messages": [dict(message) for message in messages],
            "add_generation_prompt": opens_response,
            "eos_token": end,
            "bos_token": "",
            "tools": None,
        }
        written: list[str] = []
        size = 0
        try:
            for piece in self._template.generate(values):
                written.append(piece)
                size += len(piece)
                if size > _MOST_TEXT:
                    raise ValueError(f"it writes more than {_MOST_TEXT:,} characters")
        except Exception as error:  # a template of somebody else's raises anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DataError(
                f"the chat template does not accept this conversation ({reason}): change the "
                "conversation, or use a model with a different template"
            ) from None
        return "".join(written)

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The ids after which the model writes its response to `messages`."""
        return self._ids(self.text(messages, opens_response=True))

    def ends_of_response(self) -> list[str | int]:
        """The end of a response, beside the end of a text: the id of a special token, or a text.
        Empty where the template writes nothing between a response and the next message.

        Raises `DataError` where the template takes no question and answer.
        """
        question = [{"role": "user", "content": "?"}]
        answer = [*question, {"role": "assistant", "content": _MARK}]
        after = self.text(answer).rpartition(_MARK)[2].partition(_END)[0].strip()
        if not after:  # what opens the next message ends this one
            further = [*answer, {"role": "user", "content": _MARK}]
            between = self.text(further).partition(_MARK)[2].partition(_MARK)[0]
            after = between.partition(_END)[0].rstrip()
        if not after.strip():
            return []
        ids = self._tokenizer.encode(after)
        is_special = not int(self._tokenizer.bytes_per_token()[ids[0]])
        return [ids[0]] if is_special else [after]

    def shown(self, messages: Sequence[Message]) -> str:
        """The text of `prompt`, for people."""
        return self.text(messages, opens_response=True).replace(_END, END_SHOWN)

    def encode(self, messages: Sequence[Message]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Ids of the conversation up to its last response, int64 (N,), and whether each is to be
        predicted, bool (N,).

        Raises `DataError` where the template rewrites what went before when a message follows.
        """
        ids: list[int] = []
        predicted: list[bool] = []
        for text, is_response in self.segments(messages):
            new = self._ids(text)
            ids += new
            predicted += [is_response] * len(new)
        return np.array(ids, dtype=np.int64), np.array(predicted, dtype=bool)

    def segments(self, messages: Sequence[Message]) -> list[tuple[str, bool]]:
        """The text in pieces, and whether each is a response; it ends with the last response."""
        found: list[tuple[str, bool]] = []
        done = ""
        for number, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            head = self.text(messages[:number], opens_response=True)
            whole = self.text(messages[: number + 1])
            if not whole.startswith(head):
                head = self.text(messages[:number])  # one that knows no opening of a response
            if not (whole.startswith(head) and head.startswith(done)):
                raise DataError(
                    "the chat template writes earlier messages differently once a response "
                    "follows, so the tokens of the response are not defined: use one sample per "
                    "response, or a model with a different template"
                )
            found.append((head[len(done) :], False))
            # What follows the end of a text belongs to the next message.
            response, end, after = whole[len(head) :].rpartition(_END)
            found += [(response + end, True), (after, False)] if end else [(after, True)]
            done = whole
        if found and not found[-1][1]:
            found.pop()
        return [(text, is_response) for text, is_response in found if text]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = []
        for number, piece in enumerate(text.split(_END)):
            if number and self._tokenizer.end_of_text is not None:
                ids.append(self._tokenizer.end_of_text)
            ids += self._tokenizer.encode(piece) if piece else []
        return ids


def template_of(folder: Path) -> str | None:
    """The chat template in a published model's folder, from `chat_template.jinja` or
    `tokenizer_config.json`; None where it has none. Raises `DataError` where a file is damaged."""
    try:
        return read_text(folder / "chat_template.jinja", _MOST_TEMPLATE)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise DataError(cannot_read(folder / "chat_template.jinja", error)) from None
    path = folder / "tokenizer_config.json"
    try:
        template = json.loads(read_text(path)).get("chat_template")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{path} cannot be read ({error}): download it again") from None
    if isinstance(template, list):  # several by name
        named = {each.get("name"): each.get("template") for each in template}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _compiled(source: str) -> Any:
    """The template in a sandbox: it reaches no attribute of Python's, no file and no code, changes
    nothing that it is given, and ends after so many calls."""
    from jinja2.exceptions import SecurityError, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Bounded(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**", "%"})
        calls = 0

        def call(self, *args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls > _MOST_CALLS:
                raise SecurityError("it calls functions without end")
            return super().call(*args, **kwargs)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if (
                not all(isinstance(each, (int, float)) for each in (left, right))
                or operator == "**"
            ):
                raise SecurityError(f"it computes {operator!r} of what are not numbers")
            return super().call_binop(context, operator, left, right)

    if len(source) > _MOST_TEMPLATE:
        raise DataError(
            f"the chat template has {len(source):,} characters, more than {_MOST_TEMPLATE:,}: give "
            "a model whose template is shorter"
        )
    bounded = Bounded(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    bounded.globals |= {"raise_exception": _refuse, "strftime_now": _now, "range": _range}
    bounded.filters["tojson"] = _as_json
    try:
        template: Any = bounded.from_string(source)
    except (TemplateError, RecursionError) as error:
        raise DataError(
            f"the chat template is not a Jinja template ({error}): download tokenizer_config.json "
            "again"
        ) from None
    return _Counted(template, bounded)


class _Counted:
    """A template whose calls are counted for each conversation."""

    def __init__(self, template: Any, environment: Any) -> None:
        self._template = template
        self._environment = environment

    def generate(self, values: Mapping[str, Any]) -> Any:
        self._environment.calls = 0
        return self._template.generate(values)


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)


def _range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > _MOST_RANGE:
        raise ValueError(f"it counts to more than {_MOST_RANGE:,}")
    return found


def _as_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
