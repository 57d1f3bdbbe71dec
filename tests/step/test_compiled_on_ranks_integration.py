"""torch.compile together with DDP and FSDP."""

from __future__ import annotations

import pytest
import torch
from test_sharded import CRITERION, OPTIMIZERS, batches, difference, make_net, train

from on_ranks import on_ranks
from trueloop import Step


def _compiled(parallel: str) -> tuple[float, int]:
    data = batches(4, 8, torch.float32)
    found = []
    for compile in (None, {"backend": "aot_eager"}):
        torch._dynamo.reset()
        model = make_net(torch.float32)
        step = Step(model, OPTIMIZERS["sgd"](model), CRITERION, compile=compile, parallel=parallel)
        found.append(train(step, data))
    assert torch._dynamo.utils.counters["frames"]["ok"] > 0
    return difference(*found), int(torch._dynamo.utils.counters["frames"]["ok"])


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_a_compiled_model(parallel: str) -> None:
    for error, frames in on_ranks(2, _compiled, parallel):
        assert error < 1e-6
        assert frames > 0
