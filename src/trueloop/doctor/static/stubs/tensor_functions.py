"""The effects of a tensor's methods, and of the functions of `torch` and `torch.nn.functional`."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import Backward, GradTaken, Used
from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.randomness import draws
from trueloop.doctor.model.things import Activation, Optimizer, Tensor
from trueloop.doctor.model.value_events import ColumnsPicked
from trueloop.doctor.model.vocabulary import WITHOUT_FRACTION
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    Sequence,
    Unknown,
    Value,
    constant,
    tensors_behind,
)
from trueloop.doctor.static.stubs import constant_gradients, padded_lists, tensor_shapes as shapes
from trueloop.doctor.static.stubs.batch_means import notice_mean
from trueloop.doctor.static.stubs.manual_updates import cleared, notice, owner_of
from trueloop.doctor.static.stubs.one_hot import sum_over_classes
from trueloop.doctor.static.stubs.parameter_copies import copy_of
from trueloop.doctor.static.stubs.statistics import notice as notice_statistic
from trueloop.doctor.static.stubs.tensors import (
    add_up,
    as_tensor,
    combine,
    derive,
    flagged,
    is_over_samples,
    of_product,
    tensors_in,
)

# ------------------------------------------------------------------------------- methods


@methods(Tensor, "backward")
def _backward(call: LibraryCall) -> Value:
    if _is_computed_by_layers(call.arg(0)):
        return _computed_gradient(call)
    return backward(call, call.receiver)


@methods(Unknown, "backward")
def _backward_of_unknown(call: LibraryCall) -> Value:
    given = call.arg(0)
    kept = id(call.node) in _assigned_calls(call.machine.modules[-1].tree)
    if _is_computed_by_layers(given) or (given is None and kept):
        return _computed_gradient(call)
    owners, losses = (tensors_in(call.machine, each, call.node) for each in (call.receiver, given))
    if given is not None and (not owners or any(each.models for each in losses)):
        # `engine.backward(loss)`, of an object that is not known and may step an optimizer.
        call.emit(Backward, loss=as_tensor(call.machine, given, call.node), by="foreign")
        call.expose(*(each for each in call.args if isinstance(each, Optimizer)))
        return NONE
    return backward(call, as_tensor(call.machine, call.receiver, call.node))


@once
def _assigned_calls(tree: ast.Module) -> frozenset[int]:
    return frozenset(id(each.value) for each in nodes_of(tree, ast.Assign))


def _computed_gradient(call: LibraryCall) -> Value:
    """`grad = loss.backward()`, `net.backward(grad)`: layers, in NumPy for one, that hand their
    gradients on; torch's `backward` returns nothing."""
    found = call.unknown(call.receiver)
    found.number = True
    return found


def _is_computed_by_layers(given: Value | None) -> bool:
    return isinstance(given, Unknown) and given.number


def backward(call: LibraryCall, loss: Tensor) -> Value:
    """Gradients of `loss` are added to `.grad`."""
    graph = call.const(2, "create_graph", False)
    if "inputs" in call.kwargs:
        # Only these get gradients, and which they are is seldom to be seen.
        call.emit(Backward, loss=None, create_graph=graph)
        return NONE
    retain = call.const(-1 if call.receiver is None else 1, "retain_graph", False)
    by = "scaler" if loss.scaled_by else "tensor"
    weight = call.arg(1, "grad_tensors") if call.receiver is None else call.arg(0, "gradient")
    if weight is not None and constant(weight, "") is not None:
        loss = derive(call.machine, call.node, loss, same=True, keeps_loss=True)
        loss.divided = None  # the weight may divide it
    call.emit(Backward, loss=loss, create_graph=graph, retain_graph=retain, by=by)
    return NONE


@calls("torch.autograd.backward")
def _autograd_backward(call: LibraryCall) -> Value:
    return backward(call, as_tensor(call.machine, call.arg(0, "tensors"), call.node))


