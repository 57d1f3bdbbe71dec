"""`trueloop lab`: experiments that test common advice about training loops."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop.cli import FAILED, OK
from trueloop.cli._out_folder import check_out_folder

if TYPE_CHECKING:
    from trueloop.doctor.lab.verdicts import MeasuredClaim

_EPILOG = """\
exit status: 0 every claim has a verdict; 1 a claim is undecided, or one of its programs failed;
2 a mistake in the command

example:
  trueloop lab --out crib-sheet
  trueloop lab --only clip-before-backward 7a"""


def main(argv: Sequence[str]) -> int:
    """Measure the claims and write their pages; the exit status."""
    from trueloop.cli.parser import Parser, path_from

    parser = Parser(
        "trueloop lab",
        usage="trueloop lab [options]",
        description="Test common advice about training loops by experiment. For each claim, a "
        "right and a wrong\nprogram run with five seeds; the results are a page per claim and a "
        "summary.",
        epilog=_EPILOG,
    )
    parser.add_option(
        "--out", type=path_from, default=Path("lab"), metavar="DIR", help="folder for the pages"
    )
    parser.add_option(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        unset="all",
        help="only these claims: names or numbers",
    )
    given = parser.parse(argv)
    check_out_folder(given.out)

    from trueloop.doctor.lab import claim_pages, running
    from trueloop.doctor.lab.claims import claims_named
    from trueloop.doctor.lab.verdicts import UNDECIDED

    claims = claims_named(given.only)
    out = Path(given.out).absolute()
    claim_pages.prepare(out)
    began = time.monotonic()
    try:
        measured = running.measure(claims, _print_verdict)
    except running.LabError as error:
        print(f"trueloop: error: {error}", file=sys.stderr)
        return FAILED
    page = claim_pages.write(out, measured)
    several = "" if len(measured) == 1 else "s"
    print(f"{len(measured)} claim{several} in {time.monotonic() - began:.0f} s: {page}")
    return FAILED if any(one.verdict == UNDECIDED for one in measured) else OK


def _print_verdict(one: MeasuredClaim) -> None:
    print(f"{one.claim.number:>3}  {one.verdict:<14}  {one.claim.title}", flush=True)
