"""`trueloop watch SCRIPT`: run a program unchanged, and report the faults of its training.

The parser and the error handling of the other verbs stay out of the program's process: no library
is imported for it, no warning filter is set, no exception of the program's is caught.
"""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from trueloop.cli import FAILED, MISTAKE, OK, refuse_dashes
from trueloop.errors import ConfigError, UserError, nearest

if TYPE_CHECKING:
    from trueloop.doctor.config import Configs
    from trueloop.doctor.live.entry.script import Script
    from trueloop.doctor.live.session import Session, Watched

_EPILOG = """\
The program's output, files, weights and exit status do not change. At its
end, one report is printed to stderr, for this process, for those that it
starts with multiprocessing, and for torchrun's ranks.

exit status: the program's own; 2 a mistake in the command; with --exit-code
1 if errors or warnings were found and the program ended with 0; with
--fail-fast 1 if the program was stopped

example:
  trueloop watch train.py --epochs 3
  trueloop watch --format json --output found.json -m project.train
  torchrun --nproc-per-node 2 -m trueloop watch train.py"""
_OWN_STATUS = "; the exit status is the program's own (with --exit-code 1)"
_TAKE_VALUE = ("--format", "--output", "--select", "--ignore", "--first")
_SWITCHES = ("--exit-code", "--fail-fast", "--speed", "--help")


def main(argv: Sequence[str]) -> int:
    """Run the program and report; a mistake in the command is one line."""
    run = prepared(argv)
    return run if isinstance(run, int) else run()


def prepared(argv: Sequence[str]) -> WatchedProgram | int:
    """The watched program; or the exit status after a mistake or --help."""
    try:
        given, script = _parse(argv)
        return WatchedProgram(given, script)
    except UserError as error:
        return _fail(str(error))
    except SystemExit:  # argparse leaves this way after --help
        return OK


class WatchedProgram:
    """One program under the watcher, with the processes that it starts."""

    def __init__(self, given: Any, script: Script) -> None:
        # All that the end needs is imported now: the program may change folders and paths.
        from trueloop.doctor.live.processes.participants import Participants
        from trueloop.doctor.live.session import Session
        from trueloop.doctor.report import watched as formats

        if given.format not in formats.FORMATS:
            known = nearest(given.format, formats.FORMATS)
            raise ConfigError(f"unknown format {given.format!r}: {known}")
        self.given = given
        self.script = script
        configs = _configs(given)
        self.session: Session = Session(
            configs, first=given.first, fail_fast=given.fail_fast, speed=given.speed
        )
        self.output = _writable(given.output) if given.output is not None else None
        if os.environ.get("RANK", "0") != "0":
            self.session.bundles = ""
        elif self.output is not None:
            self.session.bundles = os.path.dirname(self.output)
        self.company: Participants = Participants(
            self.session,
            select=configs.select,
            ignore=configs.ignore,
            first=given.first,
            fail_fast=given.fail_fast,
            speed=given.speed,
        )
        self.cut = False
        self._is_told = False

    def __call__(self) -> int:
        from trueloop.doctor.live.entry.script import (
            MissingModuleError,
            open_stage,
            show_as_python_would,
        )
        from trueloop.doctor.live.processes.children import before_exit

        atexit.register(self.report)  # the first to be registered is the last to run
        before_exit(lambda status: self.report())
        open_stage()
        self.company.begin()
        try:
            self.script.run()
        except MissingModuleError as error:
            self._is_told = True
            self.company.leave()
            return _fail(str(error))
        except SystemExit as stop:
            self.cut = stop.code not in (None, OK)
            if not self.cut:
                return self.status()
            raise
        except BaseException as error:
            self.cut = True
            self.session.record_crash(error)
            atexit.register(self.session.explain_crash)  # the first to run
            show_as_python_would()
            raise
        return self.status()

    def status(self) -> int:
        """The exit status of a program that ended with 0."""
        if not self.session.is_here:
            return OK
        was_stopped = self.given.fail_fast and self.company.was_stopped()
        if not (self.given.exit_code or was_stopped):
            return OK
        # What Python does first at the end: the program's other threads may still be training.
        # `threading` has no public name for it, and does it only once.
        import threading

        shutdown: Callable[[], None] = vars(threading)["_shutdown"]
        shutdown()
        if was_stopped:
            return FAILED
        report = self.company.report(cut=self.cut)
        return FAILED if report is not None and report.alarms else OK

    def report(self) -> None:
        """Print the report, once, in the watched process and not in its children."""
        if self._is_told or not self.session.is_here:
            return
        self._is_told = True
        report = self.company.report(cut=self.cut)
        if report is not None:
            self._print(report)
        self.company.leave()

    def _print(self, report: Watched) -> None:
        if self.output is None:
            self._to_stderr(report)
            return
        try:
            with open(self.output, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self._text(report, None) + "\n")
        except OSError as error:
            self._to_stderr(report)
            _fail(f"{self.output} cannot be written ({error.strerror}): the report is above")

    def _to_stderr(self, report: Watched) -> None:
        # What is closed, by the program or by its reader, is Python's own to complain about.
        with suppress(OSError, ValueError):
            if sys.stdout is not None:
                sys.stdout.flush()
        with suppress(OSError, ValueError):
            if sys.__stderr__ is None:
                return
            sys.__stderr__.flush()
            try:
                sys.__stderr__.write(self._text(report, sys.__stderr__) + "\n")
                sys.__stderr__.flush()
            except (OSError, ValueError):
                # What is left in the buffer is ours: Python would fail to write it too, and say so
                # by the program's exit status.
                if sys.stderr is sys.__stderr__:
                    sys.stderr = None

    def _text(self, report: Watched, stream: Any) -> str:
        from trueloop.doctor.report import watched as formats
        from trueloop.doctor.report.terminal import Paint, paint_for

        if self.given.format == "json":
            return formats.as_json(report)
        paint = Paint() if stream is None else paint_for(stream)
        blocks = report.findings or report.memory or formats.shows_speed(report)
        lead = "\n" if stream is not None and blocks else ""
        own = report.alarms and not (self.given.exit_code or report.stopped)
        return lead + formats.as_text(report, paint) + (_OWN_STATUS if own else "")


