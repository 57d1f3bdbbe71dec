"""Python imports this before a script: the generators get a seed, and at the end the file
`WATCH_PUBLIC_NOTES` gets a checksum of the weights after each update and the generators' states."""

from __future__ import annotations

import atexit
import json
import os
import random
import zlib
from typing import Any

_NOTES = os.environ.get("WATCH_PUBLIC_NOTES")


def _begin(notes: str) -> None:
    import numpy as np
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    process = os.getpid()
    updates, weights = 0, 0

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        nonlocal updates, weights
        updates += 1
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.is_sparse and parameter.dtype is torch.float32:
                    values = parameter.detach().contiguous().numpy()
                    weights = zlib.crc32(values.data, weights)

    def write() -> None:
        if os.getpid() != process:
            return
        state = repr((random.getstate(), np.random.get_state()[1].tolist())).encode()  # type: ignore[union-attr]
        drawn = zlib.crc32(torch.get_rng_state().numpy().data, zlib.crc32(state))
        with open(notes, "w") as file:
            json.dump({"updates": updates, "weights": weights, "random": drawn}, file)

    register_optimizer_step_post_hook(after_step)
    atexit.register(write)


if _NOTES:
    # Processes that the script starts are left alone.
    del os.environ["WATCH_PUBLIC_NOTES"]
    _begin(_NOTES)
