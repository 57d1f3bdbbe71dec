"""Beam search: the most probable text as far as a beam of candidates shows it.

As `transformers.GenerationMixin._beam_search` has it. At each step every prompt has `beams` running
texts; of all their continuations by one token the best are looked at, as many as needed for `beams`
of them to continue. Of the best `beams` continuations those that end are kept as finished, with
their score, the sum of the log-probabilities divided by length ** length_penalty; a prompt keeps
its best `beams` finished texts. It is done when a running text can no longer beat the worst of
them, by an estimate that `early_stopping` chooses.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trueloop.generate.decoder import Decoder
from trueloop.generate.options import Ends, GenerationOptions
from trueloop.generate.result import NewTokens

_NEVER = -1e9
"""The score of what must not be chosen: finite, so that a score added to it stays in order."""


def search(
    decoder: Decoder,
    logits: Tensor,
    options: GenerationOptions,
    ends: Ends,
    processed: Callable[[Tensor, int], Tensor],
) -> NewTokens:
    """Continue the prompts that `decoder` has read, with `logits` (prompts, vocabulary) after them.

    `processed(log_probs, new)` is what the strategies make of the log-probabilities (rows,
    vocabulary) of the `new`-th new token, from 1 on.
    """
    prompts, vocabulary = logits.shape
    width, most = options.beams, options.max_new_tokens
    offsets = torch.arange(prompts, device=logits.device)[:, None] * width
    copies = torch.arange(prompts, device=logits.device).repeat_interleave(width)
    decoder.reorder(copies)
    logits = logits[copies]
    stop_ids = torch.tensor(ends.ids, dtype=torch.long, device=logits.device)
    looked_at = min(max(2, 1 + len(ends.ids)) * width, width * vocabulary)
    in_front = torch.arange(looked_at, device=logits.device) < width
    # All beams of a prompt are equal at first: only the first one counts.
    running = torch.full((prompts, width), _NEVER, device=logits.device, dtype=logits.dtype)
    running[:, 0] = 0
    kept = logits.new_zeros(prompts, width, most)
    """Log-probabilities of the running texts' new tokens."""
    finished = Finished(prompts, options, logits)
    for new in range(1, most + 1):
        raw = logits.log_softmax(-1)
        scores = processed(raw, new).view(prompts, width, vocabulary) + running[:, :, None]
        best, places = scores.flatten(1).topk(looked_at)
        beams, tokens = places // vocabulary, places % vocabulary
        texts = decoder.so_far[:, decoder.length - new + 1 :].view(prompts, width, new - 1)
        texts = torch.cat([rows_at(texts, beams), tokens[:, :, None]], 2)
        log_probs = rows_at(kept, beams)
        log_probs[:, :, new - 1] = raw.view(prompts, -1).gather(1, places)
        ending = torch.isin(tokens, stop_ids) | (new == most)
        finished.take(texts, log_probs, best, ending & in_front, new)
        if new == most:
            break
        running, going_on = (best + ending * _NEVER).topk(width)
        kept = rows_at(log_probs, going_on)
        finished.check_finished(running, new)
        if finished.is_done() or bool(ending.all()):
            break
        decoder.reorder((beams.gather(1, going_on) + offsets).flatten())
        decoder.put(tokens.gather(1, going_on).flatten())
        logits = decoder.next()
    return finished.best(options.num_samples)


def rows_at(table: Tensor, rows: Tensor) -> Tensor:
    """Of `table` (prompts, rows, …) the rows (prompts, count)."""
    return table.gather(1, rows[:, :, None].expand(-1, -1, table.shape[2]))


class Finished:
    """The best finished texts of each prompt, and whether better ones may come."""

    def __init__(self, prompts: int, options: GenerationOptions, like: Tensor) -> None:
        width, most = options.beams, options.max_new_tokens
        self._options = options
        self._tokens = like.new_zeros(prompts, width, most, dtype=torch.long)
        self._log_probs = like.new_zeros(prompts, width, most)
        self._scores = like.new_full((prompts, width), _NEVER)
        self._lengths = like.new_zeros(prompts, width, dtype=torch.long)
        self._hopeful = like.new_ones(prompts, 1, dtype=torch.bool)
        """Whether a running text of the prompt may still become one of the best."""

    def take(
        self, texts: Tensor, log_probs: Tensor, sums: Tensor, ending: Tensor, new: int
    ) -> None:
        """Keep the best of those that were kept and those that are `ending`, (prompts, looked at),
        with `new` tokens."""
        scores = sums / new**self._options.length_penalty
        closed = ~self._hopeful
        if self._options.early_stopping is True:
            closed = closed | self._full()
        scores = scores + (closed | ~ending) * _NEVER
        lengths = torch.where(ending, new, 0)
        texts = torch.nn.functional.pad(texts, (0, self._tokens.shape[2] - new))
        self._scores, chosen = torch.cat([self._scores, scores], 1).topk(self._options.beams)
        self._tokens = rows_at(torch.cat([self._tokens, texts], 1), chosen)
        self._log_probs = rows_at(torch.cat([self._log_probs, log_probs], 1), chosen)
        self._lengths = torch.cat([self._lengths, lengths], 1).gather(1, chosen)

    def check_finished(self, running: Tensor, new: int) -> None:
        """See whether the best of the `running` sums (prompts, beams), of `new` tokens, may still
        beat the worst finished text."""
        options, length = self._options, new
        if options.early_stopping == "never" and options.length_penalty > 0:
            length = options.max_new_tokens
        best = running[:, :1] / length**options.length_penalty
        worst = self._scores.amin(1, keepdim=True)
        self._hopeful &= (best > worst) | (~self._full() & (best > _NEVER))

    def is_done(self) -> bool:
        """Whether nothing that comes can change the result."""
        full = self._options.early_stopping is True and bool(self._full().all())
        return full or not bool(self._hopeful.any())

    def best(self, count: int) -> NewTokens:
        """The best `count` texts of each prompt, the best first."""
        return NewTokens(
            self._tokens[:, :count].flatten(0, 1),
            self._log_probs[:, :count].flatten(0, 1),
            self._lengths[:, :count].flatten().tolist(),
            self._scores[:, :count].flatten(),
        )

    def _full(self) -> Tensor:
        """Whether a prompt has as many finished texts as beams, (prompts, 1)."""
        return (self._lengths > 0).all(1, keepdim=True)