def _writable(path: str) -> str:
    """The file's absolute path. Raises `ConfigError` unless a report can be written there."""
    if not path.strip() or "\0" in path:
        raise ConfigError(f"--output {path!r} is not a path: write the name of a file")
    whole = os.path.abspath(os.path.expanduser(path))
    is_new = not os.path.lexists(whole)
    # Without O_NONBLOCK, a FIFO that nobody reads would be waited for.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
    try:
        os.close(os.open(whole, flags, 0o666))
        if is_new:
            with suppress(FileNotFoundError):  # several ranks try it at once
                os.remove(whole)
    except OSError as error:
        raise ConfigError(
            f"--output {path} cannot be written ({error.strerror}): choose a different place"
        ) from None
    return whole


# ---------------------------------------------------------------------- the command


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(" ".join(message.split()))


def _parse(argv: Sequence[str]) -> tuple[Any, Script]:
    """The options of ours, and the program with what is its own."""
    from trueloop.doctor.live.entry.script import Script

    ours, name, words, is_module = _split(list(argv))
    refuse_dashes(ours)
    given = _parser().parse_args(ours)
    given.first = None if given.first is None else _count(given.first)
    if name is None:
        raise ConfigError("SCRIPT is missing: write trueloop watch SCRIPT, or -m MODULE")
    return given, Script(name, words, is_module=is_module)


def _split(argv: list[str]) -> tuple[list[str], str | None, list[str], bool]:
    """(our options, the program's name, what follows it, whether it is a module): everything
    after the name is the program's."""
    position = 0
    while position < len(argv):
        word = argv[position]
        if word == "-m" and position + 1 < len(argv):
            return argv[:position], argv[position + 1], argv[position + 2 :], True
        if word == "--":
            rest = argv[position + 1 :]
            return argv[:position], rest[0] if rest else None, rest[1:], False
        if not word.startswith("-"):
            return argv[:position], word, argv[position + 1 :], False
        option = word.partition("=")[0]
        if option == "-m":
            raise ConfigError("-m needs a module: write trueloop watch -m MODULE")
        if option not in (*_TAKE_VALUE, *_SWITCHES, "-h"):
            known = [each.lstrip("-") for each in (*_TAKE_VALUE, *_SWITCHES)]
            hint = nearest(option.lstrip("-"), known).replace("'", "")
            hint = hint.replace("did you mean ", "did you mean --")
            raise ConfigError(f"unknown option {option}: {hint}; the program's own follow its name")
        if option in _TAKE_VALUE and "=" not in word:
            position += 1
            if position == len(argv):
                raise ConfigError(f"{option} needs a value: write {option}=VALUE")
        position += 1
    return argv, None, [], False


def _parser() -> _Parser:
    parser = _Parser(
        "trueloop watch",
        usage="trueloop watch [options] SCRIPT [ARGS ...]\n"
        "       trueloop watch [options] -m MODULE [ARGS ...]",
        description="Run a program unchanged, watch it train, and report its faults.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="show this help and exit")
    parser.add_argument("--format", default="text", help="text or json (default: text)")
    parser.add_argument(
        "--output", metavar="FILE", help="write the report to FILE instead of stderr"
    )
    parser.add_argument("--select", metavar="CODES", help="only these rules: TL101,TL2 (all)")
    parser.add_argument("--ignore", metavar="CODES", help="not these rules")
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 1 if errors or warnings were found"
    )
    parser.add_argument(
        "--fail-fast", action="store_true", help="stop the program at the first error"
    )
    parser.add_argument(
        "--speed", action="store_true", help="print where the time goes, even for a short run"
    )
    parser.add_argument("--first", metavar="N", help="watch only the first N updates")
    return parser


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise ConfigError(f"--first must be a whole number from 1, not {text!r}: write --first 100")
    return count


def _configs(given: Any) -> Configs:
    from trueloop.doctor.config import Configs
    from trueloop.doctor.live.session import live_codes
    from trueloop.doctor.rules.selection import codes_of

    select = None if given.select is None else live_codes(_words(given.select), "--select")
    ignore = None if given.ignore is None else codes_of(_words(given.ignore), "--ignore")
    return Configs(select, ignore)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _fail(message: str) -> int:
    print(f"trueloop: error: {' '.join(message.split())}", file=sys.stderr)
    return MISTAKE
