"""`ReduceLROnPlateau` monitors a metric in the wrong direction.

## What it does

Finds a `ReduceLROnPlateau` in `min` mode (the default) that gets a metric which should rise, such
as accuracy, F1 or IoU, and one in `max` mode that gets a loss or an error.

## Why it breaks training

Improvements count as none. After `patience` epochs of steady progress the learning rate is reduced,
and reduced again, until the model stops learning: the better the training, the sooner. The log
shows a learning rate that falls while the metric still improves.

## Wrong

```python
scheduler = ReduceLROnPlateau(optimizer, patience=3)     # mode="min"
for epoch in range(epochs):
    train(...)
    scheduler.step(validation_accuracy)
```

## Right

```python
scheduler = ReduceLROnPlateau(optimizer, mode="max", patience=3)
for epoch in range(epochs):
    train(...)
    scheduler.step(validation_accuracy)
```

## Sources

- PyTorch, [ReduceLROnPlateau](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html):
  "In min mode, lr will be reduced when the quantity monitored has stopped decreasing; in max mode
  it will be reduced when the quantity monitored has stopped increasing."

## How it is detected

The name of the metric in the code decides: `acc`, `accuracy`, `f1`, `auc`, `iou`, `dice`, `bleu`,
`hit_rate` and others should rise; `loss`, `error`, `mse`, `perplexity`, `wer` and others should
fall; `dice_loss` is a loss, and `-acc` and `1 - acc` reverse the direction. Where the name says
neither (`score`, `metrics[key]`), what the caller passes for it decides, or the one value that is
assigned to it, or what the function that was called returns: a count of `predicted == labels` or of
`positives > negatives` should rise, a sum of `cross_entropy(...)` should fall. Not reported: names
that stay neutral or contradict each other, a mode that is an option, and metrics chosen under a
condition.
"""

from __future__ import annotations

import ast
import re

from trueloop.doctor.model.events import SchedulerStep
from trueloop.doctor.model.nodes import last_part
from trueloop.doctor.rules.shared.schedule_clock import ScheduleClock, ScheduleRule, called

_RISING = re.compile(
    r"accs?\d*|accurac(y|ies)|correct|top[1-9]|ap\d*|f1|fscore|fbeta|auc|auroc|auprc|roc|map\d*|mapk?|m?iou"
    r"|jaccard|dice|bleu\d?|rouge\w?|meteor|cider|r2|psnr|ssim|precision|recall|sensitivity"
    r"|specificity|mcc|kappa|qwk|ndcg|mrr|hits?|hitrate|spearmanr?|pearsonr?|nmi|pck|rewards?"
)
_FALLING = re.compile(
    r"loss(es)?|error|errors|err|[nr]?mse|mae|rmsle|mape|smape|perplexity|ppl|[wc]er|nll|bce|eer|fid"
    r"|lpips"
)
_UNCLEAR = re.compile(
    r"neg|negative|minus|inv|inverse|inverted|gap|drop|diff|difference|delta|change|deficit|shortfall"
    r"|missing|missed|lost|std|var|variance|spread|excess|complement"
)
"""Words with which a metric may be better the other way: `accuracy_gap`, `f1_drop`."""
_PREDICTION = re.compile(r"argmax|topk|(\w+_)?(pred(s|icted|ictions?)?|guess(es|ed)?)")
_LABELS = re.compile(
    r"y|[xb]?y[bs]?|y_?(true|batch)|(\w+_)?(labels?|targets?|tgt|gt|truths?|tags?|gold|answers?)"
)
_PAIR = re.compile(r"(pos|neg)(itives?|atives?)?(_(scores?|logits?|sims?))?s?")
_LOSS = re.compile(r"cross_?entropy|criterion", re.I)
_THROUGH = frozenset(
    "item mean sum cpu detach numpy float int abs round compute average nanmean median tensor array"
    " asarray get max min sqrt as_tensor to long double type fmean count_nonzero".split()
)
"""Calls that leave the direction as it is."""


class PlateauWatchesWrongWay(ScheduleRule):
    code = "TL604"

    def check(self, clock: ScheduleClock) -> None:
        scheduler = clock.scheduler
        mode = scheduler.arguments.get("mode")
        if scheduler.kind != "ReduceLROnPlateau" or mode not in ("min", "max"):
            return
        written = scheduler.written.get("mode", "'min'")
        if " if " in written:
            # An option says what to watch, and may say what the metric is as well.
            return
        certain = written[:1] in "'\"" and (clock.made is None or not clock.made.guards)
        for call in clock.calls:
            if call.metric is None or not (certain or (self.whole_program and clock.free(call))):
                continue
            names = (call.metric_name, *call.metric_origins)
            ways = {each: way for each in names if (way := direction(each))}
            if len({*ways.values()}) == 1 and (max(ways.values()) > 0) != (mode == "max"):
                self._report(call, clock, next(iter(ways)), max(ways.values()) > 0)

    def _report(self, call: SchedulerStep, clock: ScheduleClock, name: str, rises: bool) -> None:
        mode, other = ("min", "max") if rises else ("max", "min")
        own = call.metric_name
        watched = f"`{name}`" if name == own else f"`{own}`, which is `{name}`,"
        self.report(
            call.place,
            f"{called(clock.scheduler)} uses mode={mode!r}, but {watched}"
            f" should {'rise' if rises else 'fall'}: improvements count as none, and the"
            " learning rate is reduced while the model still learns.",
            related=[(clock.scheduler.made, f"created here, with mode={mode!r}")],
            fix=f"Pass mode={other!r}.",
        )