@calls("torch.autograd.grad")
def _autograd_grad(call: LibraryCall) -> Value:
    outputs = as_tensor(call.machine, call.arg(0, "outputs"), call.node)
    inputs = tensors_in(call.machine, call.arg(1, "inputs"), call.node)
    others = [each for each in inputs if each.role != "parameter" and not each.is_parameter]
    call.emit(GradTaken, outputs=outputs, of_parameters=not inputs or len(others) < len(inputs))
    made = derive(call.machine, call.node, outputs)
    if call.const(4, "create_graph", False) is False:
        made.graph, made.models = False, frozenset()
        constant_gradients.mark(call, made, outputs)
    return made


@calls("torch.autograd.functional.jacobian", "torch.autograd.functional.hessian")
def _jacobian(call: LibraryCall) -> Value:
    """Of a function: whatever that computes has no graph unless it is asked for."""
    given = [tensor for each in call.args for tensor in tensors_in(call.machine, each, call.node)]
    made = derive(call.machine, call.node, *given)
    if call.const(2, "create_graph", False) is False:
        made.graph, made.models = False, frozenset()
        constant_gradients.mark(call, made, Tensor())
    else:
        made.graph = None
    return made


@methods(Tensor, "detach", "detach_")
def _detach(call: LibraryCall) -> Value:
    made = derive(call.machine, call.node, call.receiver, graph=False, same=True)
    made.data_of = call.receiver if call.receiver.role == "parameter" else None
    made.grad_of = call.receiver.grad_of
    if call.receiver.forwards:
        call.emit(Used, what="torch.Tensor.detach", subject=call.receiver)
    if call.name == "detach_":
        call.receiver.graph, call.receiver.models = False, frozenset()
    return made


@methods(Unknown, "detach")
def _detach_unknown(call: LibraryCall) -> Value:
    """`pool(outputs).detach()`, where the function is not known."""
    for each in tensors_behind([call.receiver]):
        if each.forwards:
            call.emit(Used, what="torch.Tensor.detach", subject=each)
    found = call.unknown(call.receiver)
    found.of = ()  # no graph leads through it
    return found


@methods(Tensor, "item", "tolist", "numpy")
def _item(call: LibraryCall) -> Value:
    found = call.unknown(call.receiver)
    found.loop_variant = bool(call.machine.turns)
    found.number = True
    found.shape = () if call.name == "item" else call.receiver.shape
    found.dtype = call.receiver.dtype
    return found


@methods(Tensor, "size", "numel", "dim", "nelement", "ndimension", "element_size", "get_device",
         "is_floating_point", "is_contiguous", "data_ptr", "storage_offset", "stride")  # fmt: skip
def _about(call: LibraryCall) -> Value:
    """Numbers about a tensor, not of it."""
    shape, index = call.receiver.shape, call.const(0, "dim")
    if call.name == "size" and isinstance(index, int) and len(shape or ()) > index >= 0:
        size = shape[index] if shape is not None else None
        if isinstance(size, int):
            return Constant(size)
    found = call.unknown(call.receiver)
    found.number, found.loop_variant = True, bool(call.machine.turns)
    return found


@methods(Tensor, "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type", "type_as",
         "long", "view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose",
         "contiguous", "expand", "expand_as", "clone", "t", "pin_memory", "reshape_as", "view_as",
         "int", "unflatten", "movedim", "requires_grad_", "retain_grad", "chunk", "split",
         "repeat")  # fmt: skip
def _same(call: LibraryCall) -> Value:
    tensor: Tensor = call.receiver
    made = derive(call.machine, call.node, tensor, same=True, keeps_loss=True)
    if call.name not in ("clone", "repeat"):
        made.grad_of, made.data_of = tensor.grad_of, tensor.data_of
    made.position = tensor.position
    casts = {"half": "float16", "bfloat16": "bfloat16", "double": "float64", "float": "float32",
             "long": "int64", "int": "int32"}  # fmt: skip
    made.dtype = casts.get(call.name, tensor.dtype)
    if made.dtype in WITHOUT_FRACTION:
        made.graph, made.models = False, frozenset()
    made.shape = shapes.of_method(call.name, tensor.shape, call.args, call.kwargs)
    shapes.note_parts(call, made, tensor.shape, call.arg(0), call.const(1, "dim", 0))
    made.loader = tensor.loader
    if call.name == "requires_grad_":
        needs = call.const(0, "requires_grad", True)
        tensor.requires_grad = needs is not False
        flagged(call.machine, tensor, needs, call.node)
        return tensor
    if tensor.is_parameter and (tensor.requires_grad or draws(call.node)):
        made.copy = copy_of(call, tensor)
    if call.name == "retain_grad":
        return NONE
    return made


