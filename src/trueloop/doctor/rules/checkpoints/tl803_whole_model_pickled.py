"""`torch.save(model)` pickles the object, not its weights.

## What it does

Finds `torch.save` of a module. The file contains the name and module path of the model's class and
all attributes of the object, instead of a table of tensors.

## Why it breaks training

Since torch 2.6 a plain `torch.load(path)` refuses such a file: loading it needs
`weights_only=False`, which runs any code in the file. After a file is moved, a class renamed or an
attribute added, it no longer loads at all, or loads an object whose code and contents do not match.
The wrapper of DDP or `torch.compile` and the device are pickled too.

## Wrong

```python
torch.save(model, "model.pt")
```

## Right

```python
torch.save(model.state_dict(), "model.pt")
# later
model = Net()
model.load_state_dict(torch.load("model.pt"))
```

## Sources

- PyTorch, "Saving and Loading Models", "Save/Load Entire Model":
  https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
- PyTorch, "Serialization semantics", "Saving and loading torch.nn.Modules":
  https://docs.pytorch.org/docs/stable/notes/serialization.html

## How it is detected

`torch.save` gets a module, or a dict or list that contains one directly. A warning where the
program also reads such a file, by its name or by its keys, with a `torch.load` that refuses it.
Advice where nothing reads it: the file may be one that nobody needs. Not reported: state dicts,
buffers in memory, tensors, scripted modules, values that may be a model only by their name, models
whose state dict the program saves beside (or that of a model of the same class: both ways are
shown), and tests.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, FileLoaded, FileSaved, ModelForward, ModeSet
from trueloop.doctor.model.findings import Remedy, Replace
from trueloop.doctor.model.known_values import DictValue, Value, contents
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, state_dicts_in
from trueloop.doctor.rules.shared.own_files import IN_MEMORY, OwnFiles


class WholeModelPickled(Rule):
    code = "TL803"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self._used: set[Model] = set()
        self._files = OwnFiles()
        self._saved_well: list[Model] = []
        """Models whose state dict is saved."""

    def on_model_forward(self, event: ModelForward) -> None:
        self._used.add(event.model)

    def on_mode_set(self, event: ModeSet) -> None:
        self._used.add(event.model)

    def on_file_loaded(self, event: FileLoaded) -> None:
        self._files.add(event)

    def on_file_saved(self, event: FileSaved) -> None:
        self._files.add(event)
        owners = (state.owner for state in state_dicts_in(event.value))
        self._saved_well += [owner for owner in owners if isinstance(owner, Model)]
        # Told at once, since a run may be stopped before its end; and again when all is known.
        if event.file != IN_MEMORY:
            self._check(event)

    def on_ended(self, event: Ended) -> None:
        self.findings.clear()
        for saved in self._files.saved:
            if saved.file != IN_MEMORY:
                self._check(saved)

    def _check(self, event: FileSaved) -> None:
        for key, model in _models_in(event.value):
            if model.kind.startswith("torch.jit.") or self._is_saved_well(model):
                continue
            if not (model.known or model in self._used):
                continue
            remedies: list[Remedy] = []
            if event.value is model and event.what.line:
                remedies = [Replace(event.what, "{}.state_dict()")]
            reads = self._files.reads_of(event, key)
            self.report(
                event.place,
                f"{called(model, 'The model')} is pickled as a whole object: a plain"
                " `torch.load` refuses the file since torch 2.6, and the file depends on this"
                " code's classes and paths.",
                fix=("Save `model.state_dict()`, and load it into a model that your code creates."),
                related=[(load.place, "refuses the file") for load in reads[:1]],
                remedies=remedies,
                severity=None if reads else "advice",
            )

    def _is_saved_well(self, model: Model) -> bool:
        return any(
            other.shares_parameters(model) or (model.kind and other.kind == model.kind)
            for other in self._saved_well
        )


def _models_in(value: Value | None) -> list[tuple[str, Model]]:
    """A model, or those that a container has directly, by key."""
    if isinstance(value, Model):
        return [("", value)]
    if isinstance(value, DictValue):
        return [(str(key), each) for key, each in value.entries.items() if isinstance(each, Model)]
    return [("", each) for each in contents(value) if isinstance(each, Model)]
