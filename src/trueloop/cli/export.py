"""`trueloop export RUN --out FOLDER`: a run's model in forms that work without Trueloop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.cli import OK
from trueloop.cli._out_folder import check_out_folder
from trueloop.errors import ConfigError, RunError, nearest

if TYPE_CHECKING:
    from trueloop.cli._session import Trained

DTYPES = ("fp32", "bf16", "fp16")
PUBLISHED = "transformers"
FORMATS = ("python", "torch", "onnx", PUBLISHED)


def main(argv: Sequence[str]) -> int:
    """Write the folder; the exit status."""
    from trueloop.cli.parser import Parser, path_from

    parser = Parser(
        "trueloop export",
        usage="trueloop export RUN --out FOLDER [options]",
        description="Write the best weights of a run as a folder that works without Trueloop, and "
        "compare its outputs with the model's. python: model.safetensors and predict.py, a program "
        "with the preprocessing; torch: model.pt2 for torch.export; onnx: model.onnx; "
        "transformers: a language model that transformers loads. The folder is either complete or "
        "absent.",
        epilog="example:\n  trueloop export runs/houses --out app --format python,onnx",
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
        "--format",
        metavar="A,B",
        choices=FORMATS,
        help="what to write; default: transformers for a language model, else python",
    )
    parser.add_option(
        "--dtype",
        default="fp32",
        metavar="NAME",
        choices=tuple(DTYPES),
        help="dtype of the weights, for transformers",
    )
    given = parser.parse(argv)
    if given.out is None:
        raise ConfigError("no place for the model: write --out FOLDER")
    if given.dtype not in DTYPES:
        raise ConfigError(f"--dtype {given.dtype} is unknown: write --dtype {' or '.join(DTYPES)}")
    forms = None if given.format is None else _forms(given.format)
    if given.out.exists() or given.out.is_symlink():
        raise RunError(f"{given.out} exists: name a folder that is not there yet")

    check_out_folder(given.out)

    from trueloop.cli._session import load_trained
    from trueloop.run import Run

    _export(load_trained(Run(given.run), "cpu"), given.out, forms, given.dtype)
    return OK


def _export(trained: Trained, out: Path, forms: list[str] | None, dtype: str) -> None:
    is_text = trained.settings.task == "text"
    forms = forms or ([PUBLISHED] if is_text else ["python"])
    if forms == [PUBLISHED]:
        trained.task.export(trained.model, out, dtype=dtype)
        print(f"model   {out}")
        return
    if is_text and "python" in forms:
        raise ConfigError(
            "a language model is not exported as a program: write --format transformers, torch "
            "or onnx"
        )
    if dtype != "fp32":
        raise ConfigError(f"--dtype {dtype} is for --format transformers: leave it out")
    _write(trained, out, forms)


def _forms(text: str) -> list[str]:
    """The formats in the list that was given."""
    forms = [part.strip() for part in text.split(",")]
    for form in forms:
        if form not in FORMATS:
            raise ConfigError(f"--format {form!r} is unknown: {nearest(form, FORMATS)}")
    if PUBLISHED in forms and len(forms) > 1:
        raise ConfigError(
            f"--format {text}: write only transformers, and the others into a different folder"
        )
    return forms


def _write(trained: Trained, out: Path, forms: list[str]) -> None:
    from trueloop.tasks.exported import write_exported

    task = trained.task
    differences = write_exported(
        out, trained.model.eval(), _inputs(trained), task.state(), task.standalone(), forms
    )
    print(f"model   {out}")
    for name, apart in differences.items():
        print(f"{name} computes what the model does (largest difference {apart:.2g})")
    if "python" in forms:
        print(f"try     python {out / 'predict.py'}")


def _inputs(trained: Trained) -> Any:
    """Inputs of two samples: of the shapes that the task knows, or two of its data."""
    import torch

    found = trained.task.example_inputs(2)
    if found is not None:
        draws = torch.Generator().manual_seed(0)
        return tuple(
            torch.randn(each.shape, generator=draws, dtype=each.dtype)
            if each.is_floating_point()
            else torch.randint(0, 256, each.shape, generator=draws, dtype=each.dtype)
            if each.dtype == torch.uint8
            else torch.zeros_like(each)
            for each in found
        )
    from trueloop.cli._session import read_data
    from trueloop.feed import Feed

    _, splits = read_data(trained.settings)
    return next(iter(Feed(splits.val, 2)))[0]
