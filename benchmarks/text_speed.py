"""Training speed of a language model: ours, a loop like nanoGPT's, transformers' Trainer, a floor.

    python benchmarks/text_speed.py [--data tinyshakespeare.txt] [--threads N]

The GPT of nanoGPT, of 4 layers, 128 wide, 4 heads, in fp32, with AdamW (decay on matrices), its
gradients clipped to 1. Ours and nanoGPT's compute one function, which is checked first: the same
weights give the same logits.

- trueloop: `Step` and `Feed` over the text's contexts, the task's transformer and loss, AdamW fused
- nanoGPT: its loop and model (`nanogpt_style`), with the AdamW that it takes on a CPU, unfused;
  beside it with the fused one
- Trainer: transformers' GPT2LMHeadModel and Trainer, with the same ids in a map-style data set, and
  GPT-2's own GELU and biases
- floor: forward, backward and the fused AdamW of the task's transformer on one batch; nothing else

All in one process, in turns, every second round in the opposite order; a round times some updates
of each, after a few that are not timed. Figures are medians over rounds, ratios medians of each
round's own ratios. `--clock process` takes the processor's time instead of the wall clock's: for a
machine that does other things, and one thread.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from common import save_results, table
from nanogpt_style import GPT, make_optimizer, update
from torch import Tensor
from torch.utils.data import Dataset

import trueloop
from trueloop.tasks.text import Text

LAYERS, WIDTH, HEADS = 4, 128, 4
SIZES = ((64, 12), (256, 8))
"""Context and batch size: nanoGPT's for a CPU, and the tiny preset's."""
UNTIMED = 3
Run = Callable[[int], float]
"""Trains so many updates; their seconds."""


def task_on(path: Path, context: int) -> Text:
    options = Text.Options(
        context=context, layers=LAYERS, width=WIDTH, heads=HEADS, norm="layer",
        positions="learned", activation="gelu", qk_norm=False,
    )  # fmt: skip
    task = Text(options, data=path)
    task.splits()
    return task


CLOCKS = {"wall": time.perf_counter, "process": time.process_time}
clock = CLOCKS["wall"]


def timed(one: Callable[[], object], updates: int) -> float:
    for _ in range(UNTIMED):
        one()
    start = clock()
    for _ in range(updates):
        one()
    return clock() - start


_OUR_NAMES = {
    "wte": "embedding", "wpe": "position_embedding", "h": "blocks", "ln_f": "final_norm",
    "lm_head": "head", "ln_1": "attention_norm", "ln_2": "mlp_norm", "c_fc": "mlp.up",
    "attn.c_proj": "attention.output", "c_proj": "mlp.down",
}  # fmt: skip


def check_same_function(path: Path, context: int) -> None:
    """Put nanoGPT's weights into ours, and compare the losses of a batch."""
    task = task_on(path, context)
    theirs = GPT(task.tokenizer.vocab_size, context, LAYERS, WIDTH, HEADS)
    state = {}
    for name, value in theirs.state_dict().items():
        for there, here in _OUR_NAMES.items():
            name = name.replace(f"{there}.", f"{here}.", 1) if f".{there}." in f".{name}" else name
        if "c_attn" in name:
            for part, piece in zip(("query", "key", "value"), value.chunk(3), strict=True):
                state[name.replace("attn.c_attn", f"attention.{part}")] = piece
        else:
            state[name] = value
    model = task.model()
    model.load_state_dict(state)
    tokens, targets = torch.randint(task.tokenizer.vocab_size, (2, 4, context))
    with torch.no_grad():
        ours = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        torch.testing.assert_close(ours, theirs(tokens, targets), rtol=1e-6, atol=1e-6)


def ours(path: Path, context: int, batch_size: int) -> Run:
    task = task_on(path, context)
    splits = task.splits()
    model = task.model().train()
    optimizer = trueloop.optimizers.adamw(model, 1e-3, weight_decay=0.1)
    step = trueloop.Step(model, optimizer, task.loss_fn(), clip_norm=1.0)
    feed = trueloop.Feed(splits.train, batch_size, shuffle=True)

    def endless() -> Iterator[Any]:
        epoch = 0
        while True:
            yield from feed.epoch(epoch)
            epoch += 1

    batches = endless()
    return lambda updates: timed(lambda: float(step(next(batches)).loss.detach()), updates)


