"""Options and documents agree: none is written that the code lacks, none is in no guide."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from documents import DOCUMENTS, ROOT

sys.path.insert(0, str(ROOT / "docs" / "_site"))
import options

OTHERS = {
    "torchrun": "nproc-per-node nnodes rdzv-backend rdzv-endpoint rdzv-id max-restarts "
    "shutdown-timeout signals-to-handle",
    "sbatch": "signal requeue",
    "pip": "no-deps",
    "tensorboard": "logdir",
    "make bench": "quick rounds",
    "benchmarks/scale_arithmetic.py": "measured",
    "train.py": "its own",
    "doubling.py": "noise",
    "every verb": "help help-all",
    "benchmarks/watch_cost.py": "memory",
}
"""Options of other programs that the documents write, and of examples."""
FOREIGN = {f"--{name}" for names in OTHERS.values() for name in names.split()}


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The options of each verb."""
    return options.all_options()


def _written(document: str) -> Iterator[str]:
    """The options in a document's code."""
    text = (ROOT / document).read_text("utf-8")
    code = re.findall(r"```.*?^ *```|``.*?``|`[^`]+`", text, re.M | re.S)
    for part in code:
        yield from re.findall(r"(?<![\w-])--[a-z][\w-]*", part)


WRITTEN = {document: set(_written(document)) for document in DOCUMENTS}


def test_every_option_that_a_document_writes_is_one_of_the_code(known: dict[str, set[str]]) -> None:
    there = set().union(*known.values()) | FOREIGN
    wrong = {document: sorted(found - there) for document, found in WRITTEN.items()}
    assert not {document: names for document, names in wrong.items() if names}


def test_every_option_of_the_code_is_in_a_guide(known: dict[str, set[str]]) -> None:
    """Beside the generated page of all options. A switch and its negation are one."""
    written = {_switch(name) for names in WRITTEN.values() for name in names}
    missing = {
        verb: sorted(name for name in names if _switch(name) not in written)
        for verb, names in known.items()
    }
    assert not {verb: names for verb, names in missing.items() if names}


def _switch(name: str) -> str:
    return name.replace("--no-", "--", 1)


def test_the_page_of_options_has_each_option(known: dict[str, set[str]]) -> None:
    page = options.page()
    for verb, names in known.items():
        section = page.split(f"\n## {verb}\n")[1].split("\n## ")[0]
        if verb in options.OF_A_TASK:
            section += page.split("\n## train\n")[1].split("\n## ")[0]
        assert {name for name in names if f"`{name}`" not in section} == set(), verb


def test_no_option_of_another_program_is_listed_in_vain() -> None:
    written = set().union(*WRITTEN.values())
    assert written >= FOREIGN
