"""`trueloop replay BUNDLE`: re-run the recorded operations that produced a NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueloop.cli import FAILED, OK

if TYPE_CHECKING:
    from trueloop.doctor.live.replay.bundle import Replayed
    from trueloop.doctor.live.replay.bundle_format import SavedOperation

_EPILOG = """\
trueloop watch writes the folder when it finds TH101. A bundle contains tensors and a list of
torch's own operations, which are run on the CPU. It contains no code, and the program's source is
not needed. A bundle is checked before anything is run.

exit status: 0 reproduced; 1 not reproduced here; 2 not a bundle, or it cannot run on this machine

example:
  trueloop replay trueloop-nan-20240131-235959"""


def main(argv: Sequence[str]) -> int:
    """Re-run the operations and print the results; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop replay",
        usage="trueloop replay BUNDLE",
        description="Re-run the recorded operations that produced a NaN or an infinite loss or "
        "gradient.",
        epilog=_EPILOG,
    )
    parser.add_option(
        "bundle", metavar="BUNDLE", required=True, help="the folder that trueloop watch wrote"
    )
    given = parser.parse(argv)

    from trueloop.doctor.live.replay.bundle import replay

    replayed = replay(given.bundle)
    print("\n".join(_lines(replayed)))
    return OK if replayed.same else FAILED


def _lines(replayed: Replayed) -> list[str]:
    from trueloop.doctor.live.replay.allowed_ops import shown

    bundle = replayed.bundle
    path, line = bundle.place
    what = "loss" if bundle.what == "loss" else "gradient"
    lines = [f"{shown(path, 400)}:{line}: update {bundle.update}, whose {what} is {bundle.kind}"]
    lines += [
        f"  {kind} {shown(name)} contains {bad}".rstrip() for kind, name, bad in replayed.outside
    ]
    if replayed.first is not None:
        lines.append(f"  first: {_operation(*replayed.first)}")
    if bundle.rows:
        samples = f", samples {shown(bundle.samples, 400)}" if bundle.samples else ""
        lines.append(f"  rows of the batch: {shown(bundle.rows, 400)}{samples}")
    same = "reproduced" if replayed.same else "NOT reproduced: the results are different here"
    lines.append(f"re-ran {replayed.count:,} operations: {same}")
    return lines


def _operation(operation: SavedOperation, bad: str) -> str:
    from trueloop.doctor.live.replay.allowed_ops import shown

    where = node = line = ""
    if operation.module:
        where = f" in {shown(operation.module)} ({shown(operation.kind)})"
    if operation.node:
        node = f" for {shown(operation.node)}"
    if operation.line:
        line = f", at {shown(operation.line[0], 400)}:{operation.line[1]}"
    return f"{operation.name.removesuffix('.default')}{where}{node} returns {bad}{line}"
