"""The options of `generate`, checked: how a token is chosen and when a text ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Protocol

from torch import Tensor

from trueloop import _options
from trueloop.errors import ConfigError, nearest
from trueloop.generate import strategies
from trueloop.seed import check_seed

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical")
"""Options that choose among samples."""
_OVERFLOWS = 1e-2
"""A temperature below this may make a logit infinite, unless the largest is 0."""

PRESETS: dict[str, dict[str, Any]] = {
    # Near the mode, where a model is most often right, without the loops of greedy decoding.
    "factual": {"temperature": 0.3, "top_p": 0.9, "repetition_penalty": 1.05},
    # The model's own distribution less its tail, cut in proportion to the peak (min-p's paper).
    "creative": {"temperature": 1.0, "min_p": 0.05, "repetition_penalty": 1.05},
    # Chen et al. 2021 (Codex) found 0.2 and 0.95 best for one attempt; code repeats itself rightly.
    "code": {"temperature": 0.2, "top_p": 0.95},
    # What published chat models recommend of themselves, 0.6 to 0.7 with 0.8 to 0.95.
    "chat": {"temperature": 0.7, "top_p": 0.9},
}
"""Options of `generate` that go together, by what one wants to have written."""


class StreamingTokenizer(Protocol):
    """The part of a tokenizer that `generate` needs: `stream()` makes an object whose `push(id)`
    returns the text that is certain by then, and whose `finish()` returns the rest."""

    def stream(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How tokens are chosen, and how many.

    Attributes:
        max_new_tokens: largest number of new tokens of a text.
        min_new_tokens: tokens that would end the text are excluded before this number.
        temperature: the logits are divided by it; 0 takes the most probable token (greedy). None is
            1, or, with beams, no sampling.
        top_k: draw among this many of the most probable tokens (Fan et al., ACL 2018).
        top_p: draw among the most probable ones that have this share of the probability together,
            above 0 and at most 1 (Holtzman et al., ICLR 2020).
        min_p: draw among those with at least this share of the most probable one's probability,
            from 0 to 1 (Nguyen et al., 2024).
        typical: draw among those of the most typical surprise with this probability together, above
            0 and at most 1 (Meister et al., TACL 2023).
        repetition_penalty: above 1, tokens that the text already has become less probable (Keskar
            et al., "CTRL", 2019).
        no_repeat_ngram: no sequence of this many tokens occurs twice.
        beams: above 1, beam search with this many beams.
        length_penalty: beam scores are divided by length ** length_penalty.
        early_stopping: of beam search. True ends with as many finished texts as beams; False when
            no better one is likely; "never" when none is possible.
        num_samples: texts per prompt; with beam search, this many of the best.

    Raises:
        ConfigError: a value that cannot work, or two that exclude each other.
    """

    max_new_tokens: int = 128
    min_new_tokens: int = 0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram: int | None = None
    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    num_samples: int = 1

    def __post_init__(self) -> None:
        for name, least in (("max_new_tokens", 1), ("min_new_tokens", 0), ("beams", 1)):
            _options.whole(name, getattr(self, name), least)
        _options.whole("num_samples", self.num_samples)
        for name in ("top_k", "no_repeat_ngram"):
            if getattr(self, name) is not None:
                _options.whole(name, getattr(self, name), example=40)
        if self.temperature is not None:
            _options.not_negative("temperature", self.temperature, "0.8")
        for name, example in (("top_p", "0.9"), ("typical", "0.9")):
            value = getattr(self, name)
            if value is not None and not 0 < _options.number(name, value, example) <= 1:
                raise ConfigError(
                    f"{name}={_options.shown(value)} must be above 0 and at most 1: write e.g. "
                    f"{name}={example}"
                )
        if self.min_p is not None:
            _options.share("min_p", self.min_p, example="0.05")
        _options.positive("repetition_penalty", self.repetition_penalty, "1.1")
        _options.number("length_penalty", self.length_penalty)
        if self.early_stopping not in (True, False, "never"):
            raise ConfigError(
                f"early_stopping={_options.shown(self.early_stopping)} is unknown: write True, "
                "False or 'never'"
            )
        self._check_together()

    def _check_together(self) -> None:
        sampling = [name for name in SAMPLING if getattr(self, name)]
        if self.beams > 1 and sampling:
            raise ConfigError(
                f"beams={self.beams} searches for the most probable text, and {sampling[0]} is for "
                f"sampling: leave one of them out"
            )
        if self.beams > 1 and self.num_samples > self.beams:
            raise ConfigError(
                f"num_samples={self.num_samples} of {self.beams} beams are too many: write "
                f"beams={self.num_samples} or more"
            )
        if self.beams == 1 and (self.length_penalty != 1.0 or self.early_stopping is not False):
            name = "length_penalty" if self.length_penalty != 1.0 else "early_stopping"
            raise ConfigError(f"{name} is for beam search: write e.g. beams=4, or leave it out")
        if self.temperature == 0 and (rest := [name for name in sampling if name != "temperature"]):
            raise ConfigError(
                f"temperature=0 is greedy, and {rest[0]} chooses among samples: leave {rest[0]} "
                "out, or write e.g. temperature=0.8"
            )
        if self.temperature == 0 and self.num_samples > 1:
            raise ConfigError(
                f"temperature=0 is greedy, and num_samples={self.num_samples} texts would be "
                "equal: write e.g. temperature=0.8, or num_samples=1"
            )
        if self.min_new_tokens > self.max_new_tokens:
            raise ConfigError(
                f"min_new_tokens={self.min_new_tokens} is more than max_new_tokens="
                f"{self.max_new_tokens}: write max_new_tokens={self.min_new_tokens}"
            )

    @property
    def is_sampled(self) -> bool:
        """Whether a token is drawn, and not the most probable one taken."""
        return self.beams == 1 and self.temperature != 0

    def processors(self) -> list[Callable[..., Tensor]]:
        """Return what changes logits in any kind of search: functions of (logits, tokens, starts=).

        `min_new_tokens` is not among them: the search itself handles it.
        """
        found: list[Callable[..., Tensor]] = []
        if self.repetition_penalty != 1.0:
            found.append(partial(strategies.repetition_penalty, penalty=self.repetition_penalty))
        if self.no_repeat_ngram is not None:
            found.append(partial(strategies.no_repeat_ngram, size=self.no_repeat_ngram))
        return found

    def warpers(self) -> list[Callable[[Tensor], Tensor]]:
        """Return what changes the logits before a draw: functions of (logits)."""
        found: list[Callable[[Tensor], Tensor]] = []
        if self.temperature not in (None, 0, 1):
            heat = float(self.temperature or 1)
            if heat < _OVERFLOWS:
                found.append(lambda logits: logits - logits.amax(-1, keepdim=True))
            found.append(partial(strategies.temperature, value=heat))
        if self.top_k is not None:
            found.append(partial(strategies.top_k, k=self.top_k))
        if self.top_p is not None and self.top_p < 1:
            found.append(partial(strategies.top_p, p=self.top_p))
        if self.min_p:
            found.append(partial(strategies.min_p, p=self.min_p))
        if self.typical is not None and self.typical < 1:
            found.append(partial(strategies.typical, mass=self.typical))
        return found