def direction(name: str) -> int:
    """1 for a metric that should rise, -1 for one that should fall, 0 if its name says neither."""
    try:
        return _of(ast.parse(name, mode="eval").body)
    except SyntaxError:
        return 0


def _of(node: ast.expr) -> int:
    if isinstance(node, ast.Name):
        return _of_words(node.id)
    if isinstance(node, ast.Attribute):
        return _of_words(node.attr) or _of(node.value)
    if isinstance(node, ast.Subscript):
        index = node.slice
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            return _of_words(index.value)
        if isinstance(node.value, ast.Call) and isinstance(index, ast.Constant):
            return 0  # of several results: the function's name does not say which
        return _of(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_of(node.operand)
    if isinstance(node, ast.BinOp):
        return _of_arithmetic(node)
    if isinstance(node, ast.Call):
        return _of_call(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _of_hits(node.left, node.ops[0], node.comparators[0])
    if isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.Constant):
        return _of(node.body)  # there may be nothing to count
    return 0


def _of_hits(one: ast.expr, sign: ast.cmpop, other: ast.expr) -> int:
    """`predicted == labels` and `predicted != labels`, and how often a positive sample is above a
    negative one; a comparison with anything else may count how often a class is found."""
    above = {ast.Gt: 1, ast.GtE: 1, ast.Lt: -1, ast.LtE: -1}.get(type(sign), 0)
    if above:
        first, second = (_PAIR.fullmatch(_name_of(each)) for each in (one, other))
        if not first or not second or (first[1] == "pos") == (second[1] == "pos"):
            return 0
        return above if first[1] == "pos" else -above
    sides = {_is_prediction(each) - _are_labels(each) for each in (one, other)}
    if sides != {1, -1} or not isinstance(sign, (ast.Eq, ast.NotEq)):
        return 0
    return 1 if isinstance(sign, ast.Eq) else -1


def _is_prediction(node: ast.expr) -> bool:
    return any(
        _PREDICTION.fullmatch(last_part(each))
        or (isinstance(each, ast.Subscript) and _is_index_of_maximum(each))
        for each in ast.walk(node)
    )


def _is_index_of_maximum(node: ast.Subscript) -> bool:
    """`logits.max(1)[1]`."""
    is_max = isinstance(node.value, ast.Call) and last_part(node.value.func) == "max"
    return is_max and isinstance(node.slice, ast.Constant) and node.slice.value == 1


def _are_labels(node: ast.expr) -> bool:
    """Named as what is right: `y`, `batch.label`, `labels[rows].view(-1)`."""
    return bool(_name_of(node, _LABELS))


def _name_of(node: ast.expr, pattern: re.Pattern[str] = _PAIR) -> str:
    """The part of `labels[rows].view(-1)` that a pattern fits; empty if there is none."""
    while not pattern.fullmatch(last_part(node)):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return ""
    return last_part(node)


def _of_arithmetic(node: ast.BinOp) -> int:
    left, right = _of(node.left), _of(node.right)
    if isinstance(node.op, (ast.Mult, ast.Div)):
        left *= -1 if _is_negative(node.right) else 1
        right *= -1 if _is_negative(node.left) else 1
    constant = isinstance(node.left, ast.Constant)
    if isinstance(node.op, ast.Sub):
        return -right if constant else left if not right else 0
    if isinstance(node.op, ast.Div):
        return -right if constant else left if not right else 0
    if isinstance(node.op, (ast.Add, ast.Mult)):
        return left or right if not (left and right) else left if left == right else 0
    return 0


def _is_negative(node: ast.expr) -> bool:
    """`-1`, `-1.0`."""
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
        return False
    return isinstance(node.operand, ast.Constant)


def _of_call(node: ast.Call) -> int:
    function = node.func
    name = last_part(function)
    if name == "eq":
        sides = [*([function.value] if isinstance(function, ast.Attribute) else []), *node.args]
        return _of_hits(sides[-2], ast.Eq(), sides[-1]) if len(sides) > 1 else 0
    if name not in _THROUGH:
        return -1 if _LOSS.search(name) else _of_words(name)
    if name == "get" and node.args and isinstance(node.args[0], ast.Constant):
        return _of_words(str(node.args[0].value))
    found = [each for each in map(_of, node.args) if each]
    if isinstance(function, ast.Attribute) and not found:
        return _of(function.value)
    return found[0] if len(found) == 1 else 0


def _of_words(name: str) -> int:
    """The last word that has a direction decides, unless a different one contradicts it."""
    parts = re.findall(r"[A-Z]?[a-z]+\d*|[A-Z]+\d*(?![a-z])|\d+", name)
    words = [*name.lower().split("_"), *(part.lower() for part in parts)]
    if any(_UNCLEAR.fullmatch(word) for word in words):
        return 0
    if any(_FALLING.fullmatch(word) for word in words[-1:]):
        return -1
    falling = any(_FALLING.fullmatch(word) for word in words)
    rising = any(_RISING.fullmatch(word) for word in words)
    return 0 if falling and rising else -1 if falling else 1 if rising else 0
