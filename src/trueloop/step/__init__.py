"""One optimizer update, whole: its window, precision, ranks, clipping and schedule."""

from trueloop.step.averaging import EMA, SWA
from trueloop.step.outliers import Outliers
from trueloop.step.parallel import DDPOptions
from trueloop.step.sharding import FSDPOptions
from trueloop.step.step import Step

__all__ = ["EMA", "SWA", "DDPOptions", "FSDPOptions", "Outliers", "Step"]
