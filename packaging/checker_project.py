"""Writes the project of `trueloop-check`: the sources of trueloop, with what the checker needs.

    python packaging/checker_project.py FOLDER

`trueloop check`, `trueloop explain` and the language server read source and run none of it: they
need neither torch nor what else trueloop trains with. The distribution holds the same package under
the same name, so that the commands are the same, as opencv-python-headless does for
opencv-python; an environment has one of the two.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "trueloop-check"
DESCRIPTION = "Finds silent training bugs in PyTorch code, without torch and without running it."
NEEDED = ("jsonargparse",)
"""Of the dependencies of trueloop."""
EXTRAS = ("lsp",)
"""Of its extras, those that exist."""
_COPIED = ("src/trueloop", "examples/lab", "setup.py", "MANIFEST.in", "LICENSE")
_README = f"""\
# {NAME}

{DESCRIPTION}

```
trueloop check train.py models/ notebooks/
trueloop explain TL101
```

The package is [trueloop](https://pypi.org/project/trueloop/) with the dependencies of its checker
alone. To train with it, or to watch a program as it runs, install `trueloop` in its place:
`pip uninstall {NAME}`, then `pip install trueloop`.
"""


def write(folder: Path) -> None:
    """Write the project into `folder`, which must not exist yet. Raises `FileExistsError`."""
    folder.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, folder / name)
    (folder / "README.md").write_text(_README)
    (folder / "pyproject.toml").write_text(metadata((ROOT / "pyproject.toml").read_text()))


def metadata(text: str) -> str:
    """The `pyproject.toml` of the checker, from the one of trueloop."""
    given = tomllib.loads(text)
    needed = [each for each in given["project"]["dependencies"] if _name(each) in NEEDED]
    extras = given["project"]["optional-dependencies"]
    lines = [f"{name} = {extras[name]!r}" for name in EXTRAS if name in extras]
    for pattern, replacement in (
        (r'^name = "[^\n]*"$', f'name = "{NAME}"'),
        (r'^description = "[^\n]*"$', f'description = "{DESCRIPTION}"'),
        (r"^dependencies = \[.*?^\]$", f"dependencies = {needed!r}"),
        (
            r"^\[project\.optional-dependencies\]$.*?(?=^\[)",
            "[project.optional-dependencies]\n" + "".join(f"{line}\n" for line in lines) + "\n",
        ),
    ):
        text, count = re.subn(
            pattern, replacement.replace("\\", r"\\"), text, count=1, flags=re.MULTILINE | re.DOTALL
        )
        assert count == 1, pattern
    return text


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return found[0]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("write python packaging/checker_project.py FOLDER")
    write(Path(sys.argv[1]))
