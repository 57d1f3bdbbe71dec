"""The run directory and what is made of it: log, progress, pictures, report."""

from trueloop.checkpoint import claimed
from trueloop.run.album import Album
from trueloop.run.comparison import compare
from trueloop.run.directory import Run, RunSummary
from trueloop.run.log import MetricsLog
from trueloop.run.machine import environment
from trueloop.run.progress import Progress
from trueloop.run.report import write_report

__all__ = [
    "Album",
    "MetricsLog",
    "Progress",
    "Run",
    "RunSummary",
    "claimed",
    "compare",
    "environment",
    "write_report",
]
