"""LoRA: a style learned from 200 lines, and the memory that it takes beside training all weights.

    .venv/bin/python benchmarks/lora_style.py [--updates 800] [--data FILE]

A small transformer over bytes is trained on a text (tinyshakespeare), as the base model. Then
lines of a merchant's ledger, which a generator makes, are learned from 200 of them: by LoRA on four
layers of each block, and, beside it, by training all weights. Both are scored on 100 lines that
neither has seen. The memory of gradients and optimizer state is that of the tensors that are there
after a backward and an update; the resident memory is that of a fresh process which makes two
updates of the 124-million shape of GPT-2.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import save_results, table
from torch import Tensor, nn
from torch.nn import functional as F

import trueloop
from trueloop import lora, optimizers, schedules
from trueloop.tasks.text.context_windows import Contexts, WindowDataset
from trueloop.tasks.text.tokenizer import ByteTokenizer
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig, preset

DATA = Path(__file__).parents[2] / "shared/data/tinyshakespeare.txt"
LAYERS = ["query", "value", "up", "down"]
CONTEXT = 128


def ledger(count: int, seed: int) -> str:
    """Lines as of a merchant's book."""
    draw = random.Random(seed)
    goods = "salt wool iron pepper oil wax cloth silk tin wine".split()
    places = "Genoa Bruges Lisbon Danzig Tunis Acre Bergen Novgorod".split()
    lines = []
    for _ in range(count):
        amount, price = draw.randint(2, 400), draw.randint(1, 90)
        lines.append(
            f"[{draw.randint(1, 28):02}/{draw.randint(1, 12):02}] {draw.choice(places):<9}| "
            f"{draw.choice(goods):<7}| {amount:>4} x {price:>3} = {amount * price:>6} | "
            f"{draw.choice(('PAID', 'OWED', 'LOST'))}\n"
        )
    return "".join(lines)


def loss_fn(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
    tokens, targets = batch
    total = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
    return total / targets.numel(), torch.tensor(targets.numel())


def score(model: nn.Module, text: str) -> float:
    """Nats per byte over the whole text, in windows of the context."""
    windows = WindowDataset(ByteTokenizer().encode_array(text), CONTEXT)
    total = count = 0
    model.eval()
    with torch.no_grad():
        for begin in range(0, len(windows), 64):
            rows = np.arange(begin, min(begin + 64, len(windows)))
            tokens, targets = windows.get_batch(rows, 0)
            total += float(
                F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
            )
            count += int((targets != -100).sum())
    model.train()
    return total / count


def train(model: nn.Module, text: str, updates: int, lr: float) -> trueloop.Step:
    data = Contexts(ByteTokenizer().encode_array(text), CONTEXT)
    feed = trueloop.Feed(data, 16, shuffle=True)
    schedule = schedules.warmup_cosine("5%")
    optimizer = optimizers.adamw(model, lr, weight_decay=0.01)
    step = trueloop.Step(model, optimizer, loss_fn, schedule=schedule, clip_norm=1.0)
    epochs = -(-updates // len(feed))
    step.plan(epochs=epochs, batches=len(feed))
    for epoch in range(epochs):
        for batch in feed.epoch(epoch):
            step(batch)
        step.end_epoch()
    return step


def state_bytes(step: trueloop.Step, vocabulary: int = 256) -> dict[str, int]:
    """Of gradients and optimizer state, by the tensors that are there."""
    tokens = torch.randint(0, vocabulary, (1, 33))
    loss_fn(step.model, (tokens[:, :-1], tokens[:, 1:]))[0].backward()
    gradients = [p.grad for p in step.model.parameters() if p.grad is not None]
    state = [
        part
        for parts in step.optimizer.state.values()
        for part in parts.values()
        if isinstance(part, Tensor)
    ]
    step.optimizer.zero_grad()
    return {
        "trained parameters": sum(p.numel() for p in step.model.parameters() if p.requires_grad),
        "bytes of gradients": sum(part.nbytes for part in gradients),
        "bytes of optimizer state": sum(part.nbytes for part in state),
    }


@torch.no_grad()
def merging(model: nn.Module) -> dict[str, float]:
    """Merge the adapters; how far the logits are from those before, in float32 and in float64, and
    how far float32 is from float64 without any merging."""
    tokens = torch.randint(0, 256, (4, CONTEXT))
    exact = copy.deepcopy(model.eval()).double()
    unmerged, wanted = model(tokens), exact(tokens)
    merged, merged_exact = lora.merge(model)(tokens), lora.merge(exact)(tokens)
    return {
        "largest logit": float(wanted.abs().max()),
        "largest difference, float32": float((merged - unmerged).abs().max()),
        "largest difference, float64": float((merged_exact - wanted).abs().max()),
        "float32 from float64, unmerged": float((unmerged - wanted).abs().max()),
        "float32 from float64, merged": float((merged - wanted).abs().max()),
    }


def one_update(method: str) -> dict[str, float]:
    """In a process of its own: peak resident memory of one update of a GPT-2 of 124 million."""
    torch.manual_seed(0)
    model = Transformer(preset("gpt2-124m", 50257))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if method == "lora":
        lora.apply(model, LAYERS)
    step = trueloop.Step(model, optimizers.adamw(model, 1e-4), loss_fn)
    tokens = torch.randint(0, 50257, (1, 65))
    for _ in range(2):
        step((tokens[:, :-1], tokens[:, 1:]))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    facts = {"model made, MiB": round(before), "peak, MiB": round(after)}
    return facts | state_bytes(step, 50257)


def measured(method: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one-update", method]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--updates", type=int, default=800, help="of the base model")
    parser.add_argument("--one-update", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.one_update:
        print(json.dumps(one_update(given.one_update)))
        return
    torch.manual_seed(0)
    text = given.data.read_text("utf-8")
    config = TransformerConfig(vocab_size=256, context=CONTEXT, layers=4, width=128, heads=4)
    base = Transformer(config)
    begun = time.process_time()
    train(base, text[: int(0.9 * len(text))], given.updates, 2e-3)
    seconds = time.process_time() - begun
    own = score(base, text[int(0.9 * len(text)) :][:50_000])
    learned, held_out = ledger(200, 0), ledger(100, 1)
    rows = [{"model": "base", "ledger, nats/byte": round(score(base, held_out), 3)}]
    results: dict[str, Any] = {"base updates": given.updates, "base seconds": round(seconds)}
    results["base nats/byte on its own text"] = round(own, 3)
    for method, lr in (("lora", 5e-3), ("all weights", 1e-3)):
        torch.manual_seed(1)
        model = copy.deepcopy(base)
        if method == "lora":
            lora.apply(model, LAYERS, rank=8, alpha=16.0)
        step = train(model, learned, 200, lr)
        facts = state_bytes(step)
        if method == "lora":
            results["merged logits"] = merging(model)
        rows.append(
            {"model": method, "ledger, nats/byte": round(score(model, held_out), 3), **facts}
        )
    names = dict.fromkeys(name for row in rows for name in row)
    print(table([{name: row.get(name, "") for name in names} for row in rows]))
    print(json.dumps(results, indent=2))
    memory = {method: measured(method) for method in ("lora", "all weights")}
    print(table([{"GPT-2, 124M": method, **facts} for method, facts in memory.items()]))
    path = save_results("lora_style", {**results, "style": rows, "one update of GPT-2": memory})
    print(f"results in {path}")


if __name__ == "__main__":
    main()
