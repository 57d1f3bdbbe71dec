"""`generate` continues texts with a language model; `stream` is the same as an iterator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trueloop.errors import ConfigError
from trueloop.generate.generation import Generation
from trueloop.generate.options import ends_of, options_from
from trueloop.generate.prompts import Model, Tokens, inferring
from trueloop.generate.result import Generated, generated


def generate(
    model: Model,
    tokens: Tokens,
    *,
    lengths: Any = None,
    seed: int | Sequence[int] = 0,
    stop: str | int | Sequence[str | int] = (),
    end_of_text: int | None = None,
    tokenizer: Any = None,
    pad: int | None = None,
    context: int | None = None,
    cache: bool = True,
    **options: Any,
) -> Generated:
    """Continue each text of `tokens`, token by token, e.g. `generate(model, tokens, top_p=0.9)`.

    A row of a batch gets the text that it would get in a batch of one. The model is put into eval
    mode for it, and each module gets its own mode back; the global generators do not change.

    Args:
        model: maps token ids int64 (batch, length) to logits (batch, length, vocabulary). One with
            `new_cache(batch, capacity)` is called as `model(tokens, cache=cache)`, only with the
            new tokens.
        tokens: one text or several, of any lengths: ids, or a tensor (batch, length).
        lengths: of the rows of a tensor that is padded on the right.
        seed: of the draws, from 0 on; a sequence has one for each prompt, which then draws as in a
            batch of one.
        stop: token ids and strings (these need `tokenizer`) that end a text.
        end_of_text: the id that ends a text, and with which an empty prompt begins.
        tokenizer: has `stream()`; the result then has `texts`.
        pad: fills up the rows of the result; `end_of_text` if None, else 0.
        context: most tokens that the model takes; `model.config.context` if None. A text that
            becomes longer is continued from its last `context // 2` tokens, see `Decoder`.
        cache: use the model's cache where it has one.
        options: how tokens are chosen, the fields of `GenerationOptions`: max_new_tokens,
            temperature, top_k, top_p, min_p, typical, repetition_penalty, beams, num_samples, ….

    Returns:
        The new tokens, with their log-probabilities and why each text ended.

    Raises:
        ConfigError: an argument or a combination that cannot work; or logits that are NaN.
        DataError: an id outside the vocabulary, a prompt longer than the context, or an empty one
            without `end_of_text`.
    """
    ends = ends_of(stop, end_of_text, tokenizer)
    generation = Generation(
        model, tokens, lengths, options_from(options), ends, seed=seed, context=context, cache=cache
    )
    with inferring(model):
        found = generation.beams() if generation.options.beams > 1 else generation.run()
    return generated(found, ends, pad)


class Piece(NamedTuple):
    """An item of `stream`.

    Attributes:
        tokens: the new token of each row; None of a row that has ended.
        texts: the text that is certain by now, of each row; None without a tokenizer.
    """

    tokens: list[int | None]
    texts: list[str] | None


def stream(
    model: Model,
    tokens: Tokens,
    *,
    lengths: Any = None,
    seed: int | Sequence[int] = 0,
    stop: str | int | Sequence[str | int] = (),
    end_of_text: int | None = None,
    tokenizer: Any = None,
    context: int | None = None,
    cache: bool = True,
    **options: Any,
) -> Iterator[Piece]:
    """`generate` as an iterator: a `Piece` for each new token as it is chosen.

    Between two pieces the model is in its own modes.

    Args:
        model: as for `generate`.
        tokens: as for `generate`.
        lengths: as for `generate`.
        seed: as for `generate`.
        stop: as for `generate`.
        end_of_text: as for `generate`.
        tokenizer: as for `generate`; each piece then has `texts`.
        context: as for `generate`.
        cache: as for `generate`.
        options: as for `generate`, but for `beams`: a beam search knows its text only at the end.

    Returns:
        An iterator of pieces.

    Raises:
        ConfigError: as `generate`, and for `beams` above 1.
        DataError: as `generate`.
    """
    ends = ends_of(stop, end_of_text, tokenizer)
    checked = options_from(options)
    if checked.beams > 1:
        raise ConfigError(
            f"beams={checked.beams} cannot be streamed, since the text is only known at the end: "
            "write "
            "generate(...), or leave beams out"
        )
    generation = Generation(
        model, tokens, lengths, checked, ends, seed=seed, context=context, cache=cache
    )
    return _stream(generation)


def _stream(generation: Generation) -> Iterator[Piece]:
    steps = generation.steps(look_every=1)
    while True:
        with inferring(generation.model):
            ids = next(steps, None)
        if ids is None:
            break
        yield Piece(ids, generation.pieces)
    if generation.pieces is not None:
        rest = [text.finish() for text in generation.texts]
        if any(rest):
            yield Piece([None] * len(rest), rest)
