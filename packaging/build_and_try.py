"""Builds both distributions, and tries each in an empty environment of every Python there is.

    python packaging/build_and_try.py            # writes dist/, prints a table
    python packaging/build_and_try.py --checker  # trueloop-check alone, in seconds

`trueloop` is installed with constraints.txt, trains the spiral for an epoch, scores it,
and its types are read by mypy and pyright, both strict, in a user's program;
`trueloop-check` is installed as it comes, and must find the fault of a program without torch.
Pythons are those of 3.11 and up on the PATH and of pyenv. With npm on the PATH, `trueloop-check`
also runs in the Python of pyodide (WebAssembly), which is a newer one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import checker_project

ROOT = checker_project.ROOT
FAULTY = ROOT / "tests" / "documents" / "accumulation" / "train.py"
FAULT = "TL508"
PROGRAM = ROOT / "tests" / "typing" / "user_program.py"
_PYODIDE = """\
import { loadPyodide } from "pyodide";
import fs from "fs";
const [wheels, faulty] = process.argv.slice(2);
const python = await loadPyodide();
python.mountNodeFS("/mnt", wheels);
python.FS.writeFile("/faulty.py", fs.readFileSync(faulty, "utf8"));
await python.runPythonAsync(`
import glob, sys, zipfile
for wheel in glob.glob("/mnt/*.whl"):
    zipfile.ZipFile(wheel).extractall("/site")
sys.path.insert(0, "/site")
print("Python", sys.version.split()[0])
from trueloop.cli import main
print("status", main(["check", "--no-cache", "--jobs", "1", "--format", "json", "/faulty.py"]))
`);
"""


@dataclass
class Trial:
    """One distribution in one Python."""

    distribution: str
    python: str
    outcome: str

    def __post_init__(self) -> None:
        print(f"{self.distribution:<16} {self.python:<24} {self.outcome}", flush=True)


def main() -> int:
    """Build, try, print; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--checker", action="store_true", help="trueloop-check alone")
    only_checker = parser.parse_args().checker
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        project = folder / "project"
        checker_project.write(project)
        checker = built(project, out, folder)
        whole = None if only_checker else built(ROOT, out, folder)
        for python in pythons():
            trials.append(tried(python, "trueloop-check", folder, checker))
            if whole is not None:
                trials.append(tried(python, "trueloop", folder, whole))
        if shutil.which("npm"):
            trials.append(in_pyodide(folder, checker))
    return int(any(each.outcome != "works" for each in trials))


def built(project: Path, out: Path, folder: Path) -> Path:
    """The wheel of `project`, built from its source distribution; both are in `out`."""
    tool = folder / "build"
    if not tool.exists():
        run([sys.executable, "-m", "venv", str(tool)])
        pip(tool / "bin" / "python", "build")
    before = set(out.glob("*.whl"))
    run([str(tool / "bin" / "python"), "-m", "build", "--outdir", str(out), str(project)])
    (wheel,) = set(out.glob("*.whl")) - before
    return wheel


def pythons() -> list[str]:
    """One of each version from 3.11 up, of those on the PATH and those of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [shutil.which(f"python3.{minor}") for minor in range(11, 30)]
    candidates = [*filter(None, named), *map(str, sorted(versions.glob("*/bin/python3")))]
    found: dict[tuple[int, int], str] = {}
    for candidate in candidates:
        words = [candidate, "-c", "import sys; print(*sys.version_info[:2])"]
        asked = subprocess.run(words, capture_output=True, text=True)
        if asked.returncode == 0:  # pyenv has a python3.13 that only says which versions it has
            major, minor = map(int, asked.stdout.split())
            found.setdefault((major, minor), candidate)
    return [python for version, python in sorted(found.items()) if version >= (3, 11)]


def tried(python: str, distribution: str, folder: Path, wheel: Path) -> Trial:
    """Install `wheel` into an empty environment, and use it."""
    name = subprocess.check_output([python, "--version"], text=True).strip()
    place = folder / f"{distribution}-{name}".replace(" ", "-")
    try:
        run([python, "-m", "venv", str(place)])
        if distribution == "trueloop":
            pip(place / "bin" / "python", "-c", str(ROOT / "constraints.txt"), str(wheel))
            use_trueloop(place / "bin" / "trueloop", folder / f"{place.name}-run")
            read_types(place / "bin" / "python", folder / f"{place.name}-typed")
        else:
            pip(place / "bin" / "python", str(wheel))
            use_checker(place / "bin" / "trueloop", folder)
    except (subprocess.CalledProcessError, AssertionError) as error:
        return Trial(distribution, name, f"failed: {error}")
    return Trial(distribution, name, "works")


def use_checker(trueloop: Path, folder: Path) -> None:
    """`check` finds the fault; what needs torch says so in one line."""
    words = [str(trueloop), "check", "--no-cache", "--format", "json", str(FAULTY)]
    found = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    codes = [each["code"] for each in json.loads(found.stdout)["findings"]]
    assert (found.returncode, codes) == (1, [FAULT]), found
    refused = subprocess.run(
        [str(trueloop), "train", "spiral"], capture_output=True, text=True, cwd=folder
    )
    assert refused.returncode == 2, refused
    assert refused.stderr.count("\n") == 1, refused
    assert "pip install trueloop" in refused.stderr, refused


def use_trueloop(trueloop: Path, place: Path) -> None:
    """A run of one epoch with its report, its scores, and `check`."""
    run([str(trueloop), "train", "spiral", "--epochs", "1", "--run", str(place), "--quiet"])
    assert (place / "report.html").is_file(), "no report"
    run([str(trueloop), "evaluate", str(place)])
    found = subprocess.run(
        [str(trueloop), "check", "--no-cache", str(FAULTY)], capture_output=True, text=True
    )
    assert found.returncode == 1, found
    assert FAULT in found.stdout, found


def read_types(python: Path, place: Path) -> None:
    """mypy and, with npm on the PATH, pyright read a user's program against the installed types."""
    place.mkdir()
    shutil.copy2(PROGRAM, place)
    pip(python, "mypy")
    run([str(python), "-m", "mypy", "--strict", PROGRAM.name], cwd=place)
    if shutil.which("npm"):
        options = {
            "typeCheckingMode": "strict",
            "venvPath": str(python.parents[2]),
            "venv": python.parents[1].name,
            "include": [PROGRAM.name],
        }
        (place / "pyrightconfig.json").write_text(json.dumps(options))
        run(["npx", "--yes", "pyright"], cwd=place)


def in_pyodide(folder: Path, wheel: Path) -> Trial:
    """`check` in the Python of pyodide, with the wheels that it needs from PyPI."""
    place = folder / "pyodide"
    wheels = place / "wheels"
    wheels.mkdir(parents=True)
    run(["npm", "install", "--silent", "--no-fund", "--no-audit", "pyodide"], cwd=place)
    run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--dest", str(wheels), str(wheel)]
    )  # fmt: skip
    (place / "try.mjs").write_text(_PYODIDE)
    done = subprocess.run(
        ["node", "try.mjs", str(wheels), str(FAULTY)], cwd=place, capture_output=True, text=True
    )
    version = next((line for line in done.stdout.splitlines() if line.startswith("Python ")), "")
    name = f"{version} (pyodide)"
    works = FAULT in done.stdout and "status 1" in done.stdout
    return Trial("trueloop-check", name, "works" if works else f"failed: {done.stderr[-500:]}")


def pip(python: Path, *words: str) -> None:
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words])


def run(words: list[str], *, cwd: Path | None = None) -> None:
    """Run a command; its output is shown if it fails."""
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, words)


if __name__ == "__main__":
    sys.exit(main())
