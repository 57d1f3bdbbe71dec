"""What the documents show: outputs are what commands print, commands are understood, programs
compile. How a block is paired with its command stands in `documents.py`."""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
import shlex
import shutil
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

import trueloop
from documents import DOCUMENTS, FOLDERS, GENERATED, PAGES, ROOT, Block, blocks, is_shown
from trueloop.cli import VERBS, main

BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
PROGRAMS = re.compile(r"(trueloop|make|torchrun|python|pip|srun|\.venv/bin/\w+|#SBATCH|#|\[ |$)")
"""What a line of a block of commands begins with."""


def _ids(chosen: list[Block]) -> list[str]:
    return [block.place for block in chosen]


def is_commands(block: Block) -> bool:
    text = block.text.replace("\\\n", " ")
    return block.language in ("", "sh", "bash") and all(map(PROGRAMS.match, text.splitlines()))


def is_signature(block: Block) -> bool:
    """A signature alone: Feed(data, *, seed=0)."""
    return re.match(r"\w+\([^()]*\*, [^()]*\)$", block.text.strip()) is not None


def is_source(block: Block) -> bool:
    settings = ("json", "lua") if block.document == "docs/editors.md" else ()
    return block.language in ("python", "toml", "yaml", *settings)


def test_every_block_is_a_program_a_configuration_commands_or_the_output_of_one() -> None:
    bare = [
        block.place
        for block in BLOCKS
        if not (is_source(block) or is_commands(block) or block.command or block.test)
    ]
    assert not bare, f"say which command prints these, see tests/documents.py: {bare}"
    assert len(BLOCKS) > 40


# ------------------------------------------------------------------------------- outputs

PRINTED = [block for block in BLOCKS if block.command]
IN_PROCESS = [block for block in PRINTED if not block.command.startswith("trueloop watch")]


