"""Fences of Markdown that hold programs, each at its own lines."""

from __future__ import annotations

import ast

import pytest

from trueloop.doctor.static.inputs.markdown import open_markdown


def codes(text: str) -> list[str]:
    return [program.text.strip() for program in open_markdown("guide.md", text).programs]


@pytest.mark.parametrize(
    "info",
    ["python", "py", "Python", "python3", "{python}", "{.python .numberLines}",
     'python title="a-b"', "{code-cell} ipython3", " python"],
)  # fmt: skip
def test_fences_marked_as_python_are_programs(info: str) -> None:
    assert codes(f"text\n\n```{info}\nx = 1\n```\n\n~~~{info}\ny = 2\n~~~\n") == ["x = 1", "y = 2"]


@pytest.mark.parametrize("info", ["", "bash", "pycon", "python-console", "pytb", "c++ python"])
def test_other_fences_are_prose(info: str) -> None:
    assert codes(f"```{info}\nx = 1\n```\n") == []


@pytest.mark.parametrize(
    "code",
    [
        "print 'two'",
        ">>> x = 1",
        "for batch in loader:\n    ...",
        "net = nn.Linear(...)",
        "x = 1\n# ... and so on",
        "x = 1  # …",
        "",
    ],
)
def test_fragments_are_prose(code: str) -> None:
    assert codes(f"```python\n{code}\n```\n") == []


def test_a_comment_that_trails_off_makes_no_fragment() -> None:
    assert codes("```python\nx = 1  # loading...\n```\n") == ["x = 1  # loading..."]


def test_lines_and_columns_are_the_documents_own() -> None:
    text = "- item\n\n  ```python\n  x = 1\n\n  y = f(\n      2)\n  ```\n"
    (program,) = open_markdown("guide.md", text).programs
    first, second = ast.increment_lineno(ast.parse(program.text), program.above).body
    assert (first.lineno, second.lineno, program.indent) == (4, 6, 2)
    assert text.split("\n")[second.lineno - 1][second.col_offset + program.indent] == "y"


def test_fences_in_quotes_and_fences_in_fences() -> None:
    assert codes("> ```python\n> x = 1\n> ```\n") == ["x = 1"]
    assert codes("````markdown\n```python\nx = 1\n```\n````\n") == []
    assert codes("```python\nx = 1\n") == []  # never closed


def test_lines_of_blanks_and_marks_take_no_time() -> None:
    text = " " * 300_000 + "\n" + "> " * 150_000 + "x\n" + "`" * 300_000 + "\n"
    assert codes(text + "```python\nx = 1\n```\n") == []
    assert codes("~" * 300_000 + "\n" + "~" * 200_000 + "\n```python\nx = 1\n```\n") == []
