"""Running a program in this process as `python` itself would run it.

It is the real `__main__`: what it pickles, what `multiprocessing` starts from it and what its
threads and exit handlers do later find it in place. Nothing is put back afterwards.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any

from trueloop.doctor.live.frames import clean_stacks, user_frames
from trueloop.errors import ConfigError
from trueloop.files import NotAFileError, open_regular


class MissingModuleError(ConfigError):
    """The module does not exist, or it cannot be run."""


class Script:
    """`python NAME WORDS…`, or `python -m NAME WORDS…`.

    Raises `ConfigError` for a file that is not there or cannot be read.
    """

    def __init__(self, name: str, words: list[str], *, is_module: bool = False) -> None:
        self.name = name
        self.words = words
        self.is_module = is_module
        self._content = b""
        self._spec: ModuleSpec | None = None
        if not is_module:
            self._look_at_file()

    def _look_at_file(self) -> None:
        name = self.name
        if not name or "\0" in name:
            raise ConfigError(f"{name!r} is not a path: write the name of a script")
        if not os.path.exists(name):
            raise ConfigError(f"no such file: {name}: check the path")
        self._spec = PathFinder.find_spec("__main__", [os.path.abspath(name)])
        if self._spec is not None:
            return
        if os.path.isdir(name):
            raise ConfigError(f"{name} is a folder without a __main__.py: write a script's name")
        try:
            with open_regular(name) as file:
                self._content = file.read()
        except NotAFileError as error:
            raise ConfigError(f"{name} is {error.kind}: write the name of a script") from None
        except OSError as error:
            raise ConfigError(f"{name} cannot be read ({error.strerror}): check it") from None

    def run(self) -> None:
        """Run it to its end; whatever it raises is raised. Raises `MissingModuleError` before the
        program has begun."""
        self._set_path()
        sys.argv = ["-m" if self.is_module else self.name, *self.words]
        if self.is_module:
            spec, code = on_stage(self._find_module)
            sys.argv[0] = spec.origin or self.name
            names = _main_module(spec, spec.parent)
        elif self._spec is not None:
            code = _code_of(self._spec)
            names = _main_module(self._spec, "")
        else:
            path = os.path.join(os.getcwd(), self.name)
            names = _main_module(None, None)
            names["__file__"], names["__cached__"] = path, None
            names["__loader__"] = SourceFileLoader("__main__", path)
            code = compile(self._content, path, "exec", dont_inherit=True)
        on_stage(lambda: exec(code, names))

    def _set_path(self) -> None:
        """Its own folder in place of ours, as the first that modules are looked for in."""
        if self._spec is not None:
            first = os.path.abspath(self.name)
        elif self.is_module:
            first = os.getcwd()
        else:
            first = os.path.dirname(os.path.realpath(self.name))
        if not sys.flags.safe_path:
            sys.path[0] = first
        elif self._spec is not None:
            sys.path.insert(0, first)

    def _find_module(self) -> tuple[ModuleSpec, CodeType]:
        import runpy

        # Private, but what pdb and torchrun's peers use: the packages around it are imported here.
        details: Any = runpy
        try:
            _, spec, code = details._get_module_details(self.name, MissingModuleError)
        except MissingModuleError as error:
            message = f"{error}: check the name after -m"
            raise MissingModuleError(message) from None
        return spec, code


def _code_of(spec: ModuleSpec) -> CodeType:
    loader: Any = spec.loader
    code: CodeType = loader.get_code(spec.name)
    return code


def _main_module(spec: ModuleSpec | None, package: str | None) -> dict[str, Any]:
    """The names of a new `__main__`, as Python's own has them."""
    module = ModuleType("__main__")
    names = vars(module)
    names["__builtins__"] = builtins
    names["__package__"] = package
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    if spec is not None:
        names.update(
            __spec__=spec, __loader__=spec.loader, __file__=spec.origin, __cached__=spec.cached
        )
    sys.modules["__main__"] = module
    return names


def on_stage(act: Callable[[], Any]) -> Any:
    """Run the program's code; the code that is called from here is recognised by its caller."""
    clean_stacks.hide_callers(sys._getframe())
    if isinstance(act, FunctionType):
        user_frames.pass_over(act.__code__)
    return act()


def open_stage() -> None:
    """Make known to the watcher where the program's own frames begin."""
    user_frames.stage(on_stage.__code__)


def without_us(trace: TracebackType | None) -> TracebackType | None:
    """The traceback as it would be if Python had run the program."""
    shown = [trace] if trace is not None else []
    while shown and shown[-1].tb_next is not None:
        shown.append(shown[-1].tb_next)
    # One that does not even parse has no frame on the stage.
    own = [place for place, each in enumerate(shown) if _is_stage(each)] or [
        place for place, each in enumerate(shown) if _is_here(each)
    ]
    if own:
        shown = shown[own[0] + 1 :]
        while shown and (_is_here(shown[0]) or _file(shown[0]) == "<frozen runpy>"):
            del shown[0]  # Python's own search for a module
    shown = [each for each in shown if not user_frames.is_watching(each.tb_frame.f_code)]
    for each, inner in zip(shown, [*shown[1:], None], strict=False):
        each.tb_next = inner
    return shown[0] if shown else None


def _is_stage(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code is on_stage.__code__


def _is_here(trace: TracebackType) -> bool:
    return _file(trace) == __file__


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _all_of(error: BaseException | None, seen: list[BaseException]) -> list[BaseException]:
    """An exception, and those that Python shows with it."""
    if error is not None and not any(each is error for each in seen):
        seen.append(error)
        inner = getattr(error, "exceptions", ())
        group = inner if isinstance(inner, tuple) else ()
        for each in (error.__cause__, error.__context__, *group):
            if each is None or isinstance(each, BaseException):
                _all_of(each, seen)
    return seen


def show_as_python_would() -> None:
    """An exception on its way out is shown without the frames that run the program."""
    shown = sys.excepthook

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        for each in _all_of(error, []):
            each.__traceback__ = without_us(each.__traceback__)
        sys.last_traceback = trace = error.__traceback__
        shown(kind, error, trace)

    sys.excepthook = excepthook
