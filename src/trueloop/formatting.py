"""Numbers, durations and the names of scores as people read them."""

from __future__ import annotations

import math
import shutil
import textwrap

_SPLITS = {"train": "training", "val": "validation", "test": "test"}
_TERMS = {
    "r2": "R²",
    "f1": "F1",
    "mae": "MAE",
    "mse": "MSE",
    "rmse": "RMSE",
    "mape": "MAPE",
    "auroc": "AUROC",
    "ap": "average precision",
    "iou": "IoU",
    "mcc": "MCC",
    "nll": "NLL",
}


def split_of(name: str) -> tuple[str | None, str]:
    """A score's split and its bare name: "val_accuracy" is ("val", "accuracy")."""
    head, _, rest = name.partition("_")
    return (head, rest) if head in _SPLITS and rest else (None, name)


def score_name(name: str) -> str:
    """A score's name in words: "val_accuracy" is "validation accuracy"."""
    split, bare = split_of(name)
    words = " ".join(_term(word) for word in bare.split("_"))
    return words if split is None else f"{_SPLITS[split]} {words}"


def _term(word: str) -> str:
    if word.startswith("top") and word[3:].isdigit():
        return f"top-{word[3:]}"
    return _TERMS.get(word, word)


def capital(text: str) -> str:
    """With a capital first letter; the rest as it is (unlike `str.capitalize`)."""
    return text[:1].upper() + text[1:]


def number(value: float | None) -> str:
    """Four significant digits, or whole with separators from 1,000 on; "–" for nothing."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size == 0 or size >= 1e7 or size < 1e-4:
        text = "0" if size == 0 else f"{value:.2e}"
    elif size >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:#.4g}".rstrip(".")
    return text.replace("-", "−")


def percent(share: float) -> str:
    """A share as a percentage, with a digit after the point where that says something."""
    value = 100 * share
    if 0 < value < 0.1:
        return "under 0.1%"
    return f"{value:.1f}%" if value < 10 and round(value, 1) != round(value) else f"{value:.0f}%"


def duration(seconds: float | None) -> str:
    """A length of time in words: "0.43 s", "12.3 s", "2 min 14 s", "3 h 05 min"."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def clock(seconds: float) -> str:
    """A length of time as a clock shows it: "1:12", "2:05:09"."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def broken(line: str) -> str:
    """A line for a terminal: broken between words at its width, what follows indented."""
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
