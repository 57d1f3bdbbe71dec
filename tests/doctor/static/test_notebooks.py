"""Notebooks become one program, whose lines lead back to their cells."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from trueloop.doctor.static.inputs.documents import Document
from trueloop.doctor.static.inputs.notebooks import without_magics
from trueloop.doctor.static.inputs.open_document import open_document


def cell(source: str, kind: str = "code") -> dict[str, Any]:
    return {"cell_type": kind, "source": source.splitlines(keepends=True)}


def notebook(tmp_path: Path, *cells: dict[str, Any], **metadata: Any) -> Document:
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4}))
    return open_document(str(path))


def test_cells_are_joined_and_lines_lead_back(tmp_path: Path) -> None:
    found = notebook(tmp_path, cell("# Title", "markdown"), cell("a = 1\nb = 2\n"), cell("c = a"))
    assert [program.text for program in found.programs] == ["a = 1\nb = 2\nc = a"]
    assert [found.cell(line) for line in (1, 2, 3)] == [(2, 1), (2, 2), (3, 1)]


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline\nx = 1",
        "!pip install torch \\\n  torchvision\nx = 1",
        "model?\nx = 1",
        "?model\nx = 1",
        "files = !ls\nx = 1",
        "now = %time f()\nx = 1",
        "%%time\nx = 1",
        "if True:\n    %load_ext x\nx = 1",
        "await f()\nasync with a: pass\nx = 1",
        "y = (3\n% 2)\n!ls\nx = 1",
        "s = '''\n%not a magic\n'''\n!ls\nx = 1",
        "y = 1 \\\n% 2\n!ls\nx = 1",
        "s = 'it\\'s'  # don't\n!ls\nx = 1",
    ],
)
def test_what_only_jupyter_knows_is_put_out_of_the_way(tmp_path: Path, source: str) -> None:
    found = notebook(tmp_path, cell(source))
    assert not found.problems
    (program,) = found.programs
    tree = ast.parse(program.text)
    lines = source.split("\n")
    assert len(program.text.split("\n")) == len(lines)
    last = tree.body[-1]
    assert isinstance(last, ast.Assign)
    assert last.lineno == len(lines)
    assert found.text == source


def test_lines_that_are_python_stay() -> None:
    lines = ["y = (3", "% 2)", "!ls", "s = '''", "%a", "'''", "x = 'a?'  # why?", "x != y"]
    expected = [*lines[:2], "pass", *lines[3:]]
    assert without_magics(lines) == expected


def test_cells_in_other_languages_are_passed_over(tmp_path: Path) -> None:
    found = notebook(tmp_path, cell("%%bash\nrm -r x\n"), cell("x = 1"))
    assert [program.text for program in found.programs] == ["\n\nx = 1".replace("\n\n", "\n\n", 1)]
    assert not notebook(tmp_path, cell("x <- 1"), kernelspec={"language": "R"}).programs


def test_a_cell_that_does_not_parse_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    found = notebook(tmp_path, cell("x = 1"), cell("y = 2\nfor"), cell("z = 3"))
    (problem,) = found.problems
    assert found.cell(problem.line) == (2, 2)
    assert "does not parse" in problem.message
    assert [program.text for program in found.programs] == ["x = 1\n\n\nz = 3"]


def test_the_old_format_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.ipynb"
    sheet = {"cells": [{"cell_type": "code", "input": ["x = 1\n", "y = 2"]}]}
    path.write_text(json.dumps({"worksheets": [sheet, 3, {"cells": 4}], "nbformat": 3}))
    assert [program.text for program in open_document(str(path)).programs] == ["x = 1\ny = 2"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "3",
        '{"cells": 3}',
        '{"metadata": []}',
        "[" * 100_000,
        "\udcff",
        '{"cells": ' + "[" * 90_000 + "]" * 90_000 + "}",
        '{"cells": [], "x": ' + "1" * 10_000 + "}",
    ],
    ids=["half", "list", "number", "cells", "metadata", "nested", "bytes", "deep", "digits"],
)
def test_what_is_no_notebook_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    found = open_document(str(path))
    assert len(found.problems) == 1
    assert not found.programs


@pytest.mark.parametrize(
    "content", ["", "{}", '{"cells": [3, {}, {"cell_type": "code"}]}'], ids=["none", "new", "odd"]
)
def test_a_notebook_without_code_has_nothing_to_check(tmp_path: Path, content: str) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text(content)
    found = open_document(str(path))
    assert not found.problems
    assert not "".join(program.text for program in found.programs)


@pytest.mark.parametrize(
    "source",
    ["\ud800 = 1", "%m\n" + " " * 200_000 + "x", "x = " + "-" * 50_000 + "1", "x = 1\0"],
    ids=["half a character", "blanks", "deep", "null"],
)
def test_a_cell_that_cannot_be_parsed_is_named_at_once(tmp_path: Path, source: str) -> None:
    found = notebook(tmp_path, cell(source), cell("y = 2"))
    assert len(found.problems) == 1
    assert found.programs[0].text.strip() == "y = 2"
