"""fit: the loop around the step (`loop`), its state (`fit_state`), saves (`saving`) and arguments
(`fit_arguments`); the batches of a loop that is written out (`written_out`)."""

from trueloop.loop.fit_state import History
from trueloop.loop.loop import fit
from trueloop.loop.written_out import batches

__all__ = ["History", "batches", "fit"]
