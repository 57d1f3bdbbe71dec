"""What processes of the tests import before they fork, and work that each fork would do again."""

from __future__ import annotations

import gc
import importlib
import linecache
import pkgutil
import platform
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

COMMAND = (
    "attr", "docstring_parser", "jinja2", "jsonargparse", "matplotlib.figure", "plotly.offline",
    "polars", "PIL.ImageDraw", "PIL.ImageOps", "rich._emoji_codes", "rich.progress", "tomllib",
    "torch.profiler", "torch.profiler._cupti_monitor", "torch.utils.flop_counter",
    "torch.utils.serialization.config",
    "trueloop.checkpoint", "trueloop.cli._doctor", "trueloop.cli._training",
    "trueloop.cli.train", "trueloop.doctor.live.session", "trueloop.loop",
    "trueloop.optimizers", "trueloop.run", "trueloop.run.rank_log", "trueloop.tasks",
    "trueloop.tasks.spiral",
)  # fmt: skip
"""What nearly every command imports."""
RANKS = (
    "torch.distributed.fsdp", "torchmetrics", "trueloop.checkpoint.dcp",
    "trueloop.cli._segments", "trueloop.cli._ranks", "trueloop.ranks",
)  # fmt: skip
"""And what ranks and the processes of `trueloop verify-resume` do."""
_WATCHED = ("checkpoint", "cli", "evaluation", "feed", "loop", "run", "step", "tasks")
"""The rooms whose loops the doctor finds on the stack: it parses their files once in a process."""

_SEEDS = (
    "_compile.py", "_dynamo/eval_frame.py", "cuda/__init__.py", "cuda/random.py",
    "mtia/__init__.py", "random.py", "xpu/__init__.py", "xpu/random.py",
)  # fmt: skip
"""`torch.manual_seed` keeps for each kind of GPU where it was called from, with lines of these."""


def warm(modules: Iterable[str]) -> None:
    gc.disable()  # all that is made here stays
    for module in ("torch", "torch._dynamo", *modules):  # the first optimizer imports dynamo
        with suppress(ModuleNotFoundError):  # what an older torch has not got
            importlib.import_module(module)
    if "trueloop.doctor.live.session" in modules:
        _warm_doctor()
        _warm_command()
    import torch

    for name in _SEEDS:
        linecache.getlines(str(Path(torch.__file__).parent / name))
    torch.set_num_threads(1)
    gc.freeze()  # else the first collection in each child copies what it looks at
    gc.enable()


def _warm_command() -> None:
    """What `trueloop train` does once in a process: it asks what the machine is, reads the
    docstrings of the options, and compiles the templates of the report."""
    from trueloop.cli.options import train_parser
    from trueloop.run.html_page import templates
    from trueloop.tasks import load

    platform.platform()
    train_parser("spiral", load("spiral"))
    for name in templates().list_templates(extensions=["j2"]):
        templates().get_template(name)


def _warm_doctor() -> None:
    from PIL import Image

    import trueloop
    from trueloop.doctor import live
    from trueloop.doctor.live.frames import source_map
    from trueloop.doctor.live.patches.dynamo_skip import leave_to_python
    from trueloop.doctor.rules.loading import rules_for
    from trueloop.doctor.static import check_text

    Image.init()
    rules_for("L")
    check_text("import torch\n", "train.py")
    for each in pkgutil.walk_packages(live.__path__, f"{live.__name__}."):
        if not each.name.endswith(".notebook"):
            importlib.import_module(each.name)
    leave_to_python()
    home = Path(trueloop.__file__).parent
    for room in _WATCHED:
        for path in (home / room).glob("*.py"):
            source_map.source_of(str(path))
