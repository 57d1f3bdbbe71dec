"""The result of `generate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.generate.options import Ends
from trueloop.generate.stop_strings import TextUntilStop

END_OF_TEXT, STOP, LENGTH = "end_of_text", "stop", "length"
"""Why a text ended: the model's end of text; a stop id or string; `max_new_tokens`."""

_NOT_FINITE = (
    "the model's logits for new token {} of row {} are NaN or infinite: its weights are not finite "
    "(or overflow in half precision), load a good checkpoint"
)


@dataclass(frozen=True, kw_only=True)
class Generated:
    """New tokens of each row; row p * num_samples + s is sample s of prompt p.

    Attributes:
        tokens: int64 (rows, longest), without the prompt, with the token that ended the text,
            padded on the right.
        lengths: int64 (rows,), tokens of each row.
        log_probs: float (rows, longest), natural logarithm of the model's own probability of each
            token (before any strategy), 0 in the padding.
        ended: why each row ended: "end_of_text", "stop" (a stop id or string) or "length".
        texts: the rows decoded, without the token or string that ended them; None without a
            tokenizer.
        scores: float (rows,), of beam search: the sum of the log-probabilities divided by
            lengths ** length_penalty; None otherwise.
    """

    tokens: Tensor
    lengths: Tensor
    log_probs: Tensor
    ended: list[str]
    texts: list[str] | None = None
    scores: Tensor | None = None

    def rows(self) -> list[list[int]]:
        """Return the new tokens of each row as a list, each with its own length."""
        counts = self.lengths.tolist()
        return [row[:count] for row, count in zip(self.tokens.tolist(), counts, strict=True)]


class NewTokens(NamedTuple):
    """The result of a search."""

    tokens: Tensor
    """int64 (rows, new); after a row's own tokens may be anything."""
    log_probs: Tensor
    """(rows, new or more)"""
    lengths: list[int]
    scores: Tensor | None


def generated(found: NewTokens, ends: Ends, pad: int | None) -> Generated:
    """The result of a search; raises `ConfigError` where the model's logits are NaN."""
    if not all(found.lengths):  # of scores that are NaN, beam search takes none
        raise ConfigError(_NOT_FINITE.format(1, 1 + found.lengths.index(0)))
    longest = max(found.lengths)
    filler = (0 if ends.end_of_text is None else ends.end_of_text) if pad is None else pad
    _options.whole("pad", filler, 0)
    # Out of inference mode, so that autograd takes what is made here.
    lengths = torch.tensor(found.lengths, device=found.tokens.device)
    beyond = torch.arange(longest, device=lengths.device) >= lengths[:, None]
    tokens = found.tokens[:, :longest].masked_fill(beyond, filler)
    log_probs = found.log_probs[:, :longest].masked_fill(beyond, 0.0)
    if log_probs.isnan().any():
        row, column = log_probs.isnan().nonzero()[0].tolist()
        raise ConfigError(_NOT_FINITE.format(column + 1, row + 1))
    rows = [row[:length] for row, length in zip(tokens.tolist(), found.lengths, strict=True)]
    texts, ended = [], []
    for row in rows:
        ending = _ending(row, ends)
        if ends.tokenizer is not None:
            text = TextUntilStop(ends.tokenizer, ends.stop_strings)
            for token in row if ending is None else row[:-1]:
                text.push(token)
            text.finish()
            texts.append(text.text)
            ending = STOP if text.is_stopped else ending
        ended.append(ending or LENGTH)
    return Generated(
        tokens=tokens,
        lengths=lengths,
        log_probs=log_probs,
        ended=ended,
        texts=None if ends.tokenizer is None else texts,
        scores=None if found.scores is None else found.scores.clone(),
    )


def _ending(row: list[int], ends: Ends) -> str | None:
    """Why a row ended by its last token; None if that is a token like any."""
    if row[-1] == ends.end_of_text:
        return END_OF_TEXT
    return STOP if row[-1] in ends.stop_ids else None
