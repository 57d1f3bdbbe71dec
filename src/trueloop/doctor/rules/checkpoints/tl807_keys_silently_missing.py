"""`load_state_dict(strict=False)` ignores keys that do not match, and so does the program.

## What it does

Finds `load_state_dict(strict=False)` whose result is not used, of a checkpoint that the program has
itself written. Keys that the model does not have are ignored, and parameters that the file does not
have keep their values. The call returns both lists.

## Why it breaks training

A program's own checkpoint has all keys of its model: what does not match is a fault. With a renamed
layer, a wrapper's prefix (`module.`) or the wrong file, nothing at all is loaded, and the "resumed"
model starts from random weights. Nothing raises; the score is worse, or the loss starts as high as
from scratch, and the cause is hard to find.

## Wrong

```python
model.load_state_dict(torch.load("model.pt"), strict=False)
```

## Right

```python
missing, unexpected = model.load_state_dict(torch.load("model.pt"), strict=False)
assert not unexpected and all(key.startswith("head.") for key in missing), (missing, unexpected)
```

## Sources

- PyTorch, `torch.nn.Module.load_state_dict`:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict

## How it is detected

`load_state_dict` with the constant `strict=False`, as a separate statement, with the result of
`torch.load` or one of its entries; the program saves this file, or files of the same keys. A
warning where keys are seen to be missing (in source: none of the model's parts has a name that is
in the file), advice otherwise: the file is mostly complete. Not reported: files that come from
elsewhere (published weights, which may have a different head), a result that is used, keys that
were removed or filtered by hand, sources that save a chosen part of a state dict themselves, files
of adapters that all fit into a model that has parts whose weights were loaded before, loops over
several files (unless, live, a file has keys that fit nothing), and a `strict` that is an option.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, FileLoaded, FileSaved, StateDictLoaded
from trueloop.doctor.model.things import Checkpoint, Model, StateDict, Tensor
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, draws_weights
from trueloop.doctor.rules.shared.own_files import OwnFiles


class KeysSilentlyMissing(Rule):
    code = "TL807"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self.files = OwnFiles()
        self.candidates: list[tuple[StateDictLoaded, FileLoaded]] = []
        self.filled: list[Model] = []
        """Models that have loaded a state before."""

    def on_file_saved(self, event: FileSaved) -> None:
        self.files.add(event)

    def on_file_loaded(self, event: FileLoaded) -> None:
        self.files.add(event)

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model):
            self._look_at(event, event.thing)
            self.filled.append(event.thing)

    def _look_at(self, event: StateDictLoaded, model: Model) -> None:
        parts = set(model.family())
        filled = any(not parts.isdisjoint(each.family()) for each in self.filled)
        if filled and event.missing and not event.unexpected:
            return  # an adapter's file, after that of the model it belongs to
        if event.strict is not False or event.result_used:
            return
        if not isinstance(event.state, Checkpoint) or event.state.edited:
            return
        if event.state.saved_in_part:
            # The rest is missing from the file on purpose.
            return
        if event.turns and not event.unexpected:
            # The weights are split over several files, and each has a part of the keys.
            return
        load = self.files.load_of(event.state)
        if load is not None:
            self.candidates.append((event, load))

    def on_ended(self, event: Ended) -> None:
        for candidate, load in self.candidates:
            if self.files.is_own(load):
                self._report(candidate, load)

    def _lost_in_source(self, event: StateDictLoaded, load: FileLoaded) -> tuple[str, ...]:
        """The model's parts, where the file has none of them: nothing is loaded."""
        model, wanted = event.thing, _names_of_parts(event.thing)
        saved = [each.value for each in self.files.saved if self.files.reads(load, each)]
        owners = [each.owner for each in saved if isinstance(each, StateDict) and not each.edited]
        if not isinstance(model, Model) or not wanted or not owners or len(owners) < len(saved):
            return ()
        if not all(names and names.isdisjoint(wanted) for names in map(_names_of_parts, owners)):
            return ()
        return tuple(f"{name}.*" for name, part in model.children.items() if draws_weights(part))

    def _report(self, event: StateDictLoaded, load: FileLoaded) -> None:
        missing = event.missing or self._lost_in_source(event, load)
        lost = ", ".join(f"`{key}`" for key in missing[:3])
        more = len(missing) - 3
        seen = f" (here {lost}{f' and {more} more' if more > 0 else ''})" if lost else ""
        self.report(
            event.place,
            f"With `strict=False`, {called(event.thing, 'the model')} keeps its current"
            f" values for every key of the program's own checkpoint that does not match{seen}, and"
            " the list of these keys is ignored: the model may be partly or wholly untrained.",
            fix="Leave `strict=False` out, or print the two lists that the call returns.",
            related=[(load.place, "loads the file")],
            severity=None if lost else "advice",
        )


def _names_of_parts(thing: object) -> set[str]:
    """With which the keys of a model begin that is known whole."""
    if not isinstance(thing, Model) or not thing.complete or thing.wrapper or thing.exposed:
        return set()
    tensors = {name for name, each in thing.attributes.items() if isinstance(each, Tensor)}
    return tensors | set(thing.children)