@methods(Tensor, "mean", "sum")
def _reduce(call: LibraryCall) -> Value:
    made = derive(call.machine, call.node, call.receiver, keeps_loss=True)
    made.shape = shapes.of_method(call.name, call.receiver.shape, call.args, call.kwargs)
    notice_statistic(call.machine, call.receiver, call.name, call.args, call.kwargs, made)
    if call.name == "sum":
        made.dtype = shapes.dtype_of("sum", call.receiver.dtype)
        sum_over_classes(call, call.receiver, call.const(0, "dim"))
    if not call.args and "dim" not in call.kwargs:
        made.reduced = call.name
        if call.name == "mean":
            notice_mean(call.machine, call.receiver, call.node)
    return made


def activate(call: LibraryCall, tensor: Value | None, kind: str, dim: object) -> Value:
    made = derive(call.machine, call.node, *tensors_in(call.machine, tensor, call.node))
    made.activation = Activation(
        kind, dim if isinstance(dim, int) else None, call.place, frozenset(call.machine.guards)
    )
    made.dtype, made.shape = getattr(tensor, "dtype", None), shapes.shape_of(tensor)
    return made


@methods(Tensor, "softmax", "log_softmax")
def _softmax(call: LibraryCall) -> Value:
    return activate(call, call.receiver, call.name, call.const(0, "dim"))


@methods(Tensor, "sigmoid", "log", "logsigmoid")
def _sigmoid(call: LibraryCall) -> Value:
    kind = _logged(call.receiver, call.name)
    return activate(call, call.receiver, kind, _dim_kept(call.receiver, kind))


def _dim_kept(tensor: Value | None, kind: str) -> int | None:
    """The dimension of the softmax whose logarithm is taken."""
    before = getattr(tensor, "activation", None)
    return before.dim if kind == "log_softmax" and before is not None else None


def _logged(tensor: Value | None, kind: str) -> str:
    """The logarithm of a softmax is a log-softmax."""
    before = getattr(tensor, "activation", None)
    if kind == "log" and before is not None:
        return {"softmax": "log_softmax", "sigmoid": "logsigmoid"}.get(before.kind, "log")
    return kind


@calls("torch.softmax", "torch.log_softmax", "torch.nn.functional.softmax",
       "torch.nn.functional.log_softmax", "torch.special.softmax",
       "torch.special.log_softmax")  # fmt: skip
def _function_softmax(call: LibraryCall) -> Value:
    kind = call.name.rpartition(".")[2]
    return activate(call, call.arg(0, "input"), kind, call.const(1, "dim"))


@calls("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit", "torch.log",
       "torch.nn.functional.logsigmoid", "torch.sigmoid_")  # fmt: skip
def _function_sigmoid(call: LibraryCall) -> Value:
    tensor = call.arg(0, "input")
    kind = {"expit": "sigmoid", "sigmoid_": "sigmoid"}.get(
        call.name.rpartition(".")[2], call.name.rpartition(".")[2]
    )
    kind = _logged(tensor, kind)
    return activate(call, tensor, kind, _dim_kept(tensor, kind))


@calls("torch.nn.functional.linear", "torch.nn.functional.conv1d", "torch.nn.functional.conv2d",
       "torch.nn.functional.conv3d")  # fmt: skip
def _function_linear(call: LibraryCall) -> Value:
    made = derive(call.machine, call.node, *_given(call))
    made.activation = Activation("linear", None, call.place)
    return made


@methods(Tensor, "gather")
def _gather(call: LibraryCall) -> Value:
    source: Tensor = call.receiver
    columns = call.arg(1, "index")
    made = derive(call.machine, call.node, *_given(call), source)
    made.shape = shapes.shape_of(columns)
    picks = call.const(0, "dim") in (1, -1) and is_over_samples(source)
    if picks and isinstance(columns, Tensor):
        call.emit(ColumnsPicked, source=source, columns=columns)
    return made


