"""The loss, or its gradient, is NaN or infinite; the finding names the origin.

## What it does

Finds a loss that is not finite, or non-finite gradients of a finite loss that an optimizer applies.
It repeats the batch, module by module and operation by operation, and names the first operation,
the parameter, the buffer or the samples. The computation is saved in a folder that `trueloop
replay` runs again.

## Why it breaks training

A NaN gradient makes every parameter NaN, and from then on every output. The printed loss shows that
it has happened, but not where: a logarithm or a division three modules deep, one sample in fifty
thousand, a mask row without an entry, a learning rate at which the values overflow.

## Wrong

```python
probabilities = model(inputs).softmax(dim=1)
loss = -(targets * probabilities.log()).sum(dim=1).mean()  # the log of 0
```

## Right

```python
loss = -(targets * model(inputs).log_softmax(dim=1)).sum(dim=1).mean()
```

## Sources

- PyTorch, [torch.autograd.detect_anomaly](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
- PyTorch, [Numerical accuracy](https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html)

## How it is detected

In a running program: at each `backward()` the loss is checked (on an accelerator every 16th update
after the first ones, without waiting for it). The calls of models and losses since the last
`backward()` are repeated on copies, with the same random numbers; the program's own tensors do not
change. It is advice if the program skips the loss (a gradient scaler or the program skips the
step), or if the operation's gradients are finite. Not reported: gradients that overflow under a
scaler, and infinities that the program itself sets.
"""

from __future__ import annotations

from typing import Any

from trueloop.doctor.model.events import Measured
from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.base import Rule


class NonFiniteLoss(Rule):
    code = "TH101"

    def __init__(self) -> None:
        super().__init__()
        self._told_by_data = False

    def on_measured(self, event: Measured) -> None:
        if event.what == "non-finite":
            self._told_by_data = True
        if event.what != "non-finite loss":
            return
        values = event.values
        is_known = self._told_by_data and values["data rule"]
        left_out = values["outcome"] in ("left out", "harmless")
        line = values.get("line")
        began = line if isinstance(line, Location) and line.line else event.place
        related = [] if began[:2] == event.place[:2] else [(event.place, _at_backward(values))]
        message = f"{_what(values)} {_where(values)}{_more(values)}"
        if values["outcome"] == "left out":
            message += " The program skips this batch."
        if values["outcome"] == "harmless":
            message += " Its gradients are finite."
        self.report(
            began,
            message,
            fix=_fix(values),
            related=related,
            severity="advice" if left_out or is_known else None,
        )


def _at_backward(values: dict[str, Any]) -> str:
    what = "the loss" if values["what"] == "loss" else "the gradient"
    return f"`backward()` of update {values['update']}, where {what} is {values['kind']}"


def _what(values: dict[str, Any]) -> str:
    update = values["update"]
    if values["what"] == "gradient":
        named = ", ".join(f"`{each}`" for each in values["gradients"][:3])
        more = values["count"] - len(values["gradients"][:3])
        others = f" and {more} more" if more > 0 else ""
        return (
            f"The gradient of {named}{others} is {values['kind']} in update {update},"
            " although the loss is finite:"
        )
    return f"The loss is {values['kind']} in update {update}:"


def _where(values: dict[str, Any]) -> str:
    if values.get("explosion"):
        return _explosion(values)
    describe = _BY_CAUSE.get(values["cause"])
    if describe is not None:
        return describe(values)
    return "repeating the computation did not show where it began."


def _operation(values: dict[str, Any]) -> str:
    makes = values["makes"]
    text = f"`{values['operation']}`{_of_module(values)} returns {makes}"
    if values["inputs_bad"]:
        text += f" for an input that contains {values['inputs_bad'][0]}"
    else:
        text += " for finite inputs"
    return f"{text}{_because(values)}.{_rows(values)}"


def _because(values: dict[str, Any]) -> str:
    return f" ({values['detail']})" if values.get("detail") else ""


def _of_module(values: dict[str, Any]) -> str:
    if not values["in_module"]:
        return (
            f" in `{values['model']}`"
            if values.get("model")
            else " in the loss, outside of the model"
        )
    if not values["module"]:
        return f" in `{values['model']}`"
    return f" in `{values['module']}` ({values['module_kind']})"


