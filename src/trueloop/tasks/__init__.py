"""The ready-made tasks by name, and how to find one of the user's own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType

from trueloop.errors import ConfigError, nearest, nearest_path
from trueloop.files import special_kind
from trueloop.tasks import own
from trueloop.tasks.base import PredictInput, Splits, Task
from trueloop.tasks.own_class import check_options
from trueloop.tasks.recipe import Recipe

__all__ = ["READY_MADE", "PredictInput", "Recipe", "Splits", "Task", "load"]

READY_MADE = {
    "spiral": "trueloop.tasks.spiral:Spiral",
    "digits": "trueloop.tasks.digits:Digits",
    "table": "trueloop.tasks.table:Table",
    "images": "trueloop.tasks.images:Images",
    "text": "trueloop.tasks.text:Text",
}
"""Name of each ready-made task and where its class is; imported only when asked for."""


def load(name: str) -> type[Task]:
    """The task's class: a ready-made one by its name, or the user's own as `FILE.py:CLASS`.

    The user's file runs as a module of `trueloop.tasks.own`, once per call, with its folder at the
    end of `sys.path`, so that it can import its neighbours.

    Args:
        name: one of `READY_MADE`, or `FILE.py:CLASS`.

    Returns:
        The class.

    Raises:
        ConfigError: an unknown name, a missing file or class, a file that fails when imported, a
            class that is not a `Task`, or an option of it without a type or a default.
    """
    if name in READY_MADE:
        module, _, class_name = READY_MADE[name].partition(":")
        found: type[Task] = getattr(importlib.import_module(module), class_name)
        return found
    file, colon, class_name = name.rpartition(":")
    if name.endswith(".py"):
        raise ConfigError(f"{name} names no class: write {name}:CLASS, e.g. {name}:MyTask")
    if not colon or not file.endswith(".py"):
        raise ConfigError(
            f"unknown task {name!r}: {nearest(name, READY_MADE)} (your own task is FILE.py:CLASS)"
        )
    return _class_in(_import_file(Path(file)), class_name, Path(file))


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        if kind := special_kind(path):
            raise ConfigError(f"{path} is {kind}: name a Python file before the colon")
        remedy = nearest_path(path, "check the path before the colon")
        raise ConfigError(f"no file {path}: {remedy}")
    path = path.resolve()
    name = _importable_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look a class's module up by name.
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(_import_failure(path, error)) from error
    return module


def _importable_name(path: Path) -> str:
    """The name of the file's module: one by which worker processes can import it too, unless that
    would be ambiguous with a file that was loaded before it."""
    name = f"{own.__name__}.{path.stem}"
    loaded = [m.__file__ for n, m in sys.modules.items() if n.startswith(f"{own.__name__}.")]
    others = [Path(file) for file in loaded if file and Path(file).parent != path.parent]
    if any(other.name == path.name or (path.parent / other.name).exists() for other in others):
        return f"{name}_{zlib.crc32(str(path).encode()):08x}"
    own.add(path.parent)
    return name


def _import_failure(path: Path, error: BaseException) -> str:
    """Where in the user's file the import failed and why, in one line."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    where = str(path) if line is None else f"{path}, line {line}"
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    reason = " ".join(f"{type(error).__name__}: {text}".split()).removesuffix(":")
    return f"{where}: {reason}: fix the file, then try `python {path.name}`"


def _class_in(module: ModuleType, class_name: str, path: Path) -> type[Task]:
    tasks = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Task)
        and value.__module__ == module.__name__
    }
    found = getattr(module, class_name, None)
    if found is None:
        hint = nearest(class_name, tasks) or "write `class MyTask(trueloop.Task)` there"
        raise ConfigError(f"{path} has no class {class_name!r}: {hint}")
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise ConfigError(
            f"{class_name} in {path} is not a task: derive it from trueloop.Task, "
            f"`class {class_name}(trueloop.Task)`"
        )
    check_options(found)
    return found
