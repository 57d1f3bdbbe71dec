"""The tokens of `generate` and `score`: checked, as rows of ids on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import _options
from trueloop.errors import ConfigError, DataError
from trueloop.evaluation.evaluation_pass import device_of, evaluating
from trueloop.generate.options import GenerationOptions

Model = Callable[..., Any]
"""Token ids int64 (batch, length) to logits (batch, length, vocabulary); see `generate`."""
Tokens = Tensor | Sequence[int] | Sequence[Sequence[int]] | Sequence[Tensor]
"""One text, or several of any lengths."""
_EXAMPLE = "write e.g. [[1, 2, 3], [4, 5]]"


def rows_of(tokens: Any, lengths: Any = None) -> list[list[int]]:
    """The ids of each text, from a sequence of ids, a sequence of such, or an integer tensor
    (length,) or (batch, length), of whose rows the first `lengths` count."""
    if isinstance(tokens, Tensor):
        return _rows_of_tensor(tokens, lengths)
    if lengths is not None:
        raise ConfigError(
            "lengths go with a tensor (batch, length) that is padded on the right: leave lengths "
            "out, a sequence of texts has them"
        )
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Sequence):
        raise ConfigError(f"tokens={_options.shown(tokens)} are not token ids: {_EXAMPLE}")
    if not len(tokens) or _options.is_integer(tokens[0]):
        return [_row(tokens)]
    return [_row(row) for row in tokens]


def _rows_of_tensor(tokens: Tensor, lengths: Any) -> list[list[int]]:
    if tokens.is_floating_point() or tokens.is_complex() or tokens.ndim not in (1, 2):
        raise ConfigError(
            f"tokens are {str(tokens.dtype).removeprefix('torch.')} of shape "
            f"{tuple(tokens.shape)}, and must be integers (length,) or (batch, length): {_EXAMPLE}"
        )
    found: list[list[int]] = (tokens if tokens.ndim == 2 else tokens[None]).tolist()
    if lengths is None:
        return found
    counts = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    width = tokens.shape[-1]
    if len(counts) != len(found) or not all(
        _options.is_integer(count) and 0 <= count <= width for count in counts
    ):
        raise ConfigError(
            f"lengths={_options.shown(counts)} must be {len(found)} integers from 0 to {width}, "
            "one for each row of tokens: write the number of its tokens without the padding"
        )
    return [row[:count] for row, count in zip(found, counts, strict=True)]


def _row(ids: Any) -> list[int]:
    found = ids.tolist() if isinstance(ids, Tensor) and ids.ndim == 1 else ids
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise ConfigError(f"tokens={_options.shown(ids)} are not token ids: {_EXAMPLE}")
    if wrong := next((each for each in found if not _options.is_integer(each)), None):
        shown = _options.shown(wrong)
        raise ConfigError(f"tokens contain {shown}, which is not a token id: {_EXAMPLE}")
    return [int(each) for each in found]


def check_ids(rows: Sequence[Sequence[int]], model: Model) -> None:
    """Refuse ids that the model has no embedding for, as far as it says how many it has."""
    least = min((min(row) for row in rows if row), default=0)
    if least < 0:
        raise DataError(f"a token id is {least}: ids begin at 0")
    vocabulary = getattr(getattr(model, "config", None), "vocab_size", None)
    most = max((max(row) for row in rows if row), default=0)
    if isinstance(vocabulary, int) and most >= vocabulary:
        raise DataError(
            f"a token id is {most}, and the model knows 0 to {vocabulary - 1}: encode the text "
            "with the model's own tokenizer"
        )


def context_of(model: Model, context: Any) -> int | None:
    """How many tokens the model takes at most: `context`, or if that is None the model's own
    `config.context`; None where it has none."""
    if context is not None:
        return _options.whole("context", context, example=1024)
    found = getattr(getattr(model, "config", None), "context", None)
    return found if isinstance(found, int) else None


def where(model: Model, tokens: Any) -> torch.device:
    """The device that the model takes tokens on."""
    if isinstance(model, nn.Module) and next(model.parameters(), None) is not None:
        return device_of(model)
    return tokens.device if isinstance(tokens, Tensor) else torch.device("cpu")


def check_model(model: Any, call: str) -> None:
    """Refuse what cannot be called, and a class in place of a model."""
    if not callable(model) or isinstance(model, type):
        raise ConfigError(
            f"the model must be a callable that maps token ids (batch, length) to logits (batch, "
            f"length, vocabulary), not {_options.shown(model)}: write {call}"
        )


def begun(rows: list[list[int]], end_of_text: int | None) -> list[list[int]]:
    """`rows`, with an empty one begun by the end of the text before it, as in training."""
    if not rows:
        raise ConfigError(f"tokens is empty: {_EXAMPLE}")
    if end_of_text is None and not all(rows):
        raise DataError(
            "a prompt is empty, and no end-of-text token is known to start from: write at least "
            "one token, or end_of_text=..."
        )
    return [row or [int(end_of_text or 0)] for row in rows]


def check_room(rows: list[list[int]], context: int | None, options: GenerationOptions) -> None:
    """Refuse a prompt beyond the model's context, and beams that would outgrow it."""
    longest = max(map(len, rows))
    if context is None:
        return
    if longest > context:
        raise DataError(
            f"a prompt has {longest:,} tokens, and the model's context is {context:,}: shorten it "
            f"to its last {context:,} tokens or fewer"
        )
    # The last token is chosen, and not read.
    if options.beams > 1 and longest + options.max_new_tokens - 1 > context:
        raise ConfigError(
            f"max_new_tokens={options.max_new_tokens} after a prompt of {longest} tokens are more "
            f"than the model's context of {context}, beyond which beams cannot go: write "
            f"max_new_tokens={max(1, context - longest + 1)} or fewer"
        )


def inferring(model: Model) -> AbstractContextManager[Any]:
    """Eval mode and inference mode; of a callable that is not a module, only inference mode.

    One rank of many may do it by itself, to print a sample.
    """
    if not isinstance(model, nn.Module):
        return torch.inference_mode()
    return evaluating(model, together=False)


def checked_logits(logits: Any) -> Tensor:
    """Logits (batch, length, vocabulary) that the model has returned."""
    if isinstance(logits, Tensor) and logits.ndim == 3:
        return logits
    what = (
        f"logits of shape {tuple(logits.shape)}"
        if isinstance(logits, Tensor)
        else _options.shown(logits)
    )
    raise ConfigError(
        f"the model returned {what}, and must return logits (batch, length, vocabulary): wrap it, "
        "e.g. generate(lambda tokens: model(tokens).logits, tokens)"
    )


def floats(logits: Tensor) -> Tensor:
    """At least float32: half precision has too few bits for sums over a vocabulary."""
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
