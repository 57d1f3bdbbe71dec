"""generate: text from a language model, token by token; and how probable it finds a text."""

from __future__ import annotations

from trueloop.generate import strategies
from trueloop.generate.continuation import Piece, generate, stream
from trueloop.generate.kv_cache import KeyValueCache
from trueloop.generate.options import PRESETS, GenerationOptions
from trueloop.generate.result import Generated
from trueloop.generate.scoring import Scored, multiple_choice, score

__all__ = [
    "PRESETS",
    "Generated",
    "GenerationOptions",
    "KeyValueCache",
    "Piece",
    "Scored",
    "generate",
    "multiple_choice",
    "score",
    "strategies",
    "stream",
]
