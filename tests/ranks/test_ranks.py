"""The process group and what its ranks compute together."""

from __future__ import annotations

import time

import pytest
import torch

from on_ranks import on_ranks
from trueloop import ranks
from trueloop.errors import ConfigError


def _everything() -> dict[str, object]:
    me = torch.tensor([float(ranks.rank() + 1), 2.0], dtype=torch.float64)
    pending = ranks.start_sum(me, "a test")
    return {
        "rank": ranks.rank(),
        "world": ranks.world_size(),
        "main": ranks.is_main(),
        "sum": ranks.sum_over_ranks(me).tolist(),
        "mean": ranks.reduced(me, "mean").tolist(),
        "max": ranks.reduced(me, "max").tolist(),
        "min": ranks.reduced(me, "min").tolist(),
        "pending": pending.result().tolist(),
        "mine": me.tolist(),
        "gathered": ranks.gathered({"rank": ranks.rank()}),
        "from_main": ranks.from_main(f"said by {ranks.rank()}"),
        "has_store": ranks.store() is not None,
    }


@pytest.mark.parametrize("count", [1, 2, 3])
def test_collectives_agree_with_arithmetic(count: int) -> None:
    numbers = [float(rank + 1) for rank in range(count)]
    for rank, found in enumerate(on_ranks(count, _everything)):
        assert (found["rank"], found["world"]) == (rank, count)
        assert found["main"] == (rank == 0)
        assert found["sum"] == found["pending"] == [sum(numbers), 2.0 * count]
        assert found["mean"] == [sum(numbers) / count, 2.0]
        assert (found["max"], found["min"]) == ([count, 2.0], [1.0, 2.0])
        assert found["mine"] == [rank + 1.0, 2.0], "the value itself stays"
        assert found["gathered"] == [{"rank": each} for each in range(count)]
        assert found["from_main"] == "said by 0"
        assert found["has_store"] == (count > 1)


def _calls_until_agreed(pause: float) -> tuple[int, int]:
    """The call at which this rank learns that rank 1 has wanted to stop since its third call."""
    agreement = ranks.Agreement(seconds=0.05)
    for call in range(1, 20_000):
        time.sleep(pause * (1 + ranks.rank()))
        if agreement.ask(ranks.rank() == 1 and call >= 3):
            return call, agreement._next
    return 0, 0


@pytest.mark.parametrize("pause", [0.0, 0.02])
def test_all_ranks_agree_at_the_same_call(pause: float) -> None:
    first, second = on_ranks(2, _calls_until_agreed, pause)
    assert first == second
    assert first[0] > 0


def test_in_one_process_the_answer_is_ones_own() -> None:
    agreement = ranks.Agreement()
    assert not agreement.ask(False)
    assert agreement.ask(True)


def test_an_environment_that_does_not_say_how_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(ConfigError, match="start the processes with torchrun"),
        ranks.joined(torch.device("cpu")),
    ):
        pass
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(ConfigError, match="WORLD_SIZE='many'"):
        ranks.launched_ranks()
