"""The state dict of a wrapper is saved, with the wrapper's prefix on every key.

## What it does

Finds a saved state dict of a wrapper. DistributedDataParallel and DataParallel have the model as
`module`, a compiled model has it as `_orig_mod`: the keys are `module.fc.weight` instead of
`fc.weight`.

## Why it breaks training

The file only loads into a model with the same wrapper. Evaluation on one device, fine-tuning and
export fail with missing and unexpected keys, or, with `strict=False`, load nothing and run with
random weights.

## Wrong

```python
model = DistributedDataParallel(model)
torch.save(model.state_dict(), "model.pt")
```

## Right

```python
torch.save(model.module.state_dict(), "model.pt")
```

For a compiled model keep the original: `compiled = torch.compile(model)`, then
`model.state_dict()`.

## Sources

- PyTorch, "Saving and Loading Models", "Saving torch.nn.DataParallel Models":
  https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
- PyTorch, "Getting Started with Distributed Data Parallel", "Save and Load Checkpoints":
  https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html

## How it is detected

`torch.save` writes the state dict of a wrapper as `state_dict()` returned it. A warning where the
program loads this file, by its name or by the keys it reads, into a model without the wrapper;
advice where nothing shows who reads it, or where an option decides whether the model is wrapped.
Not reported: keys that are changed first, a saved inner module, programs that load their state into
the wrapper again or into a second wrapper of the kind (the prefixes agree), and sources that remove
the prefix.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, FileLoaded, FileSaved, StateDictLoaded
from trueloop.doctor.model.file_origins import checkpoint_of
from trueloop.doctor.model.findings import Location, Remedy, Replace
from trueloop.doctor.model.things import Model, StateDict
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import state_dicts_in
from trueloop.doctor.rules.shared.own_files import OwnFiles

_WRAPPERS = {
    "ddp": ("DistributedDataParallel", "module"),
    "dp": ("DataParallel", "module"),
    "compile": ("torch.compile", "_orig_mod"),
}


class WrappedKeysSaved(Rule):
    code = "TL804"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self._loaded: set[Model] = set()
        self._files = OwnFiles()
        self._bare: list[FileLoaded] = []
        """Files that a model without a wrapper took its state from."""
        self._written: list[tuple[StateDict, Model, FileSaved]] = []
        """Whether anything reads such a file is known at the end."""
        self._into: set[tuple[str, str]] = set()
        """Files that were loaded, and the kind of wrapper that took them."""
        self._saved: set[tuple[str, str, Location]] = set()

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model):
            self._loaded.add(event.thing)
            loaded = checkpoint_of(event.state)
            file = self._files.load_of(loaded) if loaded is not None else None
            if file is not None and event.thing.known and not event.thing.wrapper:
                self._bare.append(file)
            if loaded is not None and event.thing.wrapper:
                self._into.add((loaded.file, event.thing.wrapper))
                for name, wrapper, place in self._saved:
                    if (name, wrapper) in self._into:
                        self.refute(place)

    def on_file_loaded(self, event: FileLoaded) -> None:
        self._files.add(event)

    def on_file_saved(self, event: FileSaved) -> None:
        for state in state_dicts_in(event.value):
            owner = state.owner
            if not isinstance(owner, Model) or owner.wrapper not in _WRAPPERS:
                continue
            if state.edited or state.prefix_known:
                continue
            saved = (event.file, owner.wrapper, state.made)
            self._saved.add(saved)
            if self._reads_it_back(state, owner) or saved[:2] in self._into:
                self.refute(state.made)
            else:
                # Told at once, since a run may be stopped before its end; and again at its end.
                self._written.append((state, owner, event))
                self._report(state, owner, event)

    def on_ended(self, event: Ended) -> None:
        self.findings.clear()
        for state, owner, saved in self._written:
            self._report(state, owner, saved)

    def _reads_it_back(self, state: StateDict, owner: Model) -> bool:
        """The wrapper is given a state in this program; seen, or in a branch not taken here."""
        if owner in self._loaded:
            return True
        return bool(state.loaded_back) and owner.wraps not in self._loaded

    def _report(self, state: StateDict, owner: Model, event: FileSaved) -> None:
        wrapper, inside = _WRAPPERS[owner.wrapper]
        remedies: list[Remedy] = []
        taken = state.taken_from
        if taken is not None:
            remedies = [Replace(taken, f"{{}}.{inside}")]
        reads = [load for load in self._bare if self._files.reads(load, event)]
        self.report(
            state.made,
            f"The keys of this state dict begin with `{inside}.`, the prefix of"
            f" `{wrapper}`: the file does not load into the unwrapped model.",
            fix=f"Save the inner module: `.{inside}.state_dict()`.",
            related=[
                (owner.made, "wrapped here"),
                (event.place, "saved here"),
                *((load.place, "loaded into a model without the wrapper") for load in reads[:1]),
            ],
            remedies=remedies,
            # By an option it is wrapped in the runs that load the file too, or in none of them; for
            # the number of devices, in some.
            severity=None if reads and all("count" in each for each in owner.guards) else "advice",
        )
