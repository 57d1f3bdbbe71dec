"""`trueloop replay BUNDLE`: carry out again how a loss became NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueloop.cli import FAILED, OK

if TYPE_CHECKING:
    from trueloop.doctor.runtime.bundle import Replayed

_EPILOG = """\
The folder is written by trueloop watch when it finds TH101. What is carried out are operations of
torch; neither the program's source is needed nor any code of it run, and nothing is unpickled.

exit status: 0 it is as it was; 1 what is finite and what is not is different here; 2 no bundle, or
one that cannot be carried out here

example:
  trueloop replay trueloop-nan-20240131-235959"""


def main(argv: Sequence[str]) -> int:
    """Carry it out and tell; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop replay",
        description="Carry out again, operation by operation, how a loss or its gradient became "
        "NaN or infinite.",
        epilog=_EPILOG,
    )
    parser.add_argument("bundle", metavar="BUNDLE", help="the folder that watch wrote")
    given = parser.parse(argv)

    from trueloop.doctor.runtime.bundle import replay

    replayed = replay(given.bundle)
    print("\n".join(_lines(replayed)))
    return OK if replayed.same else FAILED


def _lines(replayed: Replayed) -> list[str]:
    content = replayed.content
    place = content["place"]
    found = content["found"]
    what = "loss" if found.get("what") == "loss" else "gradient"
    lines = [f"{place[0]}:{place[1]}: update {content['update']}, whose {what} is {found['kind']}"]
    lines += [f"  {kind} {name} holds {bad}".rstrip() for kind, name, bad in replayed.outside]
    if replayed.first is not None:
        lines.append(f"  first: {_operation(replayed.first)}")
    if found.get("rows"):
        samples = f", samples {found['samples']}" if found.get("samples") else ""
        lines.append(f"  rows of the batch: {found['rows']}{samples}")
    same = "as when it was watched" if replayed.same else "NOT as when it was watched"
    lines.append(f"carried out {replayed.count:,} operations again: {same}")
    return lines


def _operation(operation: dict[str, Any]) -> str:
    where = f" in {operation['module']} ({operation['kind']})" if operation["module"] else ""
    node = f" for {operation['node']}" if operation["node"] else ""
    line = ""
    if operation["line"]:
        path, number = operation["line"]
        line = f", at {path}:{number}"
    name = operation["name"].removesuffix(".default")
    return f"{name}{where}{node} gives {operation['bad']}{line}"
