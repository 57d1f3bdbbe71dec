"""The behaviour of torch and its neighbours, one file an area. Importing this registers all of
it."""

from __future__ import annotations

import importlib

AREAS = (
    "builtins",
    "dictionaries",
    "entry_points",
    "argument_parsers",
    "autograd_modes",
    "modules",
    "modes",
    "hooks",
    "optimizers",
    "tensor_functions",
    "extremes",
    "distributions",
    "parameters",
    "precision",
    "losses",
    "schedules",
    "data",
    "batch_means",
    "group_sums",
    "column_choices",
    "ignite",
    "transformers_trainer",
    "checkpoints",
    "whole_models",
    "pretrained_classes",
    "parsed_texts",
    "path_origins",
    "seeds",
    "callables",
    "ranks",
)


def register() -> None:
    """Import every area, once."""
    for area in AREAS:
        importlib.import_module(f"{__name__}.{area}")
