"""`trueloop train TASK`: from options to a trained model, its run directory and its report."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from trueloop.cli import OK
from trueloop.cli._one_run import train_one


def main(argv: Sequence[str]) -> int:
    """Train; the exit status."""
    from trueloop.cli.config_yaml import as_yaml
    from trueloop.cli.options import settings_from, task_first

    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return OK
    settings = settings_from(*task_first(argv, "train"))
    if "print_config" in settings.stated:
        print(as_yaml(settings), end="")
        return OK
    if settings.run.repeats or (settings.run.folds and not settings.run.fold):
        from trueloop.cli._folds import train_all

        return train_all(settings)
    return train_one(settings)


def usage() -> str:
    """The tasks there are, each with the first line of its documentation."""
    from trueloop.tasks import READY_MADE, load

    lines = []
    for name in READY_MADE:
        says = (load(name).__doc__ or "").strip().splitlines()[0]
        lines += textwrap.wrap(
            f"{name:<14}{says}", 80, initial_indent="  ", subsequent_indent=" " * 16
        )
    return (
        "usage: trueloop train TASK [options]\n"
        "       trueloop train --config FILE [options]\n\n"
        "tasks:\n" + "\n".join(lines) + "\n"
        "  FILE.py:CLASS your own: a subclass of trueloop.Task\n\n"
        "  trueloop train TASK --help           the task's options\n"
        "  trueloop train TASK --print-config   the same as a file for --config\n\n"
        "example:\n  trueloop train table --data houses.csv --target price"
    )
