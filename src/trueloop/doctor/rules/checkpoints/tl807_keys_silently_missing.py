"""`load_state_dict(strict=False)` ignores keys that do not match, and so does the program.

## What it does

Finds `load_state_dict(strict=False)` whose result is not used. Keys that the model does not have
are ignored, and parameters that the file does not have keep their values. The call returns both
lists.

## Why it breaks training

With a renamed layer, a wrapper's prefix (`module.`) or the wrong file, nothing at all is loaded:
the "pretrained" or "resumed" model starts from random weights. Nothing raises; the score is worse,
or the loss starts as high as from scratch, and the cause is hard to find.

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
`torch.load` or one of its entries. Not reported: a result that is used, keys that were removed or
filtered by hand, sources that save a chosen part of a state dict themselves, loops over several
files, and a `strict` that is an option.
"""

from __future__ import annotations

from trueloop.doctor.model.events import StateDictLoaded
from trueloop.doctor.model.things import Checkpoint, Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class KeysSilentlyMissing(Rule):
    code = "TL807"

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if event.strict is not False or event.result_used or not isinstance(event.thing, Model):
            return
        if not isinstance(event.state, Checkpoint) or event.state.edited:
            return
        if event.state.saved_in_part:
            # The rest is missing from the file on purpose.
            return
        if event.turns:
            # The weights are split over several files, and each has a part of the keys.
            return
        lost = ", ".join(f"`{key}`" for key in event.missing[:3])
        more = len(event.missing) - 3
        seen = f" (here {lost}{f' and {more} more' if more > 0 else ''})" if lost else ""
        self.report(
            event.place,
            f"With `strict=False`, {called(event.thing, 'the model')} keeps its current"
            f" values for every key that does not match{seen}, and the list of these keys"
            " is ignored: the model may be partly or wholly untrained.",
            fix="Use the two lists that it returns: check or print them.",
            related=[(event.state.made, "loads the file")],
        )
