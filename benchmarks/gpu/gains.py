"""What channels-last images, `--no-deterministic` and `--matmul tf32` bring.

The first two on the network of the task `images` (256 synthetic images of 64 × 64), in float32 and
bf16; the third on GPT-2's shape with half the layers, in float32.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from nanogpt_style import GPT
from torch import Tensor, nn

import trueloop
from gpu.gpt import sizes
from gpu.turns import Update, median_ratio, seconds_each
from trueloop.device import matmul_in
from trueloop.tasks.images.resnet import ResNet


class TorchOrder(ResNet):
    """The same network, on images in torch's own order of memory."""

    def forward(self, images: Tensor) -> Tensor:
        x = self.features((images.float() - self.mean) / self.std)
        logits: Tensor = self.classify(x.mean(dim=(2, 3)))
        return logits


def images(device: torch.device, quick: bool, kind: type[ResNet], precision: str) -> Update:
    torch.manual_seed(0)
    side, samples = (16, 4) if quick else (64, 256)
    network = kind(3, (side, side), 10, width=48, mean=[0.5] * 3, std=[0.25] * 3).to(device)
    if kind is ResNet:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    step = trueloop.Step(
        network,
        trueloop.optimizers.adamw(network, 1e-3),
        trueloop.supervised(nn.CrossEntropyLoss()),
        precision=precision,
    )
    pixels = torch.randint(256, (samples, 3, side, side), dtype=torch.uint8, device=device)
    labels = torch.randint(10, (samples,), device=device)
    return lambda: step((pixels, labels))


def text(device: torch.device, quick: bool) -> Update:
    torch.manual_seed(0)
    vocabulary, context, layers, width, heads, batch = sizes(quick)
    model = GPT(vocabulary, context, layers // 2, width, heads).to(device)
    step = trueloop.Step(
        model, trueloop.optimizers.adamw(model, 6e-4), lambda model, batch: model(*batch)
    )
    tokens = torch.randint(vocabulary, (2, batch, context), device=device)
    return lambda: step((tokens[0], tokens[1]))


def free() -> AbstractContextManager[Any]:
    """Within it cuDNN chooses by timing, and algorithms need not be deterministic."""
    return torch.backends.cudnn.flags(benchmark=True, deterministic=False, allow_tf32=True)


def within(update: Update, context: Callable[[], AbstractContextManager[Any]]) -> Update:
    def called() -> None:
        with context():
            update()

    return called


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    trueloop.seed_everything(0)
    rows = []
    count, rounds, warm = (1, 1, 1) if quick else (20, 5, 6)
    for precision in ("fp32", "bf16"):
        last = images(device, quick, ResNet, precision)
        ways = {
            "torch's order, deterministic": within(
                images(device, quick, TorchOrder, precision), nullcontext
            ),
            "channels-last": within(last, nullcontext),
            "channels-last, --no-deterministic": within(
                images(device, quick, ResNet, precision), free
            ),
        }
        found = seconds_each(ways, device, count=count, rounds=rounds, warm=warm)
        rows += _rows(f"images, {precision}", found)
    ways = {
        "fp32": within(text(device, quick), nullcontext),
        "tf32": within(text(device, quick), lambda: matmul_in("tf32", device)),
    }
    found = seconds_each(ways, device, count=count, rounds=rounds, warm=warm)
    torch.use_deterministic_algorithms(False)
    return rows + _rows("GPT, 6 layers", found)


def _rows(network: str, found: dict[str, list[float]]) -> list[dict[str, Any]]:
    first = next(iter(found))
    return [
        {
            "network": network,
            "way": name,
            "ms per update": round(statistics.median(values) * 1e3, 2),
            "speed, first = 1": round(median_ratio(found, first, name), 3),
        }
        for name, values in found.items()
    ]
