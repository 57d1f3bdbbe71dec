"""One optimizer update, whole: its window, precision, ranks, clipping and schedule."""

from trueloop.step.outliers import Outliers
from trueloop.step.parallel import DDPOptions
from trueloop.step.sharding import FSDPOptions
from trueloop.step.step import Step

__all__ = ["DDPOptions", "FSDPOptions", "Outliers", "Step"]
