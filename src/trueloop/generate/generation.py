"""The loop that asks a model for one token after the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trueloop import _options
from trueloop.device import is_immediate
from trueloop.generate import beam, prompts
from trueloop.generate.decoder import Decoder
from trueloop.generate.options import Ends, GenerationOptions, check_seeds
from trueloop.generate.prompts import Model
from trueloop.generate.result import NewTokens
from trueloop.generate.sampling import UniformDraws, sample, streams
from trueloop.generate.stop_strings import TextUntilStop
from trueloop.generate.strategies import without

_LOOK_EVERY = 16
"""Tokens between two looks at whether all rows have ended, where a look waits for the device."""


class Generation:
    """One call of `generate`: its arguments, checked, and the texts as they grow."""

    def __init__(
        self,
        model: Model,
        tokens: Any,
        lengths: Any,
        options: GenerationOptions,
        ends: Ends,
        *,
        seed: Any,
        context: Any,
        cache: Any,
    ) -> None:
        prompts.check_model(model, "generate(model, tokens)")
        self.model, self.options, self._ends = model, options, ends
        self._prompts = prompts.begun(prompts.rows_of(tokens, lengths), ends.end_of_text)
        prompts.check_ids([*self._prompts, ends.ids], model)
        context = prompts.context_of(model, context)
        prompts.check_room(self._prompts, context, options)
        count, self._count = len(self._prompts), len(self._prompts) * options.num_samples
        self._device = prompts.where(model, tokens)
        self._decoder = Decoder(
            model, context=context, cache=_options.flag("cache", cache), device=self._device
        )
        self._streams = streams(check_seeds(seed, count), count, options.num_samples)
        self._stop_ids = torch.tensor(ends.ids, dtype=torch.long, device=self._device)
        self._processors, self._warpers = options.processors(), options.warpers()
        self._lengths = [0] * self._count
        """New tokens of each row that has ended; 0 for an unfinished one."""
        self.texts: list[TextUntilStop] = []
        self.pieces: list[str] | None = None
        """Text of each row that its last token has made certain; None without a tokenizer."""

    def beams(self) -> NewTokens:
        """Beam search."""
        logits = self._decoder.prompt(self._prompts, self.options.max_new_tokens)
        return beam.search(self._decoder, logits, self.options, self._ends, self._processed)

    def run(self) -> NewTokens:
        """Sample, or take the most probable token, until every row has ended."""
        look_every = 1 if is_immediate(self._device) or self._ends.stop_strings else _LOOK_EVERY
        new = sum(1 for _ in self.steps(look_every, texts=bool(self._ends.stop_strings)))
        tokens = self._decoder.so_far[:, -new:]
        return NewTokens(tokens, self._log_probs, [length or new for length in self._lengths], None)

    def steps(self, look_every: int = 1, *, texts: bool = True) -> Iterator[list[int | None]]:
        """One token more in every row; yields them, None of a row that has ended, after each
        `look_every`-th, else nothing. With `texts`, `pieces` has what can be read."""
        if texts and self._ends.tokenizer is not None:
            stops, tokenizer = self._ends.stop_strings, self._ends.tokenizer
            self.texts = [TextUntilStop(tokenizer, stops) for _ in range(self._count)]
        most, decoder, seen = self.options.max_new_tokens, self._decoder, 0
        logits = self._begin()
        draws = UniformDraws(self._streams, self._device)
        self._log_probs = logits.new_empty(self._count, most)
        for new in range(1, most + 1):
            chosen = self._choose(logits, new, draws)
            decoder.put(chosen)
            self._log_probs[:, new - 1] = log_probs_of(logits, chosen)
            ids: list[int | None] = []
            if new % look_every == 0 or new == most:
                for column in decoder.so_far[:, seen - new :].t().tolist():
                    seen += 1
                    ids = self._note(column, seen)
            yield ids
            if new == most or all(self._lengths):
                return
            logits = decoder.next()

    def _begin(self) -> Tensor:
        """Logits after the prompts, each of which is read once, however many samples it has."""
        logits = self._decoder.prompt(self._prompts, self.options.max_new_tokens)
        if self.options.num_samples == 1:
            return logits
        each = torch.arange(len(self._prompts), device=self._device)
        copies = each.repeat_interleave(self.options.num_samples)
        self._decoder.reorder(copies)
        return logits[copies]

    def _choose(self, logits: Tensor, new: int, draws: UniformDraws) -> Tensor:
        """The `new`-th new token of each row, from 1 on: int64 (rows,)."""
        logits = self._processed(logits, new)
        if not self.options.is_sampled:
            return logits.argmax(-1)
        for warp in self._warpers:
            logits = warp(logits)
        return sample(logits, draws.at(new - 1))

    def _processed(self, logits: Tensor, new: int) -> Tensor:
        """Logits for the `new`-th new token, from 1 on, as any search goes by them."""
        decoder = self._decoder
        starts = decoder.starts if decoder.is_ragged else None
        for process in self._processors:
            logits = process(logits, decoder.so_far, starts=starts)
        if new <= self.options.min_new_tokens:
            logits = without(logits, self._stop_ids)
        return logits

    def _note(self, column: list[int], new: int) -> list[int | None]:
        """Note which rows end with their `new`-th new token; the tokens of those that went on."""
        alive: list[int | None] = [None] * self._count
        if self.texts:
            self.pieces = [""] * self._count
        for row, token in enumerate(column):
            if self._lengths[row]:
                continue
            alive[row] = token
            if token in self._ends.ids:
                self._lengths[row] = new
            elif self.texts and self.pieces is not None:
                self.pieces[row] = self.texts[row].push(token)
                if self.texts[row].is_stopped:
                    self._lengths[row] = new
        return alive


def log_probs_of(logits: Tensor, chosen: Tensor) -> Tensor:
    """log p of the tokens `chosen` (rows,) of logits (rows, vocabulary)."""
    return logits.log_softmax(-1).gather(-1, chosen[:, None]).squeeze(-1)