def options_from(given: Mapping[str, Any]) -> GenerationOptions:
    """`GenerationOptions` of keyword arguments; `ConfigError` for one that it has not."""
    known = [field.name for field in fields(GenerationOptions)]
    for name in given:
        if name not in known:
            raise ConfigError(f"generate has no option {name!r}: {nearest(name, known)}")
    return GenerationOptions(**given)


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The reasons for which a text ends before `max_new_tokens`."""

    end_of_text: int | None
    stop_ids: tuple[int, ...]
    stop_strings: tuple[str, ...]
    tokenizer: StreamingTokenizer | None

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids that end a text."""
        first = () if self.end_of_text is None else (self.end_of_text,)
        return first + tuple(each for each in self.stop_ids if each not in first)


def ends_of(stop: Any, end_of_text: Any, tokenizer: Any) -> Ends:
    """`generate`'s arguments of these names, checked."""
    if end_of_text is not None:
        _options.whole("end_of_text", end_of_text, 0)
    single = isinstance(stop, str) or _options.is_integer(stop)
    stops = [stop] if single else stop
    if not isinstance(stops, Collection) or isinstance(stops, (bytes, Mapping)):
        raise ConfigError(f"stop={_options.shown(stop)} stops nothing: write e.g. stop=['\\n', 13]")
    for each in stops:
        if not (isinstance(each, str) and each) and not (_options.is_integer(each) and each >= 0):
            raise ConfigError(
                f"stop contains {_options.shown(each)}, which is neither text nor a token id: "
                "write "
                "e.g. stop=['\\n', 13]"
            )
    strings = tuple(each for each in stops if isinstance(each, str))
    if tokenizer is not None and not hasattr(tokenizer, "stream"):
        raise ConfigError(
            f"tokenizer={_options.shown(tokenizer)} has no stream(): give the run's, e.g. "
            "tokenizer=task.tokenizer"
        )
    if strings and tokenizer is None:
        raise ConfigError(
            f"stop={_options.shown(strings[0])} is text, which token ids cannot be compared with: "
            "add tokenizer=..."
        )
    ids = tuple(int(each) for each in stops if not isinstance(each, str))
    return Ends(end_of_text=end_of_text, stop_ids=ids, stop_strings=strings, tokenizer=tokenizer)


def check_seeds(seed: Any, prompts: int) -> int | list[int]:
    """`generate`'s `seed`, checked."""
    if isinstance(seed, Sequence) and not isinstance(seed, (str, bytes)):
        if len(seed) != prompts:
            raise ConfigError(
                f"{len(seed)} seeds for {prompts} prompts: write one integer for all, or one each"
            )
        return [check_seed(each) for each in seed]
    return check_seed(seed)
