"""What the language server makes of texts, without a server."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings, strategies as st
from pygls.workspace import PositionCodec

from doctor.language_server.editor import applied, as_action
from trueloop.doctor.language_server.open_files import OpenFile
from trueloop.doctor.language_server.positions import edits_between
from trueloop.doctor.static.fixes.ignore_comment import ignore_comment
from trueloop.doctor.static.inputs.documents import decode
from trueloop.doctor.static.inputs.ignores import ignores_in
from trueloop.doctor.static.inputs.open_document import open_document

STARTS = st.sampled_from(["", "a", "é 🙂", "\x0c", "x\u2028"])
LINES = st.lists(st.tuples(STARTS, st.sampled_from(["\n", "\r", "\r\n"])))


@settings(deadline=None)
@given(LINES, LINES, st.sampled_from(["", "end 🙂"]), st.sampled_from(["", "new"]))
def test_edits_make_one_text_of_another(
    old: list[tuple[str, str]], new: list[tuple[str, str]], tail: str, new_tail: str
) -> None:
    before = "".join(map("".join, old)) + tail
    after = "".join(map("".join, new)) + new_tail
    action = as_action(list(edits_between(before, after, PositionCodec())))
    assert applied(before, action) == after


PROGRAM = '''\
import torch  # the library
if True: x = 1; y = 2

def f(
    a,  # trueloop: ignore[TL102]
    b=(1,
       2),
):
    """Two
    lines."""
    for i in range(3):
        z = f(i, \\
              2)
        w = [
            1,
        ]  # noqa: E501
    return a  # 🙂 trueloop: ignore[TL204, softmax-before-cross-entropy]
v = """
  # no comment
""".strip()
u = 1  # trueloop: ignore
'''


@pytest.mark.parametrize("name", ["a.py", "a.md"])
def test_an_ignore_comment_is_about_the_statement_of_its_finding(name: str) -> None:
    program = PROGRAM if name == "a.py" else f"# Title\n\n> ```py\n{_quoted(PROGRAM)}> ```\n"
    document = open_document(f"/{name}", program.encode())
    above = document.programs[0].above
    statements = {
        node.lineno for node in ast.walk(ast.parse(PROGRAM)) if isinstance(node, ast.stmt)
    }
    inner = {node.lineno for node in ast.walk(ast.parse(PROGRAM)) if isinstance(node, ast.expr)}
    assert len(statements | inner) > 12
    for line in statements | inner:
        added = ignore_comment(document, line + above, "TL101")
        assert added is not None
        lines = document.lines
        text = lines[added.line - 1]
        lines[added.line - 1] = text[: added.column - 1] + added.text + text[added.column - 1 :]
        after = open_document(f"/{name}", "\n".join(lines).encode())
        assert ast.dump(ast.parse(after.programs[0].text)) == ast.dump(ast.parse(PROGRAM))
        speaking = [each for each in ignores_in(after) if each.covers("TL101", line + above)]
        assert [each for each in speaking if each.named], (line, lines)
        assert not any(each.unknown or each.empty for each in ignores_in(after))


def _quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def test_no_comment_is_about_a_line_without_code() -> None:
    document = open_document("/a.md", b"Text.\n\n```py\nx = 1\n```\n")
    assert ignore_comment(document, 1, "TL101") is None
    assert ignore_comment(open_document("/a.py", b"x = (\n"), 1, "TL101") is None


@pytest.mark.parametrize(
    "text", ["# -*- coding: latin-1 -*-\nx = 'é'\n", "x = 'é🙂'\n", "# coding: nonsense\n", "é\r\n"]
)
def test_a_text_is_encoded_as_its_file_would_be(text: str) -> None:
    data = OpenFile("/a.py", "file:///a.py", text).data
    if "nonsense" not in text:
        assert decode(data) == text.replace("\r\n", "\n")
