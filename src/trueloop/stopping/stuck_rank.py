"""Which rank the others wait for, from what each has said of itself."""

from __future__ import annotations

from collections import Counter

from trueloop.ranks.heartbeat import Beat

Silence = str
"""Of a rank without a sign of life: `stopped`, `gone`, `alive` (the process, whose interpreter is
blocked), `elsewhere` (on a different machine), `absent` (it has never given one)."""

_WORDS = {
    "stopped": "is stopped by a signal: kill -CONT {pid} continues it",
    "gone": "has died",
    "alive": "is alive, but something in it holds Python's GIL: py-spy dump --pid {pid}",
    "elsewhere": "gives no sign of life: it is stopped, or its machine or the network is down",
}


def verdict(beats: dict[int, Beat], silent: dict[int, Silence]) -> tuple[int, str]:
    """The rank that the others wait for, and one line about it, from the last sign of life of each
    rank, and the ranks that have given none for a while."""
    for rank, silence in sorted(silent.items()):
        if rank not in beats:
            return rank, f"rank {rank} has never given a sign of life: see its output"
        beat = beats[rank]
        words = _WORDS[silence].format(pid=beat.pid)
        return rank, f"{beat.who} {words} (last seen {beat.place})"
    if len(beats) == 1:
        ((rank, beat),) = beats.items()
        return rank, f"the run is at: {beat.place}"
    for find in (_behind_in_calls, _behind_in_phase, _behind_in_updates):
        rank_found, words = find(beats)
        if rank_found is not None:
            return rank_found, words
    if len({beat.pending for beat in beats.values()}) > 1:
        places = "; ".join(f"rank {rank}: {beat.place}" for rank, beat in sorted(beats.items())[:4])
        return min(beats), f"the ranks wait for different things ({places})"
    places = beats[min(beats)].place
    return min(beats), f"all ranks are at the same place ({places})"


def _behind_in_calls(beats: dict[int, Beat]) -> tuple[int | None, str]:
    """A rank that has not entered the collective that others are in."""
    for group in sorted({name for beat in beats.values() for name in beat.calls}):
        entered = {r: beat.calls[group] for r, beat in beats.items() if group in beat.calls}
        most = max(entered.values())
        missing = [rank for rank in sorted(entered) if entered[rank] < most]
        if missing:
            inside = [rank for rank in sorted(entered) if entered[rank] == most]
            what = next((beats[r].pending for r in inside if beats[r].pending), "a collective")
            who = beats[missing[0]]
            return who.rank, (
                f"{who.who} has not reached what {_listed(inside)} in ({what}); it is at: "
                f"{who.place}"
            )
    return None, ""


def _behind_in_phase(beats: dict[int, Beat]) -> tuple[int | None, str]:
    """A rank that does something else than most: that waits for data, above all."""
    phases = Counter(beat.phase for beat in beats.values())
    if len(phases) == 1:
        return None, ""
    wanted = "waiting for data" if "waiting for data" in phases else phases.most_common()[-1][0]
    who = next(beat for _, beat in sorted(beats.items()) if beat.phase == wanted)
    return who.rank, f"{who.who} is at: {who.place}, and the others are not"


def _behind_in_updates(beats: dict[int, Beat]) -> tuple[int | None, str]:
    places = {rank: (beat.update, beat.epoch, beat.batch) for rank, beat in beats.items()}
    least = min(places.values())
    if least == max(places.values()):
        return None, ""
    who = next(beats[rank] for rank in sorted(beats) if places[rank] == least)
    return who.rank, f"{who.who} has made less progress than the others, and is at: {who.place}"


def _listed(found: list[int]) -> str:
    shown = ", ".join(map(str, found[:8])) + (", …" if len(found) > 8 else "")
    return f"rank {shown} is" if len(found) == 1 else f"ranks {shown} are"
