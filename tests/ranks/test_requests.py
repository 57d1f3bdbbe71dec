"""How often a rank asks the one store that all ranks share."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch.distributed import HashStore

from trueloop.ranks import group, heartbeat
from trueloop.ranks.rank_watcher import RankWatcher


class Counted:
    """A store that counts its requests."""

    def __init__(self) -> None:
        self.store, self.requests = HashStore(), 0

    def __getattr__(self, name: str) -> Any:
        if name == "clone":
            raise AttributeError(name)
        self.requests += 1
        return getattr(self.store, name)


@pytest.mark.parametrize(("rank", "local", "here"), [(0, 0, 8), (8_003, 3, 8), (9_999, 1, 2)])
def test_a_rank_of_many_asks_for_the_ranks_of_its_host_alone(
    rank: int, local: int, here: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(local))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(here))
    on_host = group._on_host(rank, 10_000)
    assert list(on_host) == [*range(rank - local, rank - local + here)]
    store = Counted()
    for other in on_host:
        heartbeat.put(store, heartbeat.own(other, 1, {}))
    watcher = RankWatcher(store, rank, 10_000, on_host)
    store.requests = 0
    watcher._meet_neighbours()
    assert store.requests == 2 * (here - 1)
    assert sorted(watcher._neighbours) == [other for other in on_host if other != rank]


def test_without_the_launchers_word_any_rank_may_be_on_this_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert group._on_host(1, 4) == range(4)


@pytest.mark.parametrize(("ranks", "lazy"), [(63, None), (64, "1")])
def test_with_many_ranks_gloo_connects_only_those_that_talk(
    ranks: int, lazy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_GLOO_LAZY_INIT", "")  # to be put back
    monkeypatch.delenv("TORCH_GLOO_LAZY_INIT")
    seen: list[str | None] = []
    monkeypatch.setattr(
        group.dist,
        "init_process_group",
        lambda *_, **__: seen.append(os.environ.get("TORCH_GLOO_LAZY_INIT")),
    )
    group._init(torch.device("cpu"), HashStore(), 0, ranks, timedelta(seconds=1))
    assert seen == [lazy]
