"""Why a run ends before its last epoch: no more progress (`early`), a signal or the clock (`stop`);
and why it might never end (`hang`)."""

from trueloop.stopping.early import EarlyStopping
from trueloop.stopping.hang import HangWatch
from trueloop.stopping.stop import Stop, WaitInterrupted

__all__ = ["EarlyStopping", "HangWatch", "Stop", "WaitInterrupted"]
