"""Lengths and intervals as the user writes them."""

from __future__ import annotations

from typing import Any

import pytest

from trueloop.errors import ConfigError
from trueloop.lengths import Interval, parse_amount, parse_interval


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("500 updates", 500, "updates"),
        ("500updates", 500, "updates"),
        (" 1  Epoch ", 1, "epochs"),
        ("10_000 samples", 10_000, "samples"),
        ("1_000_000 tokens", 1_000_000, "tokens"),
        ("1e6 tokens", 1_000_000, "tokens"),
        ("0.5 minutes", 0.5, "minutes"),
        (".5 minute", 0.5, "minutes"),
    ],
)
def test_intervals(text: str, amount: float, unit: str) -> None:
    found = parse_interval("eval_every", text)
    assert found == Interval(amount, unit)
    assert parse_interval("eval_every", str(found)) == found, "what is shown can be written"


def test_none_and_shares() -> None:
    assert parse_interval("eval_every", None) is None
    assert parse_amount("5%") == (0.05, "share")
    assert parse_amount("5 parsecs") == (5, "parsecs")


@pytest.mark.parametrize("text", ["500", " 500 ", 500, 1.5, True, "", "soon", "0 updates"])
@pytest.mark.parametrize("option", ["eval_every", "--save-every"])
def test_what_is_no_interval(text: Any, option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option}=.*write '500 updates'"):
        parse_interval(option, text)


@pytest.mark.parametrize(
    "text",
    ["-1 updates", "1.5 epochs", "5%", "5 hours", "inf minutes", "1 2 epochs"],
)
def test_more_that_is_no_interval(text: str) -> None:
    with pytest.raises(ConfigError, match="is not understood: write '500 updates'"):
        parse_interval("log_every", text)
