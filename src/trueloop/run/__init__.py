"""The run directory and what is made of it: log, pictures, report."""

from trueloop.checkpoint import claimed
from trueloop.run.comparison import compare
from trueloop.run.directory import Run, RunSummary
from trueloop.run.environment import environment
from trueloop.run.figures import Figures
from trueloop.run.log import MetricsLog
from trueloop.run.report import write_report

__all__ = [
    "Figures",
    "MetricsLog",
    "Run",
    "RunSummary",
    "claimed",
    "compare",
    "environment",
    "write_report",
]
