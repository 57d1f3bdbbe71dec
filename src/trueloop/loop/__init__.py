"""fit: the loop around the step (`loop`), its state (`fit_state`), saves (`saving`) and arguments
(`fit_arguments`)."""

from trueloop.loop.fit_state import History
from trueloop.loop.loop import fit

__all__ = ["History", "fit"]
