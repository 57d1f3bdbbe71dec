"""`trueloop report [RUN ...]`: one run's report again, or several runs on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trueloop.cli import OK
from trueloop.cli._latest import UNSET, run_or_latest
from trueloop.cli._out_folder import check_out_folder
from trueloop.errors import ConfigError


def main(argv: Sequence[str]) -> int:
    """Write the page and print where it is; the exit status."""
    from trueloop.cli.parser import Parser, path_from

    parser = Parser(
        "trueloop report",
        usage="trueloop report [RUN ...] [options]",
        description="Write the report of one run again, or compare several runs on one page.",
        epilog="example:\n  trueloop report runs/a runs/b --out compare.html",
    )
    parser.add_option("runs", nargs="*", metavar="RUN", unset=UNSET, help="directories of runs")
    parser.add_option(
        "--out",
        type=path_from,
        metavar="FILE",
        unset="compare.html, or RUN/one-file.html",
        help="page that compares several runs, or is one file",
    )
    parser.add_option(
        "--one-file",
        action="store_true",
        help="put all that the page needs into it, to mail it: 2 MB and the pictures",
    )
    given = parser.parse(argv)
    paths = given.runs or [run_or_latest(None, parser)]

    from trueloop.run import Run, compare, write_report

    if given.out is not None:
        check_out_folder(given.out)
    if len(paths) == 1 and (Path(paths[0]) / "folds.json").is_file():
        from trueloop.cli._folds import report_all

        print(report_all(Path(paths[0])))
        return OK
    runs = [Run(path) for path in paths]
    if len(runs) == 1:
        if given.one_file:
            page = given.out or runs[0].path / "one-file.html"
            if page.is_dir():
                raise ConfigError(f"--out {page} is a folder: name the page, {page / 'run.html'}")
            print(write_report(runs[0], one_file=page))
            return OK
        if given.out is not None:
            raise ConfigError(
                "--out is for comparing several runs; the report of one run is in its directory: "
                "leave out --out, or write --one-file"
            )
        print(write_report(runs[0]))
        return OK
    print(compare(runs, given.out or Path("compare.html"), one_file=given.one_file))
    return OK