@pytest.mark.parametrize("block", IN_PROCESS, ids=_ids(IN_PROCESS))
def test_an_output_is_what_the_command_prints(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(FOLDERS / block.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    program, *words = shlex.split(block.command)
    if program == "trueloop":
        main(words)
    else:
        assert program == "python"
        monkeypatch.setattr(sys, "argv", words)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            runpy.run_path(words[0], run_name="__main__")
    printed = "".join(capsys.readouterr())
    assert is_shown(block.text, printed, part=block.part, apart=block.apart), printed


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.test], ids=lambda block: block.place
)
def test_an_output_that_another_test_compares_is_compared_there(block: Block) -> None:
    file, _, name = block.test.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    (test,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert "is_shown(" in ast.unparse(test)


def test_every_folder_of_a_document_is_used() -> None:
    used = {block.folder for block in PRINTED}
    assert {folder.name for folder in FOLDERS.iterdir() if folder.name[0] != "_"} == used


def test_json_that_is_shown_is_json() -> None:
    for block in BLOCKS:
        if block.language == "json" and "…" not in block.text:
            assert json.loads(block.text), block.place


@pytest.mark.parametrize(
    ("text", "output", "part", "same"),
    [
        ("a\nb\n", "a\nb\n", False, True),
        ("a\n", "a\nb\n", False, False),
        ("b\n", "a\nb\n", True, True),
        ("c\n", "a\nb\n", True, False),
        ("a …\n", "a lot\n", False, True),
        ("a\n  …\nc\n", "a\nb\nb\nc\n", False, True),
        ("took 4.2 s, 13%\n", "took 5 s, 9%\n", False, True),
        ("took 4.2 s, 13 runs\n", "took 4.2 s, 14 runs\n", False, False),
        ("a.b\n", "acb\n", False, False),
    ],
)
def test_a_block_is_compared_to_the_letter(text: str, output: str, part: bool, same: bool) -> None:
    assert is_shown(text, output, part=part) is same


# ------------------------------------------------------------------------------- commands

COMMANDS = [
    (f"{block.document}:{block.line}", line)
    for block in BLOCKS
    if is_commands(block)
    for line in block.text.replace("\\\n", " ").splitlines()
] + [
    (document, code)
    for document in DOCUMENTS
    for code in re.findall(r"(?<!`)`(trueloop [a-z][^`]+)`", (ROOT / document).read_text("utf-8"))
]
CALLS = [
    (place, match[1].replace("\n", " "))
    for place, line in COMMANDS
    if (match := re.search(r"(?:^|-m )trueloop ([a-z][^#>]*)", line))
]


OF_A_TASK = ("train", "verify-resume", "tune")


def _parses(verb: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Every option that is written is one of the verb's, as its help lists them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["trueloop"])
        task = [word for word in words[:1] if verb in OF_A_TASK]
        known = task if task and task[0] in ("spiral", "digits", "table", "images", "text") else []
        if verb in OF_A_TASK and not known:
            known = ["table"]
        assert main([verb, *known, "--help-all" if verb != "watch" else "--help"]) == 0
    helped = re.sub(r"--\[no-\](\S+)", r"--\1, --no-\1", capsys.readouterr().out)
    own = words
    if verb == "watch":  # what follows the script is the script's
        ends = (i for i, word in enumerate(words) if word.endswith(".py") or word == "-m")
        script = next(ends, len(words))
        own = words[:script]
    for word in own:
        option = word.strip("[]").split("=")[0]
        if option.startswith("--") and option != "--help":
            assert re.search(rf"{re.escape(option)}\b", helped), f"{verb} has no {option}"


@pytest.mark.parametrize(("place", "call"), CALLS, ids=[f"{p} {c[:30]}" for p, c in CALLS])
def test_every_call_of_a_document_names_a_verb_and_options_that_there_are(
    place: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(call.replace("...", "").replace("…", ""))
    if len(words) > 1 and ".py:" in words[1]:  # an option of its own is a field in the page
        page = (ROOT / place.split(":")[0]).read_text("utf-8")
        words = [w for w in words if f"{w.removeprefix('--').replace('-', '_')}: " not in page]
    assert words[0] in VERBS, f"{place}: there is no verb {words[0]}"
    _parses(words[0], words[1:], capsys)


# ------------------------------------------------------------------------------- sources


@pytest.mark.parametrize(
    "block",
    [b for b in BLOCKS if b.language == "python" and not b.source],
    ids=lambda block: block.place,
)
def test_programs_compile(block: Block) -> None:
    text = f"def {block.text.strip()}: ..." if is_signature(block) else block.text
    assert compile(text, block.place, "exec").co_code


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language in ("toml", "yaml")], ids=lambda block: block.place
)
def test_configurations_are_read(block: Block) -> None:
    load = tomllib.loads if block.language == "toml" else yaml.safe_load
    assert load(block.text)


# ------------------------------------------------------------------------------- the site

DOCS = ROOT / "docs"


def _in_toctrees() -> list[str]:
    """The pages that a toctree of a page names."""
    trees = [
        tree
        for page in PAGES
        for tree in re.findall(
            r"^:::\{toctree\}\n(.*?)^:::", (ROOT / page).read_text("utf-8"), re.M | re.S
        )
    ]
    lines = [line.strip() for tree in trees for line in tree.splitlines()]
    return [line for line in lines if line and line[0] != ":"]


def test_every_page_is_in_one_toctree() -> None:
    """A page that is in none cannot be found on the site: name it in docs/index.md."""
    listed = _in_toctrees()
    built = {"options", "api/index"}
    there = {page.stem for page in DOCS.glob("*.md")} | built
    assert set(listed) - built == there - built - {"index"}
    assert len(listed) == len(set(listed))


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give to a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    wrong = []
    for name in (*DOCUMENTS, *(f"docs/{each}" for each in sorted(GENERATED))):
        page = ROOT / name
        for target in re.findall(
            r"\]\(([^)\s]+)\)", page.read_text("utf-8") if page.exists() else ""
        ):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            if path.startswith(("rules/", "lab/", "api/", "options.md")):
                continue  # written when the site is built, which fails on a wrong link
            if not file.exists() or (anchor and anchor not in _anchors(file)):
                wrong.append(f"{name}: {target}")
    assert not wrong


# ------------------------------------------------------------------------------- programs

SETUP = FOLDERS / "_setup"
EXCERPTS = [block for block in BLOCKS if block.source]
RUN_ELSEWHERE = {"README.md": "tests/test_readme.py", "docs/recipes.md": "tests/test_recipes.py"}
PAGES_WITH_PROGRAMS = sorted(
    {block.document for block in BLOCKS if block.language == "python"} - {*RUN_ELSEWHERE}
)


@pytest.mark.parametrize("page", PAGES_WITH_PROGRAMS)
def test_the_programs_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for setup in ("_common.py", f"{Path(page).stem}.py"):
        if (SETUP / setup).exists():
            exec(compile((SETUP / setup).read_text("utf-8"), setup, "exec"), names)
    for block in blocks(page):
        if block.language != "python" or block.source or block.runner or is_signature(block):
            continue
        if block.needs:  # tests/test_docs_integration.py runs it
            continue
        text = block.text
        for old, new in names["REPLACED"].items():
            text = text.replace(old, new)
        exec(compile(text, block.place, "exec"), names)


@pytest.mark.parametrize("block", EXCERPTS, ids=_ids(EXCERPTS))
def test_an_excerpt_is_in_its_source(block: Block) -> None:
    source = _statements((ROOT / block.source).read_text("utf-8"))
    wanted = [part.strip("\n") for part in _statements(block.text).split("\n…")]
    place = 0
    for part in wanted:
        found = source.find(f"\n{part}\n", place)
        assert found >= 0, f"{block.place}: {block.source} has no\n{part}"
        place = found + len(part)


def _statements(text: str) -> str:
    """Code without comments, blank lines and indentation."""
    lines = [re.sub(r"(^| +)# .*$", "", line).strip() for line in text.splitlines()]
    joined = "\n" + "\n".join(line for line in lines if line) + "\n"
    return joined.replace("(\n", "(").replace("\n)", ")")


def test_a_program_that_another_test_runs_is_run_there() -> None:
    for page, runner in RUN_ELSEWHERE.items():
        assert Path(page).name in (ROOT / runner).read_text("utf-8")
    for block in BLOCKS:
        if block.runner:
            assert Path(block.document).name in (ROOT / block.runner).read_text("utf-8")


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if is_signature(b)], ids=lambda block: block.place
)
def test_a_signature_is_that_of_the_class(block: Block) -> None:
    call = ast.parse(f"def {block.text.strip()}: ...").body[0]
    assert isinstance(call, ast.FunctionDef)
    shown = [each.arg for each in (*call.args.args, *call.args.kwonlyargs)]
    known = inspect.signature(getattr(trueloop, call.name)).parameters
    assert [name for name in known if name in shown] == shown
