"""The device of these tests. On a machine without a GPU they are skipped; with
TRUELOOP_TEST_DEVICE=cpu they run there, which shows that they themselves work."""

from __future__ import annotations

import os

import pytest
import torch

DEVICE = torch.device(os.environ.get("TRUELOOP_TEST_DEVICE", "cuda"))
IS_CUDA = DEVICE.type == "cuda"
needs_device = pytest.mark.skipif(
    IS_CUDA and not torch.cuda.is_available(), reason="needs a CUDA device"
)
needs_cuda = pytest.mark.skipif(
    not IS_CUDA or not torch.cuda.is_available(), reason="needs a CUDA device"
)