def _explosion(values: dict[str, Any]) -> str:
    path = " → ".join(f"{each:.3g}" for each in values["recent"])
    before = f"the last losses were {path}; " if path else ""
    norm = values.get("norm")
    gradient = f", the latest gradient norm {norm:.3g}" if norm is not None else ""
    largest = (
        f"; the largest weight, in `{values['largest']}`, is {values['largest_size']:.3g}"
        if values["largest"]
        else ""
    )
    rate = (
        f"the learning rate is {values['lr']:g}"
        if values["lr"] is not None
        else "the learning rate is unknown"
    )
    return f"training has diverged: {before}{rate}{gradient}{largest}.{_overflow(values)}"


def _overflow(values: dict[str, Any]) -> str:
    if values["cause"] != "operation":
        return ""
    return f" The first overflow is in `{values['operation']}`{_of_module(values)}."


def _parameter(values: dict[str, Any]) -> str:
    since = (
        "before the first update"
        if values["update"] == 1
        else f"since update {values['update'] - 1} or earlier"
    )
    thing = values["cause"]
    rate = values.get("lr")
    odd = rate is not None and rate - rate != 0
    return f"the {thing} `{values['name']}` contains {values['makes']}, {since}." + (
        f" The learning rate is {rate}." if odd else ""
    )


def _input(values: dict[str, Any]) -> str:
    return f"the argument `{values['name']}` of `{values['model']}` contains {values['makes']}." + (
        _rows(values)
    )


def _rows(values: dict[str, Any]) -> str:
    rows = values.get("rows")
    if not rows:
        return ""
    more = values["rows_count"] - len(rows)
    one = values["rows_count"] == 1
    listed = ", ".join(map(str, rows)) + (f" and {more} more" if more > 0 else "")
    text = f" It is in {'row' if one else 'rows'} {listed} of the batch"
    if values.get("samples"):
        named = ", ".join(map(str, values["samples"]))
        text += f", {'sample' if one else 'samples'} {named} of the data set"
    return f"{text}."


def _constant(values: dict[str, Any]) -> str:
    return f"a tensor that `{values['model']}` uses contains {values['makes']}."


def _backward(values: dict[str, Any]) -> str:
    node = values["node"].rpartition("::")[2]
    if values.get("loose"):
        return (
            f"`{node}`, in the computation of the loss outside of the model, has an infinite"
            " or undefined derivative for some inputs."
        )
    module = values.get("module")
    where = f" in `{module}`" if module else f" in `{values['model']}`"
    operation = values["operation"]
    return f"it begins in `{node}`{where}, whose `{operation}` returns {values['makes']}" + (
        f"{_because(values)}."
    )


_BY_CAUSE = {
    "operation": _operation,
    "parameter": _parameter,
    "buffer": _parameter,
    "input": _input,
    "constant": _constant,
    "backward": _backward,
}


def _more(values: dict[str, Any]) -> str:
    if values.get("bundle"):
        return f" To reproduce it: `trueloop replay {values['bundle']}`."
    return ""


def _fix(values: dict[str, Any]) -> str:
    operation = str(values.get("operation", ""))
    detail = str(values.get("detail", ""))
    cause = values["cause"]
    if values.get("explosion"):
        return "Lower the learning rate, warm it up, or clip the gradient norm."
    if cause == "backward":
        return "Avoid inputs where the derivative is infinite: sqrt(x + eps), clamp(min=eps)."
    if cause == "input":
        return "Remove or repair these samples before batching."
    if cause in ("parameter", "buffer"):
        return "Initialise it when you create it: torch.zeros or torch.ones, not torch.empty."
    if "softmax" in operation and detail:
        return "Leave at least one unmasked entry in each row, or mask with a large finite number."
    if "log" in operation:
        return "Use log_softmax or logsigmoid of the logits, or clamp(min=eps) before the log."
    if "div" in operation or "reciprocal" in operation:
        return "Add a small number to the denominator."
    if "float16" in detail:
        return "Use bfloat16, or compute this part in float32."
    return "Keep the values in a representable range before this operation."
