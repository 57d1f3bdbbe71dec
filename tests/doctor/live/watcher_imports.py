"""What a process imports before it forks others that watch a program each."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from contextlib import suppress

gc.disable()  # until all is imported: it stays


def import_and_freeze() -> None:
    import torch._dynamo  # (the first optimizer would, in every child)

    with suppress(ModuleNotFoundError):  # the first record_function would; an older torch has none
        import torch.profiler._cupti_monitor  # noqa: F401

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
