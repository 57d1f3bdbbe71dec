"""A GPT of 124M parameters in bf16: tokens per second and MFU, beside a loop written as nanoGPT's.

12 layers, 768 wide, 12 heads, context 1,024, 50,304 tokens, batches of 12: nanoGPT's GPT-2.

MFU is the share of the device's peak that the model's own arithmetic takes (Chowdhery et al.,
"PaLM", 2022, appendix B): tokens per second × (6 N + 12 L H Q T) / peak, with N parameters but
those of the positions, L layers, H heads of Q features and T tokens of context. Peaks are the
vendor's for dense bf16.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from nanogpt_style import GPT, get_batch, make_optimizer

import trueloop
from gpu.turns import WAYS, Update, median_ratio, seconds_each, stepping
from trueloop.tasks.text.context_windows import Contexts

PEAKS = {"H200": 989.4e12, "H100": 989.4e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165.2e12}
"""Floating-point operations per second by a part of the device's name (of SXM modules)."""
LR = 6e-4


def sizes(quick: bool) -> tuple[int, int, int, int, int, int]:
    """Vocabulary, context, layers, width, heads, batch."""
    return (65, 32, 2, 32, 2, 4) if quick else (50_304, 1024, 12, 768, 12, 12)


def make(device: torch.device, quick: bool) -> GPT:
    torch.manual_seed(0)
    return GPT(*sizes(quick)[:5]).to(device)


def ids(quick: bool) -> torch.Tensor:
    return torch.randint(sizes(quick)[0], (10_000 if quick else 10_000_000,))


def ours(device: torch.device, quick: bool, options: dict[str, Any]) -> Update:
    model, (_, context, *_, batch) = make(device, quick), sizes(quick)
    step = trueloop.Step(
        model,
        make_optimizer(model, fused=True),
        lambda model, batch: model(*batch),
        precision="bf16",
        clip_norm=1.0,
        **options,
    )
    text = Contexts(ids(quick).numpy(), context)
    return stepping(step, trueloop.Feed(text, batch, shuffle=True, drop_last=True, device=device))


def by_hand(device: torch.device, quick: bool, *, compiled: bool) -> Update:
    model, (_, context, *_, batch) = make(device, quick), sizes(quick)
    optimizer, text = make_optimizer(model, fused=True), ids(quick)
    forward: Any = torch.compile(model) if compiled else model

    def fetch() -> list[torch.Tensor]:
        pair = get_batch(text, batch, context)
        if device.type != "cuda":
            return list(pair)
        return [part.pin_memory().to(device, non_blocking=True) for part in pair]

    following = fetch()

    def update() -> None:
        nonlocal following
        for group in optimizer.param_groups:
            group["lr"] = LR
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = forward(*following)
        following = fetch()  # while the device computes
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def flops_per_token(model: GPT, quick: bool) -> float:
    _, context, layers, width, *_ = sizes(quick)
    count = sum(p.numel() for p in model.parameters()) - model.wpe.weight.numel()
    return 6 * count + 12 * layers * width * context


def peak(device: torch.device) -> float | None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return next((value for part, value in PEAKS.items() if part in name), None)


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    by_hand_compiled = "nanoGPT's loop, torch.compile(model)"
    updates = {name: ours(device, quick, options) for name, options in WAYS.items()}
    updates["nanoGPT's loop"] = by_hand(device, quick, compiled=False)
    updates[by_hand_compiled] = by_hand(device, quick, compiled=True)
    count, rounds = (2, 1) if quick else (10, 5)
    found = seconds_each(updates, device, count=count, rounds=rounds, warm=5)
    _, context, *_, batch = sizes(quick)
    flops, most = flops_per_token(make(device, quick), quick), peak(device)
    rows = []
    for name, values in found.items():
        rate = batch * context / statistics.median(values)
        rows.append(
            {
                "loop": name,
                "tokens per second": round(rate),
                "MFU": "?" if most is None else round(rate * flops / most, 4),
                "speed, nanoGPT's compiled loop = 1": round(
                    median_ratio(found, by_hand_compiled, name), 3
                ),
            }
        )
    return rows