@calls("torch.gather")
def _function_gather(call: LibraryCall) -> Value:
    source = call.arg(0, "input")
    if not isinstance(source, Tensor):
        return any_function(call)
    m, rest = call.machine, call.args[1:]
    return _gather(LibraryCall(m, call.node, "gather", rest, call.kwargs, source, call.open))


@methods(Tensor, "zero_", "fill_", "mul_", "div_", "add_", "sub_", "copy_", "clamp_", "addcdiv_",
         "lerp_", "normal_", "uniform_", "set_")  # fmt: skip
def _in_place(call: LibraryCall) -> Value:
    tensor: Tensor = call.receiver
    word, parameter = owner_of(tensor)
    zero = call.name == "zero_" or (call.name == "fill_" and call.const(0) == 0)
    if word == "grad" and zero:
        cleared(call.machine, parameter, call.node)
    else:
        how = {"mul_": "scaled", "div_": "scaled", "clamp_": "clipped"}.get(call.name, "set")
        notice(call.machine, tensor, call.arg(0) or call.arg(1, "max"), call.node, how)
    if call.name in ("div_", "mul_") and tensor.is_loss:
        tensor.divided = True
    if call.name in _OVERWRITES:
        tensor.activation = None
    return tensor


_OVERWRITES = frozenset("zero_ fill_ copy_ normal_ uniform_ set_".split())
"""Nothing stays of the values that the tensor had."""


@calls("torch.nn.init.*")
def _initialise(call: LibraryCall) -> Value:
    """A parameter gets its first values again: `nn.init.zeros_(layer.weight)`."""
    tensor = call.arg(0, "tensor", call.unknown())
    if isinstance(tensor, Tensor):
        call.emit(Used, what=call.name, subject=tensor, result_used=call.result_used)
    return tensor


@methods(Tensor, "register_hook", "share_memory_", "record_stream")
def _nothing(call: LibraryCall) -> Value:
    return NONE


# ------------------------------------------------------------------------------- torch.*


def _given(call: LibraryCall) -> list[Tensor]:
    everything = [*call.args, *call.kwargs.values()]
    return [tensor for each in everything for tensor in tensors_in(call.machine, each, call.node)]


_MAKERS = frozenset(
    "randn rand randint zeros ones full empty tensor arange linspace eye randperm as_tensor"
    " from_numpy FloatTensor LongTensor Tensor normal logspace sparse_coo_tensor".split()
)
_PRODUCTS = frozenset("mm matmul bmm spmm".split())
_ARITHMETIC: dict[str, ast.operator] = {
    **dict.fromkeys(("div", "divide", "true_divide"), ast.Div()),
    **dict.fromkeys(("mul", "multiply"), ast.Mult()),
    **dict.fromkeys(("sub", "subtract"), ast.Sub()),
    "add": ast.Add(),
}
_SAME = frozenset("flatten squeeze unsqueeze reshape permute transpose clone".split())


@calls("torch.*", "torch.nn.functional.*", "torch.special.*", "torch.linalg.*", "torch.fft.*")
def any_function(call: LibraryCall) -> Value:
    """Any other function of torch's: a tensor if it is given or makes one."""
    name = call.name.rpartition(".")[2]
    first = call.arg(0, "input")
    if name in _MAKERS:
        return make(call, name)
    if name in ("stack", "cat", "concat", "hstack", "vstack") and isinstance(first, Sequence):
        total = add_up(call.machine, first, call.node)
        if isinstance(total, Tensor):
            total.shape = shapes.of_call(name, call.args, call.kwargs)
        return total
    if name in _ARITHMETIC and len(call.args) == 2 and not call.kwargs and not call.open:
        left, right = call.args
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return combine(call.machine, _ARITHMETIC[name], left, right, call.node)
    parents = _given(call)
    if not parents:
        key = f"{call.name}({', '.join(call.machine.key(arg) for arg in call.args)})"
        return call.machine.unknown(call.node, call.args, key="" if call.args else key)
    made = derive(
        call.machine,
        call.node,
        *parents,
        graph=name not in shapes.WITHOUT_GRADIENT,
        same=name in _SAME and isinstance(first, Tensor),
        keeps_loss=name in ("mean", "sum", "mul", "div", "add", "sub", "where", "nan_to_num"),
    )
    if name in ("mean", "sum") and len(call.args) == 1 and "dim" not in call.kwargs:
        made.reduced = name
        if name == "mean" and isinstance(first, Tensor):
            notice_mean(call.machine, first, call.node)
    if made.gradient is not None:
        constant_gradients.forget_unknown(call, made)
    if isinstance(first, Tensor):
        notice_statistic(call.machine, first, name, call.args[1:], call.kwargs, made)
        if name == "sum":
            sum_over_classes(call, first, call.const(1, "dim"))
    made.shape = shapes.of_call(name, call.args, call.kwargs)
    shapes.note_parts(call, made, shapes.shape_of(first), call.arg(1), call.const(2, "dim", 0))
    if name in _PRODUCTS and len(call.args) == 2:
        made.activation = of_product(call.machine, call.args[0], call.args[1], call.node)
    made.dtype = shapes.dtype_of(name, getattr(first, "dtype", None))
    if name.endswith("_like"):
        made = Tensor(
            made=call.place, graph=False, loader=made.loader, shape=shapes.shape_of(first)
        )
        made.requires_grad = bool(call.const(-1, "requires_grad", False, False))
    return made