def floor(path: Path, context: int, batch_size: int) -> Run:
    task = task_on(path, context)
    model = task.model().train()
    optimizer = trueloop.optimizers.adamw(model, 1e-3, weight_decay=0.1)
    tokens, targets = torch.randint(task.tokenizer.vocab_size, (2, batch_size, context))

    def one() -> None:
        F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return lambda updates: timed(one, updates)


def by_hand(ids: Tensor, vocab: int, context: int, batch_size: int, *, fused: bool) -> Run:
    model = GPT(vocab, context, LAYERS, WIDTH, HEADS)
    optimizer = make_optimizer(model, fused=fused)
    return lambda updates: timed(lambda: update(model, optimizer, ids, batch_size, 1e-3), updates)


class Blocks(Dataset[dict[str, Tensor]]):
    """Consecutive contexts as the Trainer takes them: it moves the labels by one itself."""

    def __init__(self, ids: Tensor, context: int) -> None:
        self.rows = ids[: len(ids) // context * context].view(-1, context)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def trainer(
    ids: Tensor,
    vocab: int,
    context: int,
    batch_size: int,
    folder: str,
    size: tuple[int, int, int] = (LAYERS, WIDTH, HEADS),
) -> Run:
    layers, width, heads = size
    import transformers

    transformers.logging.set_verbosity_error()
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=vocab,
            n_positions=context,
            n_embd=width,
            n_layer=layers,
            n_head=heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    data = Blocks(ids, context)

    class Clock(transformers.TrainerCallback):  # type: ignore[misc]
        start = seconds = 0.0

        def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if state.global_step == UNTIMED:
                self.start = clock()

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            self.seconds = clock() - self.start

    def run(updates: int) -> float:
        clock = Clock()
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            max_steps=UNTIMED + updates,
            per_device_train_batch_size=batch_size,
            learning_rate=1e-3,
            weight_decay=0.1,
            adam_beta2=0.99,
            max_grad_norm=1.0,
            optim="adamw_torch_fused",
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            logging_steps=10,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        made = transformers.Trainer(
            model=model, args=arguments, train_dataset=data, callbacks=[clock]
        )
        made.remove_callback(transformers.PrinterCallback)
        made.train()
        return clock.seconds

    return run


def measure(path: Path, context: int, batch_size: int, given: Any, folder: str) -> dict[str, Any]:
    check_same_function(path, context)
    task = task_on(path, context)
    text = path.read_text(encoding="utf-8")
    ids = torch.tensor(task.encode(text[: int(0.9 * len(text))]))
    vocab = task.tokenizer.vocab_size
    runs: dict[str, Run] = {
        "trueloop": ours(path, context, batch_size),
        "nanoGPT's loop": by_hand(ids, vocab, context, batch_size, fused=False),
        "nanoGPT's loop, AdamW fused": by_hand(ids, vocab, context, batch_size, fused=True),
        "Trainer": trainer(ids, vocab, context, batch_size, folder),
        "floor": floor(path, context, batch_size),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(given.rounds):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            seconds[name].append(runs[name](given.updates))
    tokens = given.updates * batch_size * context
    found = {}
    for name in runs:
        ratios = [a / b for a, b in zip(seconds[name], seconds["trueloop"], strict=True)]
        found[name] = {
            "tokens per second": round(tokens / statistics.median(seconds[name])),
            "trueloop is faster by": round(statistics.median(ratios), 3),
        }
    return found


def main() -> None:
    global clock
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/tinyshakespeare.txt"))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    given = parser.parse_args()
    clock = CLOCKS[given.clock]
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for context, batch_size in SIZES:
            name = f"context {context}, batch {batch_size}"
            results[name] = measure(given.data.resolve(), context, batch_size, given, folder)
            print(f"\n{name}, {given.threads} threads")
            print(table([{"what": what, **row} for what, row in results[name].items()]), flush=True)
    print(save_results("text_speed", {"threads": given.threads, "clock": given.clock, **results}))


if __name__ == "__main__":
    main()
