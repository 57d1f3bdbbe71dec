"""docs/editors.md starts the server that there is."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from documents import ROOT, blocks
from trueloop.cli import main
from trueloop.doctor.language_server.actions import FIX_ALL
from trueloop.doctor.language_server.server import PAUSE

SETTINGS = {block.line: block for block in blocks("docs/editors.md") if block.language}


def _values(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _values(each)


@pytest.mark.parametrize("line", SETTINGS)
def test_settings_start_the_server(line: int, capsys: pytest.CaptureFixture[str]) -> None:
    block = SETTINGS[line]
    if block.language == "lua":
        (command,) = re.findall(r"cmd = \{ (.+) \}", block.text)
        words = json.loads(f"[{command}]")
    else:
        values = list(_values({"json": json, "toml": tomllib}[block.language].loads(block.text)))
        assert "trueloop" in values
        words = ["trueloop", *next(each for each in values if each == ["lsp"])]
        kinds = {each for each in values if isinstance(each, str) and each.startswith("source.")}
        assert kinds <= {FIX_ALL}
    assert words == ["trueloop", "lsp"]
    assert main([*words[1:], "--help"]) == 0
    assert "usage: trueloop lsp" in capsys.readouterr().out


def test_what_the_page_says_of_the_server() -> None:
    text = (ROOT / "docs/editors.md").read_text("utf-8")
    assert len(SETTINGS) == 4
    assert f"checked\n  {PAUSE:g} s after the last key" in text
    assert f"`{FIX_ALL}`" in text


def test_without_pygls_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    assert main(["lsp"]) == 2
    assert capsys.readouterr().err == (
        "trueloop: error: the language server needs pygls, which is not installed: "
        "pip install 'trueloop[lsp]'\n"
    )
