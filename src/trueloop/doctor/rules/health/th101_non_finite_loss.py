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

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import NonFiniteBatch, NonFiniteOrigin
from trueloop.doctor.rules.base import Rule


class NonFiniteLoss(Rule):
    code = "TH101"

    def __init__(self) -> None:
        super().__init__()
        self._reported_by_data = False

    def on_non_finite_batch(self, event: NonFiniteBatch) -> None:
        self._reported_by_data = True

    def on_non_finite_origin(self, event: NonFiniteOrigin) -> None:
        is_known = self._reported_by_data and event.data_rule
        left_out = event.outcome in ("left out", "harmless")
        line = event.line
        began = line if isinstance(line, Location) and line.line else event.place
        related = [] if began[:2] == event.place[:2] else [(event.place, _at_backward(event))]
        message = f"{_what(event)} {_where(event)}{_more(event)}"
        if event.outcome == "left out":
            message += " The program skips this batch."
        if event.outcome == "harmless":
            message += " Its gradients are finite."
        self.report(
            began,
            message,
            fix=_fix(event),
            related=related,
            severity="advice" if left_out or is_known else None,
        )


def _at_backward(event: NonFiniteOrigin) -> str:
    what = "the loss" if event.what == "loss" else "the gradient"
    return f"`backward()` of update {event.update}, where {what} is {event.kind}"


def _what(event: NonFiniteOrigin) -> str:
    update = event.update
    if event.what == "gradient":
        named = ", ".join(f"`{each}`" for each in event.gradients[:3])
        more = event.count - len(event.gradients[:3])
        others = f" and {more} more" if more > 0 else ""
        return (
            f"The gradient of {named}{others} is {event.kind} in update {update},"
            " although the loss is finite:"
        )
    return f"The loss is {event.kind} in update {update}:"


def _where(event: NonFiniteOrigin) -> str:
    if event.explosion:
        return _explosion(event)
    describe = _BY_CAUSE.get(event.cause)
    if describe is not None:
        return describe(event)
    return "repeating the computation did not show where it began."


def _operation(event: NonFiniteOrigin) -> str:
    makes = event.makes
    text = f"`{event.operation}`{_of_module(event)} returns {makes}"
    if event.inputs_bad:
        text += f" for an input that contains {event.inputs_bad[0]}"
    else:
        text += " for finite inputs"
    return f"{text}{_because(event)}.{_rows(event)}"


def _because(event: NonFiniteOrigin) -> str:
    return f" ({event.detail})" if event.detail else ""


def _of_module(event: NonFiniteOrigin) -> str:
    if not event.in_module:
        return f" in `{event.model}`" if event.model else " in the loss, outside of the model"
    if not event.module:
        return f" in `{event.model}`"
    return f" in `{event.module}` ({event.module_kind})"


def _explosion(event: NonFiniteOrigin) -> str:
    path = " → ".join(f"{each:.3g}" for each in event.recent)
    before = f"the last losses were {path}; " if path else ""
    norm = event.norm
    gradient = f", the latest gradient norm {norm:.3g}" if norm is not None else ""
    largest = (
        f"; the largest weight, in `{event.largest}`, is {event.largest_size:.3g}"
        if event.largest
        else ""
    )
    rate = (
        f"the learning rate is {event.lr:g}"
        if event.lr is not None
        else "the learning rate is unknown"
    )
    return f"training has diverged: {before}{rate}{gradient}{largest}.{_overflow(event)}"


def _overflow(event: NonFiniteOrigin) -> str:
    if event.cause != "operation":
        return ""
    return f" The first overflow is in `{event.operation}`{_of_module(event)}."


def _parameter(event: NonFiniteOrigin) -> str:
    since = (
        "before the first update"
        if event.update == 1
        else f"since update {event.update - 1} or earlier"
    )
    thing = event.cause
    rate = event.lr
    odd = rate is not None and rate - rate != 0
    return f"the {thing} `{event.name}` contains {event.makes}, {since}." + (
        f" The learning rate is {rate}." if odd else ""
    )


def _input(event: NonFiniteOrigin) -> str:
    return f"the argument `{event.name}` of `{event.model}` contains {event.makes}." + (
        _rows(event)
    )


def _rows(event: NonFiniteOrigin) -> str:
    rows = event.rows
    if not rows:
        return ""
    more = event.rows_count - len(rows)
    one = event.rows_count == 1
    listed = ", ".join(map(str, rows)) + (f" and {more} more" if more > 0 else "")
    text = f" It is in {'row' if one else 'rows'} {listed} of the batch"
    if event.samples:
        named = ", ".join(map(str, event.samples))
        text += f", {'sample' if one else 'samples'} {named} of the data set"
    return f"{text}."


def _constant(event: NonFiniteOrigin) -> str:
    return f"a tensor that `{event.model}` uses contains {event.makes}."


def _backward(event: NonFiniteOrigin) -> str:
    node = event.node.rpartition("::")[2]
    if event.loose:
        return (
            f"`{node}`, in the computation of the loss outside of the model, has an infinite"
            " or undefined derivative for some inputs."
        )
    module = event.module
    where = f" in `{module}`" if module else f" in `{event.model}`"
    operation = event.operation
    return f"it begins in `{node}`{where}, whose `{operation}` returns {event.makes}" + (
        f"{_because(event)}."
    )


_BY_CAUSE = {
    "operation": _operation,
    "parameter": _parameter,
    "buffer": _parameter,
    "input": _input,
    "constant": _constant,
    "backward": _backward,
}


def _more(event: NonFiniteOrigin) -> str:
    if event.bundle:
        return f" To reproduce it: `trueloop replay {event.bundle}`."
    return ""


def _fix(event: NonFiniteOrigin) -> str:
    operation = event.operation
    detail = event.detail
    cause = event.cause
    if event.explosion:
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
