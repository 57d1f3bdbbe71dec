"""The table task: classification or regression on the columns of a CSV or Parquet file."""

from trueloop.tasks.table.network import TableNet
from trueloop.tasks.table.task import Table

__all__ = ["Table", "TableNet"]
