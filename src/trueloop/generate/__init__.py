"""generate: text from a language model, token by token."""

from __future__ import annotations

from trueloop.generate.cache import KeyValueCache

__all__ = ["KeyValueCache"]
