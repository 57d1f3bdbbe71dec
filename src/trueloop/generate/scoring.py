"""How probable a model finds a text, token by token; and of several continuations the likeliest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.generate import prompts
from trueloop.generate.prompts import Model, Tokens

_IGNORED = -100
_TOKENS_AT_ONCE = 16_384
NORMALIZE = ("sum", "token", "byte")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The result of `score`.

    Attributes:
        log_probs: float (rows, longest), natural logarithm of the probability of each token after
            those before it; 0 in the padding, and of a first token that nothing is before.
        counts: int64 (rows,), how many tokens of each row were scored.
        sums: float64 (rows,), log-probability of each whole row.
    """

    log_probs: Tensor
    counts: Tensor
    sums: Tensor


def score(
    model: Model,
    tokens: Tokens,
    *,
    after: Tokens | None = None,
    lengths: Any = None,
    context: int | None = None,
) -> Scored:
    """The log-probability of each token of each text of `tokens`, given those before it.

    Args:
        model: maps token ids int64 (batch, length) to logits (batch, length, vocabulary).
        tokens: one text or several, of any lengths: ids, or a tensor (batch, length).
        after: ids that come before the texts and are not scored: one sequence for all texts, or one
            for each. Without it, or where it is empty, a text's first token has no score.
        lengths: where `tokens` is a tensor padded on the right, how many tokens each row has.
        context: the most tokens that the model takes; `model.config.context` if None. A longer text
            is scored in windows in which each token has at least `context // 2` tokens before it.

    Returns:
        The log-probabilities, with the sum and the count of each row.

    Raises:
        ConfigError: an argument that cannot work, or no token to score.
        DataError: an id outside the vocabulary.
    """
    prompts.check_model(model, "score(model, tokens)")
    rows = prompts.rows_of(tokens, lengths)
    before = _before(rows, after)
    prompts.check_ids([*rows, *before], model)
    window = prompts.context_of(model, context)
    device = prompts.where(model, tokens)
    longest = max(map(len, rows), default=0)
    if not longest:
        raise ConfigError("tokens has nothing to score: write e.g. score(model, [1, 2, 3])")
    texts = [[*first, *row] for first, row in zip(before, rows, strict=True)]
    log_probs = torch.zeros(len(rows), longest, device=device)
    with prompts.inferring(model):
        for batch in _batches(_windows(texts, window)):
            scored = _read(model, texts, batch, device)
            for (row, start, first, stop), found in zip(batch, scored, strict=True):
                begin = max(first, len(before[row]))  # what stands before is not scored
                if begin <= stop:
                    at = begin - len(before[row])
                    here = found[begin - start - 1 : stop - start]
                    log_probs[row, at : at + len(here)] = here.to(log_probs.dtype)
    counts = [max(0, len(row) - (not first)) for row, first in zip(rows, before, strict=True)]
    return Scored(
        log_probs=log_probs,
        counts=torch.tensor(counts, device=device),
        sums=log_probs.cpu().double().sum(1),
    )


def multiple_choice(
    model: Model,
    prompt: Sequence[int],
    choices: Sequence[Sequence[int]],
    *,
    normalize: str = "sum",
    sizes: Sequence[int] | None = None,
    context: int | None = None,
) -> list[float]:
    """A score of each choice as what follows `prompt`; the highest is the model's answer.

    Args:
        model: as for `score`.
        prompt: token ids, at least one.
        choices: token ids of each continuation.
        normalize: "sum", the log-probability of the whole choice; "token", its mean over tokens; or
            "byte", over bytes, which does not depend on how the text is divided into tokens (the
            acc, and acc_norm, of EleutherAI's evaluation harness are "sum" and "byte").
        sizes: UTF-8 bytes of each choice, for "byte".
        context: as for `score`.

    Returns:
        One score for each choice: natural logarithms, normalized as asked.

    Raises:
        ConfigError: the prompt or a choice is empty, or `sizes` is missing or does not fit.
        DataError: an id outside the vocabulary.
    """
    _options.choice("normalize", normalize, NORMALIZE)
    if not len(prompt) or not len(choices) or not all(map(len, choices)):
        raise ConfigError(
            "the prompt or a choice is empty: write e.g. multiple_choice(model, [1, 2], [[3], [4]])"
        )
    found = score(model, list(choices), after=prompt, context=context)
    if normalize == "token":
        per: Sequence[int] = found.counts.tolist()
    elif normalize == "byte":
        if sizes is None or len(sizes) != len(choices) or not all(size > 0 for size in sizes):
            raise ConfigError(
                "normalize='byte' needs the bytes of each choice: write "
                "sizes=[len(text.encode()) for text in texts]"
            )
        per = sizes
    else:
        per = [1] * len(choices)
    return [total / count for total, count in zip(found.sums.tolist(), per, strict=True)]


def _before(rows: list[list[int]], after: Tokens | None) -> list[list[int]]:
    if after is None:
        return [[]] * len(rows)
    found = prompts.rows_of(after)
    if len(found) not in (1, len(rows)):
        raise ConfigError(
            f"after has {len(found)} texts for {len(rows)}: write one for all, or one each"
        )
    return found * len(rows) if len(found) == 1 else found


class ScoredWindow(NamedTuple):
    """The model reads tokens start … stop − 1 of a row; targets first … stop are scored."""

    row: int
    start: int
    first: int
    stop: int


def _windows(texts: list[list[int]], most: int | None) -> Iterator[ScoredWindow]:
    for row, text in enumerate(texts):
        last, start, first = len(text) - 1, 0, 1
        while first <= last:
            stop = last if most is None else min(last, start + most)
            yield ScoredWindow(row, start, first, stop)
            first = stop + 1
            start = first - max(1, (most or 0) // 2)


def _batches(windows: Iterator[ScoredWindow]) -> Iterator[list[ScoredWindow]]:
    """Windows of so many tokens together that their logits fit into memory."""
    batch: list[ScoredWindow] = []
    for window in windows:
        longest = max(each.stop - each.start for each in [*batch, window])
        if batch and longest * (len(batch) + 1) > _TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _read(
    model: Model, texts: list[list[int]], batch: list[ScoredWindow], device: torch.device
) -> Tensor:
    """Log-probabilities of the targets start + 1 … of each window: (windows, longest)."""
    longest = max(each.stop - each.start for each in batch)
    inputs = torch.zeros(len(batch), longest, dtype=torch.long)
    targets = torch.full((len(batch), longest), _IGNORED)
    for place, (row, start, _, stop) in enumerate(batch):
        inputs[place, : stop - start] = torch.tensor(texts[row][start:stop])
        targets[place, : stop - start] = torch.tensor(texts[row][start + 1 : stop + 1])
    logits = prompts.floats(prompts.checked_logits(model(inputs.to(device))))
    return -F.cross_entropy(
        logits.transpose(1, 2), targets.to(device), ignore_index=_IGNORED, reduction="none"
    )
