"""Samples in Parquet, tar and Arrow files, on a disk or at a URL."""

from trueloop.feed.shards.dataset import Shards as Shards

__all__ = ["Shards"]
