"""What a process imports before it forks others that watch a program each."""

from __future__ import annotations

import gc
import importlib
import pkgutil

gc.disable()  # until all is imported: it stays


def import_and_freeze() -> None:
    import torch._dynamo  # noqa: F401  (the first optimizer would, in every child)

    from trueloop.doctor import live
    from trueloop.doctor.live.patches.dynamo_skip import leave_to_python
    from trueloop.doctor.rules.loading import rules_for

    rules_for("L")
    for each in pkgutil.walk_packages(live.__path__, f"{live.__name__}."):
        if not each.name.endswith(".notebook"):
            importlib.import_module(each.name)
    leave_to_python()
    gc.freeze()  # else the first collection in each child copies what it looks at
    gc.enable()