def make(call: LibraryCall, name: str) -> Tensor:
    """A new tensor: `torch.randn(256, 10)`."""
    sizes: list[Value] = list(call.args)
    if name in ("tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "arange"):
        sizes = []
    elif name == "randint":
        given = next((arg for arg in call.args if isinstance(arg, Sequence)), call.arg(-1, "size"))
        sizes = [given] if given is not None else []
    elif name in ("full", "normal", "eye", "randperm"):
        sizes = call.args[:1]
    elif name in ("linspace", "logspace"):
        steps = call.arg(2, "steps")
        sizes = [steps] if steps is not None else []
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = sizes[0].values
    source = next(iter(_given(call)), None)
    needs = bool(call.const(-1, "requires_grad", False, False))
    dtype = call.arg(-1, "dtype")
    made = Tensor(
        made=call.place,
        known=True,
        shape=_shape_made(call, name, sizes),
        graph=False,
        loader=source.loader if source is not None else None,
        dtype=getattr(dtype, "name", "").rpartition(".")[2] or _dtype_made(call, name),
    )
    made.requires_grad, made.made_from = needs, list(call.args)
    made.counts = name == "arange"
    made.padding = made.padding if sizes else padded_lists.padding_in(call.args)
    if name in ("zeros", "ones", "full"):
        value = {"zeros": 0, "ones": 1}.get(name, call.const(1, "fill_value"))
        made.fill = value if isinstance(value, (int, float)) else None
    return made


def _shape_made(call: LibraryCall, name: str, sizes: list[Value]) -> shapes.Shape:
    if name in ("tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor"):
        return shapes.shape_of(call.arg(0))
    if name == "arange":
        return shapes.range_of(call.args)
    found = (None if loop_of(size) else call.machine.size(size) for size in sizes)
    return tuple(found) or None


def _dtype_made(call: LibraryCall, name: str) -> str | None:
    if name in ("randint", "randperm"):
        return "int64"
    if name in ("as_tensor", "from_numpy", "tensor"):
        return getattr(call.arg(0), "dtype", None)
    numbers = [constant(each) for each in call.args]
    whole = name == "arange" and all(type(each) is int for each in numbers)
    return "int64" if whole else None


@calls("torch.autograd.Variable", "torch.nn.utils.parametrize.*", "torch.nn.utils.rnn.*")
def _passed(call: LibraryCall) -> Value:
    first = call.arg(0)
    if call.kwargs.get("volatile") is not None:
        # How recording was turned off before torch 0.4: for all that is computed from this.
        modes = call.machine.grad
        modes[-1] = modes[-1] and None
        if isinstance(first, Tensor):
            first.volatile = True
    return first if first is not None else call.unknown()


@calls("torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence")
def _packed(call: LibraryCall) -> Value:
    """Its `data` are the values, with their graph, and no detached tensor."""
    given = tensors_in(call.machine, call.arg(0, "input"), call.node)
    found = derive(call.machine, call.node, *given) if given else call.unknown(*call.args)
    if isinstance(found, Tensor):
        found.attributes["data"] = derive(call.machine, call.node, found)
    return found
