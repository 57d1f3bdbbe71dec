"""`trueloop export RUN --out FOLDER`: a run's model as such models are published."""

from __future__ import annotations

from collections.abc import Sequence

from trueloop.cli import OK
from trueloop.errors import ConfigError, RunError

DTYPES = ("fp32", "bf16", "fp16")


def main(argv: Sequence[str]) -> int:
    """Write the folder; the exit status."""
    from trueloop.cli.parser import Parser, path_from

    parser = Parser(
        "trueloop export",
        usage="trueloop export RUN --out FOLDER [options]",
        description="Write the best weights of a run of the task text as a folder that "
        "transformers loads: config.json, model.safetensors, tokenizer.json. The folder is either "
        "complete or absent.",
        epilog="example:\n  trueloop export runs/shakespeare --out shakespeare --dtype bf16",
    )
    parser.add_option("run", metavar="RUN", required=True, help="directory of the run")
    parser.add_option(
        "--out",
        type=path_from,
        metavar="FOLDER",
        required=True,
        help="folder to write, which must not exist",
    )
    parser.add_option(
        "--dtype",
        default="fp32",
        metavar="NAME",
        choices=tuple(DTYPES),
        help="dtype of the weights",
    )
    given = parser.parse(argv)
    if given.out is None:
        raise ConfigError("no place for the model: write --out FOLDER")
    if given.dtype not in DTYPES:
        raise ConfigError(f"--dtype {given.dtype} is unknown: write --dtype {' or '.join(DTYPES)}")
    if given.out.exists() or given.out.is_symlink():
        raise RunError(f"{given.out} exists: name a folder that is not there yet")

    from trueloop.cli._session import load_trained
    from trueloop.run import Run

    trained = load_trained(Run(given.run), "cpu")
    trained.task.export(trained.model, given.out, dtype=given.dtype)
    print(f"model   {given.out}")
    return OK
