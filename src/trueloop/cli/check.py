"""`trueloop check PATH…`: silent training bugs found in source."""

from __future__ import annotations

import io
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueloop.cli import FAILED, MISTAKE, OK
from trueloop.errors import ConfigError, nearest

if TYPE_CHECKING:
    from trueloop.doctor.config import Configs
    from trueloop.doctor.static.checking import CheckResult
    from trueloop.doctor.static.fixes.fix_files import FixedFile
    from trueloop.doctor.static.inputs.cache import Cache

FORMATS = ("text", "json", "sarif", "github")
_EPILOG = """\
exit status: 0 no findings, or only advice; 1 errors or warnings, and with --strict files that were
not read to their end; 2 a mistake in the command or the configuration, or no findings but files
that could not be checked

example:
  trueloop check train.py models/
  trueloop check . --select TL1,TL2 --format sarif > trueloop.sarif
  trueloop check . --diff"""


def main(argv: Sequence[str]) -> int:
    """Check and report; the exit status."""
    given = _parse(argv)
    if given.format not in FORMATS:
        raise ConfigError(f"unknown format {given.format!r}: {nearest(given.format, FORMATS)}")
    if given.diff and given.format != "text":
        raise ConfigError(f"--diff prints a diff, not {given.format}: leave out one of them")

    from trueloop.doctor.static.checking import check

    _take_any_character()
    configs, cache = _configs(given), _cache(given)

    def checked() -> CheckResult:
        return check(
            given.paths,
            configs,
            force_exclude=given.force_exclude,
            jobs=given.jobs,
            cache=cache,
        )

    outcome = checked()
    mended = None
    if given.fix or given.diff:
        from trueloop.doctor.static.fixes.fix_files import mend

        mended = mend(outcome, configs, write=given.fix)
        if given.fix and mended.fixed:
            outcome = checked()
        outcome.problems += mended.problems
    _print_findings(outcome, given, mended)
    if any(finding.severity != "advice" for finding in outcome.findings):
        return FAILED
    if outcome.problems:
        return MISTAKE
    return FAILED if given.strict and outcome.unread else OK


def _parse(argv: Sequence[str]) -> Any:
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop check",
        usage="trueloop check PATH [PATH ...] [options]",
        description="Find silent training bugs in Python files, notebooks and Python blocks "
        "of Markdown.\nThe code is read, not run.",
        epilog=_EPILOG,
    )
    parser.add_option("paths", nargs="+", metavar="PATH", required=True, help="files and folders")
    parser.add_option("--select", metavar="CODES", unset="all", help="only these rules: TL101,TL2")
    parser.add_option("--ignore", metavar="CODES", help="not these rules")
    parser.add_option("--exclude", metavar="PATTERNS", help="not these files: third_party,*_pb2.py")
    parser.add_option(
        "--format",
        default="text",
        metavar="NAME",
        choices=tuple(FORMATS),
        help="how findings are printed",
    )
    parser.add_option("--diff", action="store_true", help="print what --fix would change")
    parser.add_option(
        "--fix", action="store_true", help="make the edits that are safe, in .py files"
    )
    parser.add_option(
        "--strict", action="store_true", help="exit with 1 if a file was not read to its end"
    )
    parser.add_option(
        "--jobs", type=_jobs, metavar="N", unset="one per processor", help="processes"
    )
    parser.add_option("--no-cache", action="store_true", help="do not use the cache")
    parser.add_option(
        "--force-exclude", action="store_true", help="skip excluded files even if named"
    )
    return parser.parse(argv)


def _jobs(text: Any) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise ArgumentTypeError(
            f"--jobs must be a whole number from 1, not {text!r}: write --jobs 4"
        )
    return count


def _configs(given: Any) -> Configs:
    from trueloop.doctor.config import Configs
    from trueloop.doctor.rules.selection import codes_of

    select = None if given.select is None else codes_of(_words(given.select), "--select")
    ignore = None if given.ignore is None else codes_of(_words(given.ignore), "--ignore")
    exclude = None if given.exclude is None else tuple(_words(given.exclude))
    if select is not None and not select:
        raise ConfigError("--select names no rule: write codes such as TL101,TL2")
    return Configs(select, ignore, exclude)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _cache(given: Any) -> Cache | None:
    from trueloop.doctor.static.inputs.cache import Cache, cache_folder

    return None if given.no_cache else Cache(cache_folder())


def _print_findings(outcome: CheckResult, given: Any, mended: FixedFile | None) -> None:
    """Findings on stdout; what could not be checked, or not to its end, line by line on stderr."""
    from trueloop.doctor.report.locations import problem_line
    from trueloop.doctor.report.terminal import Paint, as_text, paint_for, printable, summary

    if given.diff:
        assert mended is not None
        print("".join(mended.diffs), end="")
        print(_fixed_line(mended, done=given.fix), file=sys.stderr)
        print(summary(outcome), file=sys.stderr)
    elif given.format == "json":
        from trueloop.doctor.report.json_object import as_json

        print(as_json(outcome, None if mended is None else mended.fixed))
    elif given.format == "sarif":
        from trueloop.doctor.report.sarif import as_sarif

        print(as_sarif(outcome))
    elif given.format == "github":
        from trueloop.doctor.report.github import as_github

        if outcome.findings or outcome.problems:
            print(as_github(outcome))
    else:
        for finding in mended.fixed if mended is not None else []:
            name = printable(outcome.name(finding.place.path))
            print(f"fixed {name}:{finding.place.line}  {finding.code}  {finding.name}")
        if mended is not None:
            print(_fixed_line(mended, done=True) + "\n")
        paint = Paint() if sys.stdout is None else paint_for(sys.stdout)
        print(as_text(outcome, paint))
    lines = [problem_line(outcome, problem) for problem in outcome.problems]
    lines += [problem_line(outcome, unread) for unread in outcome.unread]
    for line in lines:
        print(printable(line), file=sys.stderr)


def _fixed_line(mended: FixedFile, *, done: bool) -> str:
    count = len(mended.fixed)
    if not count:
        return "no finding has a safe fix"
    files = len({finding.place.path for finding in mended.fixed})
    what = f"{count} finding{'s' * (count != 1)} in {files} file{'s' * (files != 1)}"
    return f"fixed {what}" if done else f"--fix would fix {what}"


def _take_any_character() -> None:
    """Escape characters that the terminal's or pipe's encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
