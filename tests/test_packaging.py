"""The distributions: what the checker alone needs, and the licences of what is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FAULTY = ROOT / "tests" / "documents" / "accumulation" / "train.py"
PROGRAM = """\
import sys
sys.path[:0] = [sys.argv[1] + "/src"]
for missing in ("torch", "numpy", "rich", "polars"):
    sys.modules[missing] = None
from trueloop.cli import main
print(main(["check", "--no-cache", "--jobs", "1", "--format", "json", sys.argv[2]]), flush=True)
for words in (["explain", "TL101"], ["train", "spiral"], ["lab"], ["verify-resume", "spiral"]):
    print(words[0], main(words))
"""


def _checker() -> Any:
    path = ROOT / "packaging" / "checker_project.py"
    spec = spec_from_file_location("checker_project", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_checker_alone_needs_no_torch(tmp_path: Path) -> None:
    project = tmp_path / "project"
    _checker().write(project)
    words = [sys.executable, "-c", PROGRAM, str(project), str(FAULTY)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    found, _, rest = done.stdout.partition("\n1\n")
    assert [each["code"] for each in json.loads(found)["findings"]] == ["TL508"]
    assert re.findall(r"^(\w[\w-]*) (\d)$", rest, re.MULTILINE) == [
        ("explain", "0"), ("train", "2"), ("lab", "2"), ("verify-resume", "2"),
    ]  # fmt: skip
    line = (
        "trueloop: error: torch is not installed, and without it only check, explain and lsp work: "
        "pip install trueloop (in place of trueloop-check)"
    )
    assert done.stderr.splitlines() == [line] * 3


def test_the_checker_has_its_own_name_and_few_dependencies() -> None:
    given = tomllib.loads(_checker().metadata((ROOT / "pyproject.toml").read_text()))["project"]
    assert given["name"] == "trueloop-check"
    assert [re.split(r"[\[>]", each)[0] for each in given["dependencies"]] == ["jsonargparse"]
    assert set(given["optional-dependencies"]) <= {"lsp"}
    same = ("version", "requires-python", "license", "scripts")
    assert {key: given[key] for key in same} == {key: METADATA[key] for key in same}


def test_the_licence_of_every_dependency_is_listed() -> None:
    page = (ROOT / "docs" / "licences.md").read_text().lower()
    extras = METADATA["optional-dependencies"]
    users = [name for name in extras if name not in ("dev", "peers", "docs", "release")]
    direct = [*METADATA["dependencies"], *(each for name in users for each in extras[name])]
    names = {re.split(r"[\[>=!<;]", each)[0].strip().lower() for each in direct} - {"trueloop"}
    assert {name for name in names if f"| {name} |" not in page} == set()
