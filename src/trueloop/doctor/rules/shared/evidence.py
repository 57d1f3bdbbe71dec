"""Questions about events that several rules ask."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trueloop.doctor.model.events import Backward, Event, Seeded, Used
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Value, contents
from trueloop.doctor.model.things import (
    Dataset,
    Loader,
    Loop,
    Model,
    Optimizer,
    StateDict,
    Thing,
)
from trueloop.doctor.model.vocabulary import RANK_GUARD

_SEEDER = re.compile(r"seed|determin|reproduc|random", re.I)


def asks_for_rank(guards: frozenset[str]) -> bool:
    """An open condition asks which of the processes this is."""
    return any(RANK_GUARD.search(guard) for guard in guards)


def is_alone(wrapper: Model) -> bool:
    """It was wrapped for several ranks in a world of one, as was seen live."""
    return wrapper.ranks == 1


def makes_world_of_one(event: Used) -> bool:
    """The process group has one rank, here or wherever the program runs."""
    is_group = event.what == "torch.distributed.init_process_group"
    return is_group and event.ranks == 1


def where_seeded(event: Seeded) -> Location:
    """The line that decides when the seed is set: the call of `set_seed()`, not its inside."""
    place = event.place
    for caller in reversed(event.stack):
        if not _SEEDER.search(place.function.rpartition(".")[2]):
            break
        place = caller
    return place


def batch_loop(event: Event) -> Loop | None:
    """The loop over batches that an event happened in."""
    turn = event.turn
    return turn.loop if turn is not None else None


def trained_loader(event: Backward) -> Loader | None:
    """The loader whose batch is trained on; None where that is not seen."""
    loop = batch_loop(event)
    if loop is not None and loop.loader is not None:
        return loop.loader
    return event.loss.loader if event.loss is not None else None


def lineage(dataset: Dataset | None) -> Iterator[Dataset]:
    """A data set and those that it is a part of."""
    seen: set[int] = set()
    while dataset is not None and id(dataset) not in seen:
        seen.add(id(dataset))
        yield dataset
        state_dicts_in = dataset.attributes.get("dataset")
        dataset = state_dicts_in if isinstance(state_dicts_in, Dataset) else dataset.parent


def called(thing: Thing | None, otherwise: str) -> str:
    """The user's name for a thing in quotes, or what it is."""
    return f"`{thing.name}`" if thing is not None and thing.name else otherwise


def called_as_part(model: Model, otherwise: str) -> str:
    """`model.encoder`, as far as it has names, or else what it is."""
    for parent in model.parents:
        for name, child in parent.children.items():
            if child is model:
                return f"`{'.'.join(filter(None, (parent.name, name)))}`"
    return called(model, otherwise)


def wrapped(model: Model, *wrappers: str) -> bool:
    return model.wrapper in wrappers


_WITH_PARAMETERS = re.compile(
    r"(Linear|Conv\w*|Embedding\w*|LSTM|GRU|RNN|\w+Cell|Bilinear|MultiheadAttention|Transformer\w*)$"
)


def layers_drawn(model: Model) -> set[Model]:
    """Its layers whose weights begin at random."""
    return {
        member
        for member in model.family()
        if member.kind.startswith("torch.nn.") and _WITH_PARAMETERS.search(member.kind)
    }


def draws_weights(model: Model) -> bool:
    """Making it drew random numbers."""
    return bool(layers_drawn(model))


_DIVIDES_BY_SIZE = re.compile(
    r"(\w*Adam\w*|NAdam|RMSprop|Adagrad|Adadelta|Rprop|Lion|Muon|Adafactor)(8bit)?$", re.I
)


def ignores_gradient_scale(optimizer: Optimizer) -> bool:
    """Its updates do not grow with the gradients: it divides their size out."""
    return bool(_DIVIDES_BY_SIZE.match(optimizer.kind.rpartition(".")[2]))


def state_dicts_in(value: Value | None, depth: int = 4) -> list[StateDict]:
    """The state dicts that a value is, or has in its containers."""
    if isinstance(value, StateDict):
        return [value]
    return [state for part in contents(value) if depth for state in state_dicts_in(part, depth - 1)]
