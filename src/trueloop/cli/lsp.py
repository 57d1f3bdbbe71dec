"""`trueloop lsp`: what `trueloop check` finds, in an editor, as one types."""

from __future__ import annotations

from collections.abc import Sequence

from trueloop.cli import OK
from trueloop.errors import MissingDependencyError

_EPILOG = """\
Editors start this command themselves and speak the Language Server Protocol with it on stdin and
stdout: docs/editors.md has the settings for some of them.

example:
  trueloop lsp --stdio"""


def main(argv: Sequence[str]) -> int:
    """Serve until the editor ends it; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop lsp",
        description="A language server: what `trueloop check` finds, in your editor, as you type.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="speak on stdin and stdout, as without it: many editors add it",
    )
    parser.parse(argv)
    try:
        import pygls  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "the language server needs pygls, which is not installed: pip install 'trueloop[lsp]'"
        ) from None
    from trueloop.doctor.language_server.handlers import serve

    serve()
    return OK
