"""Puts the lab's programs, which lie in examples/ to be opened, into the package as well."""

from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            place = Path(self.build_lib) / "trueloop" / "doctor" / "lab" / "programs"
            copytree(
                "examples/lab", place, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__")
            )


setup(cmdclass={"build_py": BuildPy})
