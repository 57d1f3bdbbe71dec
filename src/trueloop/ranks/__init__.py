"""This process among its peers; in one process every function here is a no-op.

On torch's own engine: the process group that `torchrun` describes (`group`), its collectives
(`collectives`), a question asked of all ranks without a wait (`agreement`), and what each rank is
doing just now (`progress`).
"""

from __future__ import annotations

from trueloop.ranks.agreement import Agreement
from trueloop.ranks.collectives import (
    PendingSum,
    barrier,
    from_main,
    gathered,
    host_group,
    of_each_part,
    reduced,
    start_sum,
    sum_over_ranks,
)
from trueloop.ranks.failure import prefix, speaks
from trueloop.ranks.group import (
    all_raise,
    ask_to_stop,
    data_parallel,
    fail_before_joining,
    has_stopped,
    is_distributed,
    is_main,
    joined,
    launched_ranks,
    local_rank,
    local_world_size,
    look,
    rank,
    stop_signal,
    store,
    watcher_of_group,
    world_size,
)
from trueloop.ranks.progress import RankProgress, here, waiting
from trueloop.ranks.together import on_all, on_main

__all__ = [
    "Agreement",
    "PendingSum",
    "RankProgress",
    "all_raise",
    "ask_to_stop",
    "barrier",
    "data_parallel",
    "fail_before_joining",
    "from_main",
    "gathered",
    "has_stopped",
    "here",
    "host_group",
    "is_distributed",
    "is_main",
    "joined",
    "launched_ranks",
    "local_rank",
    "local_world_size",
    "look",
    "of_each_part",
    "on_all",
    "on_main",
    "prefix",
    "rank",
    "reduced",
    "speaks",
    "start_sum",
    "stop_signal",
    "store",
    "sum_over_ranks",
    "waiting",
    "watcher_of_group",
    "world_size",
]
