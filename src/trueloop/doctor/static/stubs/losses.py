"""Loss functions: torch's, as modules and as functions, and those of other libraries.

Facts of a `Criterion`: its constructor's (or the function's) options by name, and
`reduction_written`: whether its reduction is the default or written out.
"""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import Loss, Made
from trueloop.doctor.model.things import Criterion, Tensor
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    OpaqueObject,
    Parameters,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs.tensors import as_tensor, derive, tensors_in

FUNCTIONS = {
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "cosine_embedding_loss": "CosineEmbeddingLoss",
    "cross_entropy": "CrossEntropyLoss",
    "ctc_loss": "CTCLoss",
    "gaussian_nll_loss": "GaussianNLLLoss",
    "hinge_embedding_loss": "HingeEmbeddingLoss",
    "huber_loss": "HuberLoss",
    "kl_div": "KLDivLoss",
    "l1_loss": "L1Loss",
    "margin_ranking_loss": "MarginRankingLoss",
    "mse_loss": "MSELoss",
    "multi_margin_loss": "MultiMarginLoss",
    "multilabel_margin_loss": "MultiLabelMarginLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss",
    "nll_loss": "NLLLoss",
    "poisson_nll_loss": "PoissonNLLLoss",
    "smooth_l1_loss": "SmoothL1Loss",
    "soft_margin_loss": "SoftMarginLoss",
    "triplet_margin_loss": "TripletMarginLoss",
    "triplet_margin_with_distance_loss": "TripletMarginWithDistanceLoss",
}
"""Function of `torch.nn.functional` -> the class that does the same."""
_INPUTS = ("input", "input1", "x1", "anchor", "log_probs", "pred", "preds", "logits")
_TARGETS = ("target", "targets", "input2", "x2", "positive", "labels")


@calls(*(f"torch.nn.{kind}" for kind in FUNCTIONS.values()), "torch.nn.NLLLoss2d")
def _criterion(call: LibraryCall) -> Value:
    kind = call.name.rpartition(".")[2].removesuffix("2d")
    return _made(call, kind, _reduction(call, call.args))


@calls(
    "segmentation_models_pytorch.losses.*", "segmentation_models_pytorch.utils.losses.*",
    "pytorch_metric_learning.losses.*", "monai.losses.*", "kornia.losses.*", "timm.loss.*",
    "pytorch_toolbelt.losses.*", "sentence_transformers.losses.*", "lpips.LPIPS",
    "pytorch_msssim.SSIM", "pytorch_msssim.MS_SSIM", "piq.*", "focal_loss.focal_loss.*",
)  # fmt: skip
def _foreign_criterion(call: LibraryCall) -> Value:
    """A loss of a different library. What it wants is not known here; some want probabilities."""
    if not call.name.rpartition(".")[2][:1].isupper():
        return _computed(call, Criterion(kind=call.name, reduction=None, made=call.place))
    return _made(call, call.name, None)


def _made(call: LibraryCall, kind: str, reduction: str | None) -> Criterion:
    criterion = Criterion(kind=kind, reduction=reduction, made=call.place, known=True)
    criterion.arguments = {name: constant(value) for name, value in call.kwargs.items()}
    criterion.reduction_written = _is_written(call)
    call.emit(Made, thing=criterion)
    return criterion


def _reduction(call: LibraryCall, options: list[Value]) -> str | None:
    """How the values are reduced to one: by `reduction`, or by the two flags that came before.

    `options`: the arguments by position after the input and the target. Any may be the reduction:
    its position differs between the losses.
    """
    positional = [constant(each) for each in options]
    for each in positional:
        if each in ("none", "mean", "sum", "batchmean"):
            return str(each)
    if any(isinstance(each, bool) for each in positional):
        return None
    if call.given(-1, "size_average") or call.given(-1, "reduce"):
        if call.const(-1, "reduce", True) is False:
            return "none"
        average = call.const(-1, "size_average", True)
        return None if average is None else "mean" if average else "sum"
    found = call.const(-1, "reduction", "mean")
    return found if isinstance(found, str) else None


