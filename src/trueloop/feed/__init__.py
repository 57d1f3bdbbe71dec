"""Batches in a known order at a known position."""

from trueloop.feed.batched import BatchDataset as BatchDataset
from trueloop.feed.draws import Draws as Draws
from trueloop.feed.feed import Feed as Feed
from trueloop.feed.shards import Shards as Shards

__all__ = ["BatchDataset", "Draws", "Feed", "Shards"]
