"""Conversations: what of them is learned, and a line for each way in which a file can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from trueloop.errors import DataError
from trueloop.tasks.text import chat
from trueloop.tasks.text.best_fit import best_fit
from trueloop.tasks.text.chat_template import PLAIN, ChatTemplate, template_of
from trueloop.tasks.text.subwords import SubwordTokenizer, learned
from trueloop.tasks.text.tokenizer import ByteTokenizer, CharTokenizer, Tokenizer
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

CHATML = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)
QUESTION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "Sure?"},
    {"role": "assistant", "content": "Yes."},
]


def template(source: str = PLAIN, tokenizer: Tokenizer | None = None) -> ChatTemplate:
    return ChatTemplate(source, ByteTokenizer(end_of_text=True) if tokenizer is None else tokenizer)


def written(path: Path, *lines: Any) -> Path:
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(text) + "\n", "utf-8")
    return path


def test_responses_and_their_ends_are_learned_and_nothing_else() -> None:
    assert template().segments(QUESTION) == [
        ("Be brief.\n\nUser: 2+2?\nAssistant:", False),
        (" 4\ufdd0", True),
        ("\n", False),
        ("User: Sure?\nAssistant:", False),
        (" Yes.\ufdd0", True),
    ]
    assert template(CHATML).segments(QUESTION)[1::2] == [
        ("4<|im_end|>\n", True),
        ("Yes.<|im_end|>\n", True),
    ]


@pytest.mark.parametrize("source", [PLAIN, CHATML])
@pytest.mark.parametrize("ends", [False, True])
def test_the_ids_are_those_of_the_text_and_a_response_begins_after_its_prompt(
    source: str, ends: bool
) -> None:
    tokenizer = ByteTokenizer(end_of_text=ends)
    made = template(source, tokenizer)
    ids, predicted = made.encode(QUESTION)
    prompt = made.prompt(QUESTION[:-1])
    assert ids[: len(prompt)].tolist() == prompt
    rest = ids[len(prompt) :].tolist()
    assert predicted[len(prompt) :].all()
    expected = " Yes." if source == PLAIN else "Yes.<|im_end|>\n"
    assert tokenizer.decode(rest).removesuffix("\n") == expected.removesuffix("\n")
    assert (rest[-1] == tokenizer.end_of_text) == (source == PLAIN and ends)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_all_that_is_learned_is_what_the_assistant_wrote(data: st.DataObject) -> None:
    text = st.text("ab \n:é", min_size=1).filter(str.strip)
    messages = [
        {"role": data.draw(st.sampled_from(["user", "assistant"])), "content": data.draw(text)}
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    messages.append({"role": "assistant", "content": data.draw(text)})
    tokenizer = ByteTokenizer(end_of_text=True)
    ids, predicted = template(tokenizer=tokenizer).encode(messages)
    responses = [m["content"] for m in messages if m["role"] == "assistant"]
    expected = b"".join(b" " + each.encode() for each in responses)
    assert bytes(i for i in ids[predicted] if i < 256) == expected
    assert int((ids == 256).sum()) == len(responses)
    assert ids[-1] == 256


def test_a_learned_vocabulary_has_the_end_of_text_as_an_id() -> None:
    tokenizer = learned(["User: hello there\nAssistant: hello <|endoftext|>\n"] * 20, 300)
    ids, predicted = template(tokenizer=tokenizer).encode(
        [{"role": "user", "content": "<|endoftext|>"}, {"role": "assistant", "content": "hello"}]
    )
    assert ids[-1] == tokenizer.end_of_text
    assert predicted[-1]
    assert (ids == tokenizer.end_of_text).sum() == 1  # the words of a user are no end


def test_what_ends_a_response_is_known_by_its_id_or_its_text() -> None:
    bytes_alone = ByteTokenizer()
    assert template().ends_of_response() == []  # the end of a text does
    assert template(tokenizer=bytes_alone).ends_of_response() == ["\nUser:"]
    assert template(CHATML, bytes_alone).ends_of_response() == ["<|im_end|>"]
    library = learned(["a <|im_start|> <|im_end|>"] * 20, 300).library
    library.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    special = SubwordTokenizer(library, None, literal=False)
    end = special.encode("<|im_end|>")
    assert len(end) == 1
    assert template(CHATML, special).ends_of_response() == end
    assert template("{% for m in messages %}{{ m.content }}{% endfor %}").ends_of_response() == []
    with pytest.raises(DataError, match="does not accept this conversation"):
        template("{{ raise_exception('no') }}").ends_of_response()


def conversations(*texts: tuple[str, str], context: int = 64) -> chat.Conversations:
    lines = [
        [{"role": "user", "content": ask}, {"role": "assistant", "content": answer}]
        for ask, answer in texts
    ]
    return chat.encode(lines, template(), context)


def test_a_batch_is_padded_and_learns_the_responses_alone() -> None:
    made = conversations(("a", "bc"), ("dddd", "e"))
    samples = chat.ChatSamples(made)
    tokens, targets = samples.get_batch(np.array([1, 0]), 0)
    assert tokens.shape == targets.shape == (2, len("User: dddd\nAssistant: e"))
    second = list(b"User: dddd\nAssistant: e")
    assert tokens[0].tolist() == second
    learned_ids = targets[0][targets[0] != -100].tolist()
    assert learned_ids == [ord(" "), ord("e"), 256]
    first = [t for t in targets[1].tolist() if t != -100]
    assert first == [ord(" "), ord("b"), ord("c"), 256]
    assert samples.predicted_tokens == 7


def test_the_mean_over_a_padded_batch_is_that_of_each_conversation_alone() -> None:
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(vocab_size=257, context=64, layers=2, width=16, heads=2)
    ).double()
    samples = chat.ChatSamples(
        conversations(("hi", "there"), ("what is it?", "no"), ("x", "a longer one"))
    )

    def total(rows: list[int]) -> tuple[float, int]:
        tokens, targets = samples.get_batch(np.array(rows), 0)
        logits = model(tokens).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), ignore_index=-100, reduction="sum")
        return float(loss.detach()), int((targets != -100).sum())

    together, count = total([0, 1, 2])
    alone = [total([row]) for row in range(3)]
    assert together == pytest.approx(sum(loss for loss, _ in alone), rel=1e-12)
    assert count == sum(number for _, number in alone) == samples.predicted_tokens


@settings(max_examples=200, deadline=None)
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=40), room=st.integers(12, 30))
def test_each_piece_is_in_one_row_that_holds_it_and_no_two_rows_could_be_one(
    lengths: list[int], room: int
) -> None:
    rows = best_fit(np.array(lengths), room)
    assert sorted(piece for row in rows for piece in row) == list(range(len(lengths)))
    sizes = sorted(sum(lengths[piece] for piece in row) for row in rows)
    assert sizes[-1] <= room
    assert len(sizes) == 1 or sizes[0] + sizes[1] > room
    assert rows == best_fit(np.array(lengths), room)


MANY = [("hi", "there"), ("what is it?", "no"), ("x", "a longer one"), ("y", "z"), ("so", "what")]


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_a_packed_conversation_does_not_depend_on_its_neighbours(positions: str) -> None:
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(
            vocab_size=257, context=64, layers=2, width=16, heads=2, positions=positions
        )
    ).double()

    def losses(batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        tokens, targets, *documents = batch
        logits = model(tokens, documents=documents[0] if documents else None)
        found = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return found.detach()[targets.flatten() != -100]

    made = conversations(*MANY)
    alone = chat.ChatSamples(made)
    packed = chat.PackedChat(made, 64)
    rows = best_fit(np.diff(made.starts) - 1, 64)
    assert len(packed) == len(rows) < len(made)
    for number, members in enumerate(rows):
        expected = torch.cat([losses(alone.get_batch(np.array([each]), 0)) for each in members])
        batch = packed.get_batch(np.array([number]), 0)
        torch.testing.assert_close(losses(batch), expected, rtol=1e-12, atol=1e-12)
        last = batch[2] == batch[2].max()
        batch[0][last] = 7  # poisons the last one alone
        same = len(expected) - int((batch[1][last] != -100).sum())
        torch.testing.assert_close(losses(batch)[:same], expected[:same], rtol=1e-12, atol=1e-12)
    together = packed.get_batch(np.arange(len(packed)), 3)
    assert together[0].shape == together[2].shape
    assert len(losses(together)) == packed.predicted_tokens == alone.predicted_tokens


def test_a_conversation_beyond_the_context_loses_its_end_and_is_counted() -> None:
    made = conversations(("a", "b" * 60), ("q" * 80, "r"), ("a", "b"), context=32)
    assert (len(made), made.cut, made.left_out) == (2, 2, 1)
    tokens, targets = chat.ChatSamples(made).get_batch(np.array([0]), 0)
    assert tokens.shape == (1, 32)
    assert targets[0, -1] == ord("b")
    (found,) = chat.findings(made, 32)
    assert found.code == "TL719"
    assert "2 of 3 conversations are longer than the context of 32 tokens" in found.message
    assert "1 of them had no response" in found.message
    assert not chat.findings(conversations(("a", "b")), 64)
    with pytest.raises(DataError, match="of 1 conversations none has a response within"):
        conversations(("q" * 80, "r"), context=32)


def test_both_forms_are_read_and_empty_lines_passed_over(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl",
        {"messages": QUESTION},
        "",
        {"prompt": "2+2?", "response": "4", "source": "school"},
    )
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert chat.read_conversations(path) == [
        QUESTION,
        [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
    ]


GOOD = {"prompt": "a", "response": "b"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: it is not JSON .* at column 2"),
        ("9" * 5000, "line 2: it is not JSON"),
        ("[" * 100_000, "line 2: it is not JSON"),
        ("[1]", "line 2: it is JSON, and not an object"),
        ({"text": "a"}, r"line 2: it has neither 'messages' nor .* \(its keys: 'text'\)"),
        ({"response": "a"}, r"line 2: it has neither .*\(its keys: 'response'\)"),
        ({"prompt": "a"}, "line 2: it has a prompt but no response"),
        ({"messages": []}, "line 2: its 'messages' are not a list"),
        ({"messages": "hello"}, "line 2: its 'messages' are not a list"),
        ({"messages": [{"role": "user"}]}, "line 2: message 1 has no 'role' and 'content'"),
        (
            {"messages": [{"role": "asistant", "content": "a"}]},
            "line 2: message 1 has the unknown role 'asistant': did you mean 'assistant'",
        ),
        ({"messages": [{"role": 3, "content": "a"}]}, "the unknown role '3': known: system, user"),
        ({"messages": [{"role": "user", "content": [1]}]}, "content of message 1 is not text"),
        ({"prompt": "a", "response": "  "}, "line 2: message 2 is an empty response"),
        ({"prompt": None, "response": "a"}, "line 2: the content of message 1 is not text"),
        ({"messages": QUESTION[:2]}, "line 2: it has no message of the role assistant"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(line: Any, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", GOOD, line, GOOD)
    with pytest.raises(DataError, match=message) as raised:
        chat.read_conversations(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_files_that_hold_no_conversations_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(DataError, match="cannot read"):
        chat.read_conversations(path)
    path.write_text("\n\n")
    with pytest.raises(DataError, match="is empty: give one conversation a line"):
        chat.read_conversations(path)
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"prompt": "\xff"}')
    with pytest.raises(DataError, match=r"line 2 is not UTF-8 \(byte 13 of the line\)"):
        chat.read_conversations(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for %}", "is not a Jinja template"),
        ("{{ raise_exception('only one system message') }}", "only one system message"),
        ("{{ messages[9].content.x.y }}", "does not accept this conversation"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ 'a' * 10**9 }}", "what are not numbers"),
        ("{% for i in range(10**6) %}a{% endfor %}", "what are not numbers"),
        ("{% for i in range(99999) %}a{% endfor %}", "counts to more than"),
        (
            "{% for i in range(999) %}{% for j in range(999) %}{% set _ = range(1) %}"
            "{% endfor %}{% endfor %}",
            "without end",
        ),
        ("{% for i in range(999) %}{{ 'abc' | center(9999) }}{% endfor %}", "writes more"),
        ("a" * 100_001, "has 100,001 characters"),
    ],
)  # fmt: skip
def test_a_template_that_is_broken_or_made_to_harm_ends_in_one_line(
    source: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as raised:
        template(source).text(QUESTION)
    assert "\n" not in str(raised.value)


def test_a_template_that_rewrites_what_went_before_is_refused() -> None:
    source = "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(DataError, match="use one sample per response"):
        template(source).encode(QUESTION)


def test_the_template_of_a_folder(tmp_path: Path) -> None:
    assert template_of(tmp_path) is None
    path = tmp_path / "tokenizer_config.json"
    path.write_text("{}")
    assert template_of(tmp_path) is None
    path.write_text(json.dumps({"chat_template": CHATML}))
    assert template_of(tmp_path) == CHATML
    path.write_text(json.dumps({"chat_template": [{"name": "default", "template": PLAIN}]}))
    assert template_of(tmp_path) == PLAIN
    (tmp_path / "chat_template.jinja").write_text("x")
    assert template_of(tmp_path) == "x"
    (tmp_path / "chat_template.jinja").unlink()
    path.write_text("{")
    with pytest.raises(DataError, match="download it again"):
        template_of(tmp_path)


def test_a_conversation_as_the_report_shows_it() -> None:
    shown = chat.marked(template(tokenizer=CharTokenizer("a", end_of_text=True)), QUESTION[1:3])
    assert shown == [
        {"text": "User: 2+2?\nAssistant:", "learned": False},
        {"text": " 4⏹", "learned": True},
    ]