def _is_written(call: LibraryCall) -> bool:
    """The reduction is the default, or is written out in the call: no option has a say in it."""
    if not isinstance(call.node, ast.Call) or call.open:
        return False
    named = {keyword.arg: keyword.value for keyword in call.node.keywords}
    flags = [named[name] for name in ("reduction", "size_average", "reduce") if name in named]
    return all(isinstance(flag, ast.Constant) for flag in flags)


@calls(*(f"torch.nn.functional.{name}" for name in FUNCTIONS),
       "torch.binary_cross_entropy_with_logits")  # fmt: skip
def _function(call: LibraryCall) -> Value:
    short = call.name.rpartition(".")[2]
    criterion = Criterion(
        kind=FUNCTIONS[short],
        reduction=_reduction(call, call.args[2:]),
        made=call.place,
        known=True,
    )
    criterion.name = f"F.{short}" if ".functional." in call.name else short
    criterion.arguments = {
        name: constant(value)
        for name, value in call.kwargs.items()
        if name not in _INPUTS and name not in _TARGETS
    }
    criterion.reduction_written = _is_written(call)
    return _computed(call, criterion)


@methods(Criterion, "__call__", "forward")
def _call(call: LibraryCall) -> Value:
    criterion: Criterion = call.receiver
    if "reduction" in criterion.attributes:  # set on it since
        found = constant(criterion.attributes["reduction"])
        criterion.reduction = found if isinstance(found, str) else None
    return _computed(call, criterion)


def _computed(call: LibraryCall, criterion: Criterion) -> Tensor:
    """The loss, and word of it."""
    m = call.machine
    source = _given(call, 0, _INPUTS)
    target = _given(call, 1, _TARGETS)
    everything = [*call.args, *call.kwargs.values()]
    parents = [tensor for each in everything for tensor in tensors_in(m, each, call.node)]
    made = derive(m, call.node, *parents)
    open_input = any(isinstance(each, (Unknown, OpaqueObject)) for each in everything)
    if made.graph is False and m.recording and (open_input or call.open):
        made.graph = None
    made.is_loss, made.divided, made.scaled_by = True, False, None
    made.criteria |= {criterion}
    made.reduced = {"mean": "mean", "batchmean": "mean", "sum": "sum"}.get(
        criterion.reduction or ""
    )
    if open_input or call.open:
        made.gradient = None
    call.emit(Loss, criterion=criterion, input=source, target=target, output=made)
    return made


def _given(call: LibraryCall, position: int, names: tuple[str, ...]) -> Value | None:
    named = next((call.kwargs[name] for name in names if name in call.kwargs), None)
    value = named if named is not None else call.arg(position)
    if isinstance(value, Unknown):
        return as_tensor(call.machine, value, call.node)
    return value


@methods(Criterion, "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval",
         "requires_grad_")  # fmt: skip
def _itself(call: LibraryCall) -> Value:
    criterion: Criterion = call.receiver
    return criterion


@methods(Criterion, "zero_grad", "register_buffer")
def _nothing(call: LibraryCall) -> Value:
    return NONE


@methods(Criterion, "parameters", "named_parameters", "buffers")
def _parameters(call: LibraryCall) -> Value:
    """Torch's own have none; for those of other libraries it is not known."""
    whole = call.receiver.known and "." not in call.receiver.kind
    return Parameters([], complete=whole)


@calls("torchvision.ops.sigmoid_focal_loss", "torchvision.ops.focal_loss.sigmoid_focal_loss")
def _focal(call: LibraryCall) -> Value:
    """Focal loss on logits; its `reduction` is "none" unless said otherwise."""
    reduction = call.const(4, "reduction", "none")
    criterion = Criterion(
        kind="sigmoid_focal_loss",
        name="sigmoid_focal_loss",
        reduction=reduction if isinstance(reduction, str) else None,
        made=call.place,
        known=True,
    )
    return _computed(call, criterion)
