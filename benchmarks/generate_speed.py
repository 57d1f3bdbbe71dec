"""Tokens per second of `generate` beside transformers' own, with the same shapes: about 4 minutes.

    python benchmarks/generate_speed.py

Random weights of the tiny and the small preset (as a Llama, which transformers calls the same),
greedy, prompts of 16 tokens, batches of 1 and 16, one thread and two:

- transformers: `LlamaForCausalLM.generate`, greedy, with its default cache
- trueloop: `generate`, greedy; and sampled, with temperature 0.8 and top-k 40
- floor: the model's forward with the cache alone, in a bare loop of argmax and nothing else
- trueloop's floor: the same loop over what `generate` calls in the model's place

Each round runs all of them one after the other, so that the machine's drift meets all; the figures
are medians over rounds, the ratios medians of each round's own ratios. `--compile` also measures
one decoding step compiled by torch.compile, and how long that compiling takes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from common import save_results, table
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from trueloop.generate import generate
from trueloop.tasks.text.decoding import Decoding
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig, preset

PROMPT, VOCABULARY = 16, 65
NEW = {"tiny": 120, "small": 40}


def llama(config: TransformerConfig) -> LlamaForCausalLM:
    """transformers' model of the same shape, without a token that would end a text."""
    shape = LlamaConfig(
        vocab_size=config.vocab_size,
        max_position_embeddings=config.context,
        hidden_size=config.width,
        intermediate_size=config.hidden_features,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.n_kv_heads,
        tie_word_embeddings=config.tied,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(shape).eval()


def bare_loop(model: Any, new_cache: Any, prompt: Tensor, new: int) -> Callable[[], None]:
    @torch.inference_mode()
    def run() -> None:
        cache = new_cache(len(prompt), PROMPT + new)
        tokens = prompt
        for _ in range(new):
            tokens = model(tokens, cache=cache)[:, -1].argmax(-1)[:, None]

    return run


def contenders(name: str, batch: int) -> dict[str, Callable[[], Any]]:
    config = preset(name, VOCABULARY)
    model, theirs, new = Transformer(config).eval(), llama(config), NEW[name]
    prompt = torch.randint(1, VOCABULARY, (batch, PROMPT), generator=torch.Generator())
    mask = torch.ones_like(prompt)
    with torch.inference_mode():
        short = Decoding(model)
    sampled = {"temperature": 0.8, "top_k": 40}
    return {
        "transformers": lambda: theirs.generate(
            prompt, attention_mask=mask, max_new_tokens=new, do_sample=False
        ),
        "trueloop": lambda: generate(model, prompt, max_new_tokens=new, temperature=0),
        "trueloop, sampled": lambda: generate(model, prompt, max_new_tokens=new, **sampled),
        "floor": bare_loop(model, model.new_cache, prompt, new),
        "trueloop's floor": bare_loop(short, model.new_cache, prompt, new),
    }


def measure(name: str, batch: int, rounds: int) -> list[dict[str, Any]]:
    runs, tokens = contenders(name, batch), NEW[name] * batch
    seconds: dict[str, list[float]] = {each: [] for each in runs}
    for turn in range(rounds + 1):
        for each, run in runs.items():
            started = time.perf_counter()
            run()
            if turn:  # the first round warms up
                seconds[each].append(time.perf_counter() - started)
    base = seconds["transformers"]
    return [
        {
            "preset": name,
            "batch": batch,
            "threads": torch.get_num_threads(),
            "loop": each,
            "tokens per second": round(tokens / statistics.median(values)),
            "µs per step": round(statistics.median(values) / NEW[name] * 1e6),
            "transformers = 1": round(
                statistics.median(p / q for p, q in zip(base, values, strict=True)), 2
            ),
        }
        for each, values in seconds.items()
    ]


def compiled_step(name: str) -> dict[str, Any]:
    """What compiling the step of one row would give, any length of the cache in one program."""
    model = Transformer(preset(name, VOCABULARY)).eval()
    short, steps = torch.compile(model, dynamic=True), 50
    tokens = torch.ones(1, 1, dtype=torch.long)

    def loop(call: Any) -> float:
        cache = model.new_cache(1, PROMPT + steps)
        model(tokens.expand(1, PROMPT), cache=cache)
        started = time.perf_counter()
        for _ in range(steps):
            call(tokens, cache=cache)
        return (time.perf_counter() - started) / steps

    with torch.inference_mode():
        started = time.perf_counter()
        loop(short)
        compiling = time.perf_counter() - started
        best = {
            each: min(loop(call) for _ in range(5))
            for each, call in (
                ("compiled", short),
                ("module", model),
                ("decoding", Decoding(model)),
            )
        }
    microseconds = {f"{each}, µs per step": round(v * 1e6) for each, v in best.items()}
    return {"preset": name, "first 50 steps compiled, s": round(compiling, 1), **microseconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="measure a compiled step as well")
    parser.add_argument("--presets", nargs="+", choices=list(NEW), default=list(NEW))
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for name in options.presets:
            for batch in (1, 16):
                rows += measure(name, batch, options.rounds)
    print(table(rows))
    goals = {
        f"{row['preset']}, batch 1, threads {row['threads']}: trueloop over transformers "
        "(goal for tiny: at least 2.5)": row["transformers = 1"]
        for row in rows
        if row["batch"] == 1 and row["loop"] == "trueloop"
    }
    print(*(f"{name}: {value}" for name, value in goals.items()), sep="\n")
    results = {"rows": rows, "goals": goals, "rounds": options.rounds}
    if options.compile:
        torch.set_num_threads(1)
        results["compiled"] = [compiled_step("tiny")]
        print(table(results["compiled"]))
    save_results("generate_speed", results)


if __name__ == "__main__":
    main()
