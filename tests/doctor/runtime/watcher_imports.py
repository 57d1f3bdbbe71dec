"""What a process imports before it forks others that watch a program each."""

from __future__ import annotations

import gc
import importlib
import pkgutil

import torch._dynamo  # noqa: F401  (the first optimizer would, in every child)

from trueloop.doctor.rules.loading import rules_for
from trueloop.doctor.runtime import probes, seams


def import_and_freeze() -> None:
    rules_for("L")
    for package in (probes, seams):
        for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(each.name)
    gc.freeze()  # else the first collection in each child copies what it looks at
