"""The backward of a scalar loss, without the parsing of arguments that it does not have."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, autograd
from torch.autograd import graph


def _if_torchs(function: Any, file: str | None) -> Any:
    """`function`, if it is torch's own and nobody has put a wrapper in its place."""
    code = getattr(function, "__code__", None)
    return function if code is not None and code.co_filename == file else None


_METHOD = _if_torchs(Tensor.backward, torch._tensor.__file__)
_FUNCTION = _if_torchs(autograd.backward, autograd.__file__)


def backward(loss: Tensor) -> None:
    """`loss.backward()` of a real scalar: the same gradients, and the same call of the engine.

    Wherever somebody listens (a function in the place of torch's, a mode, a subclass of tensor), it
    is `loss.backward()` itself.
    """
    if (
        type(loss) is not Tensor
        or Tensor.backward is not _METHOD
        or autograd.backward is not _FUNCTION
        or torch._C._len_torch_function_stack()
        or torch._C._are_functorch_transforms_active()
    ):
        loss.backward()  # type: ignore[no-untyped-call]
        return
    graph._engine_run_backward(
        (loss,),
        (torch.ones_like(loss, memory_format=torch.preserve_format),),
        False,
        False,
        (),
        allow_unreachable=True,
        accumulate_grad=True,
    )
