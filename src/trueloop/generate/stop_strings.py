"""The text of tokens as they come, up to the first stop string."""

from __future__ import annotations

from collections.abc import Sequence

from trueloop.generate.options import StreamingTokenizer


class TextUntilStop:
    """Turns ids into text, piece by piece, and ends at the first of `stops`.

    A piece is kept back as long as a stop string could begin in it; the stop string itself and what
    follows it are cut.
    """

    def __init__(self, tokenizer: StreamingTokenizer, stops: Sequence[str] = ()) -> None:
        self._stream, self._stops = tokenizer.stream(), tuple(stops)
        self._held = ""
        self.text = ""
        """All that was released."""
        self.is_stopped = False
        """Whether a stop string has come."""

    def push(self, token: int) -> str:
        """The text that is certain with this token; empty after a stop string."""
        return "" if self.is_stopped else self._take(str(self._stream.push(token)))

    def finish(self) -> str:
        """Text that was kept back and turns out not to begin a stop string."""
        if self.is_stopped:
            return ""
        last = self._take(str(self._stream.finish()))
        rest, self._held = self._held, ""
        self.text += rest
        return last + rest

    def _take(self, piece: str) -> str:
        self._held += piece
        found = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.is_stopped = True
            certain, self._held = self._held[: min(found)[0]], ""
        else:
            keep = self._beginnings()
            certain, self._held = self._held[: len(self._held) - keep], self._held[-keep:]
            if not keep:
                self._held = ""
        self.text += certain
        return certain

    def _beginnings(self) -> int:
        """How many characters at the end of the text may be a stop string's beginning."""
        return max(
            (
                length
                for stop in self._stops
                for length in range(1, len(stop))
                if self._held.endswith(stop[:length])
            ),
            default=0,
        )
