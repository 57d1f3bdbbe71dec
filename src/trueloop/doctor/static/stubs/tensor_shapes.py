"""Shapes of tensors and arrays, as far as constants decide them.

A size that may change from turn to turn, or that a loop was counted for, is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from typing import Any

from trueloop.doctor.model.things import Size, Tensor
from trueloop.doctor.model.vocabulary import WITHOUT_FRACTION
from trueloop.doctor.static.interpreter.counters import by_default
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.values import Constant, Sequence, Unknown, Value, constant

Shape = tuple[Size, ...] | None

_LOOKED_AT = 20
INTEGERS = frozenset("int64 int32 int16 int8 uint8 long int".split())


def shape_of(value: object, depth: int = 4) -> Shape:
    """Of a tensor, an array, a plain number or a list of such; None where it is not known."""
    if isinstance(value, Sequence) and value.kind in ("list", "tuple") and depth:
        inner = {shape_of(each, depth - 1) for each in value.values[:_LOOKED_AT]}
        part = inner.pop() if len(inner) == 1 else None
        return (value.length, *part) if part is not None else None
    if isinstance(value, (Tensor, Unknown)):
        return value.shape
    if isinstance(value, Constant) and isinstance(value.value, (int, float)):
        return ()
    return None


def sized(value: Value | None) -> Size:
    """A number as a size."""
    if isinstance(value, Constant) and type(value.value) is int and not value.loop_variant:
        return value.value
    return None


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """Of arithmetic on tensors of these shapes."""
    result: tuple[Size, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        longer, shorter = (shape, result) if len(shape) > len(result) else (result, shape)
        offset = len(longer) - len(shorter)
        pairs = zip(longer[offset:], shorter, strict=True)
        result = (*longer[:offset], *(_wider(*pair) for pair in pairs))
    return result


def _wider(one: Size, other: Size) -> Size:
    if one == other or other == 1:
        return one
    return other if one == 1 else None


def product(left: Shape, right: Shape) -> Shape:
    """Of a matrix product."""
    if not left or not right:
        return None
    if len(right) == 1:
        return left[:-1]
    if len(left) == 1:
        return (*right[:-2], right[-1])
    batch = broadcast([left[:-2], right[:-2]])
    return None if batch is None else (*batch, left[-2], right[-1])


def indexed(shape: Shape, index: Value | None) -> Shape:
    """Of `x[index]`."""
    if not shape:
        return None
    parts = _parts(index)
    chosen = [each for each in parts if isinstance(each, (Tensor, Unknown)) or _is_list(each)]
    if len(chosen) > 1:
        return None
    left, found = [*shape], list[Size]()
    for number, part in enumerate(parts):
        if isinstance(part, Constant) and part.value is Ellipsis:
            rest = sum(not _is_new_axis(each) for each in parts[number + 1 :])
            while len(left) > rest:
                found.append(left.pop(0))
        elif _is_new_axis(part):
            found.append(1)
        else:
            kept = _along(left.pop(0), part) if left else None
            if kept is None or (len(kept) != 1 and number):
                return None
            found += kept if kept != (_GONE,) else ()
    return (*found, *left)


def only_adds_axes(index: Value) -> bool:
    """`x[:, None]`, `x[..., None]`."""
    whole = (None, Ellipsis, slice(None))
    return all(isinstance(each, Constant) and each.value in whole for each in _parts(index))


def _parts(index: Value | None) -> list[Value | None]:
    if isinstance(index, Sequence) and index.kind == "tuple":
        return [*index.values]
    if isinstance(index, Constant) and isinstance(index.value, tuple):
        return [Constant(each) for each in index.value]
    return [index]


def _is_list(part: Value | None) -> bool:
    return isinstance(part, Sequence) and part.kind == "list"


_GONE = -1


def _is_new_axis(part: Value | None) -> bool:
    return isinstance(part, Constant) and part.value is None


def _along(size: Size, part: Value | None) -> tuple[Size, ...] | None:
    """The sizes that are left of one dimension: `_GONE` for a single index, None where unknown."""
    if isinstance(part, Constant):
        if isinstance(part.value, slice):
            if part.value == slice(None):
                return (size,)
            if isinstance(size, int) and size >= 0:  # computed, it may be any number
                return (len(range(*part.value.indices(size))),)
            return (None,)
        return (_GONE,) if type(part.value) is int else None
    if isinstance(part, Sequence):
        if part.kind == "slice":
            return (None,)
        return (len(part.values),) if part.kind == "list" and _counts(part) else None
    if isinstance(part, (Tensor, Unknown)) and part.shape is not None:
        return part.shape if _is_of_integers(part) else None
    return None


def _counts(part: Sequence) -> bool:
    is_int = all(isinstance(each, Constant) and type(each.value) is int for each in part.values)
    return is_int and part.length == len(part.values)


def _is_of_integers(value: Tensor | Unknown) -> bool:
    return value.dtype in INTEGERS


def reduced(shape: Shape, dim: object, keepdim: object) -> Shape:
    """Of a reduction over one dimension, or over several."""
    if shape is None:
        return None
    named = dim if isinstance(dim, tuple) else (dim,)
    dims = [each for each in named if isinstance(each, int) and -len(shape) <= each < len(shape)]
    if len(dims) != len(named):
        return None
    gone = {each % len(shape) for each in dims}
    if keepdim is True:
        return tuple(1 if number in gone else size for number, size in enumerate(shape))
    if keepdim is not False:
        return None
    return tuple(size for number, size in enumerate(shape) if number not in gone)


def dims_of(value: Value | None) -> object:
    """The dimensions that an argument names: a number or a tuple of them."""
    if isinstance(value, Sequence) and not value.open:
        return tuple(constant(each) for each in value.values)
    found = constant(value)
    return tuple(found) if isinstance(found, list) else found


def joined(parts: Sequence, dim: object) -> Shape:
    """Of `torch.cat(parts, dim)`."""
    shapes = [shape_of(each) for each in parts.values]
    first = shapes[0] if shapes else None
    if parts.length != len(parts.values) or not first or type(dim) is not int:
        return None
    if not -len(first) <= dim < len(first) or any(len(each or ()) != len(first) for each in shapes):
        return None
    along = [each[dim] for each in shapes if each is not None]
    numbers = [each for each in along if isinstance(each, int)]
    total = sum(numbers) if len(numbers) == len(along) else None
    merged = [_equal(each[i] for each in shapes if each is not None) for i in range(len(first))]
    merged[dim] = total
    return tuple(merged)


def _equal(sizes: Iterable[Size]) -> Size:
    found = set(sizes)
    return found.pop() if len(found) == 1 else None


def stacked(parts: Sequence, dim: object) -> Shape:
    """Of `torch.stack(parts, dim)`."""
    shapes = {shape_of(each) for each in parts.values}
    if len(shapes) != 1 or type(dim) is not int:
        return None
    shape = shapes.pop()
    if shape is None or not -len(shape) - 1 <= dim <= len(shape):
        return None
    position = dim if dim >= 0 else len(shape) + 1 + dim
    return (*shape[:position], parts.length, *shape[position:])


def viewed(shape: Shape, sizes: list[Value]) -> Shape:
    """Of `x.view(sizes)`."""
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = sizes[0].values
    wanted = [sized(each) for each in sizes]
    if wanted.count(-1) == 1:
        total = _total(shape)
        known = [each for each in wanted if isinstance(each, int) and each != -1]
        rest = _total(tuple(known))
        fits = len(known) == len(wanted) - 1 and rest and total is not None and total % rest == 0
        wanted[wanted.index(-1)] = total // rest if fits and total and rest else None
        # `x.view(len(x), -1)`, `x.view(-1, classes)`: the rows are known, or the rest is.
    return tuple(wanted) or None


def _total(shape: Shape) -> int | None:
    count = 1
    for size in shape if shape is not None else (None,):
        if not isinstance(size, int):
            return None
        count *= size
    return count


def _flattened(shape: tuple[Size, ...], start: object, end: object) -> Shape:
    if type(start) is not int or end not in (-1, len(shape) - 1):
        return None
    start = start % max(1, len(shape))
    return (*shape[:start], _total(shape[start:]))


def _squeezed(shape: tuple[Size, ...], dim: object) -> Shape:
    if dim is None:
        return None if None in shape else tuple(each for each in shape if each != 1)
    if type(dim) is not int or not -len(shape) <= dim < len(shape):
        return None
    position = dim % len(shape)
    if shape[position] is None:
        return None
    return shape[:position] + shape[position + 1 :] if shape[position] == 1 else shape


def _unsqueezed(shape: tuple[Size, ...], dim: object) -> Shape:
    if type(dim) is not int or not -len(shape) - 1 <= dim <= len(shape):
        return None
    position = dim if dim >= 0 else len(shape) + 1 + dim
    return (*shape[:position], 1, *shape[position:])


def _swapped(shape: tuple[Size, ...], one: object, other: object) -> Shape:
    sizes = [*shape]
    if type(one) is not int or type(other) is not int:
        return None
    if max(abs(one), abs(other)) >= len(shape) + 1 or max(one, other) >= len(shape):
        return None
    sizes[one], sizes[other] = sizes[other], sizes[one]
    return tuple(sizes)


def _permuted(shape: tuple[Size, ...], dims: list[object]) -> Shape:
    order = [each for each in dims if type(each) is int and -len(shape) <= each < len(shape)]
    return tuple(shape[each] for each in order) if len(order) == len(shape) == len(dims) else None


KEEP = frozenset(
    "to cuda cpu float half double bfloat16 long int bool type clone contiguous detach pin_memory"
    " type_as requires_grad_ abs exp log sin cos tan tanh sigmoid relu sqrt rsqrt square round"
    " floor ceil sign neg clamp clamp_min clamp_max clip nan_to_num softmax log_softmax cumsum"
    " logical_not isnan isfinite isinf sgn erf log1p expm1 astype copy flip roll trunc gelu"
    " leaky_relu softplus normalize"
    " log2 log10 exp2 frac reciprocal sinh cosh asin acos atan".split()
)
"""Operations on one tensor that keep its shape."""
_KEEPS_WHOLE_NUMBERS = frozenset(
    "clone detach abs neg square clamp clamp_min clamp_max clip sign flip roll triu tril diagonal"
    " masked_select gather index_select amax amin".split()
)
"""Operations that give whole numbers of whole numbers, and truth values of truth values."""
PAIRS = frozenset(
    "add sub subtract mul multiply div divide true_divide pow eq ne gt ge lt le greater less"
    " maximum minimum logical_and logical_or fmod remainder floor_divide where atan2".split()
)
TESTS = frozenset(
    "bool eq ne gt ge lt le greater less logical_not logical_and logical_or isnan isfinite isinf"
    " any all".split()
)
"""Operations that give true or false."""
_COUNTS = frozenset(
    "argmax argmin argsort argwhere nonzero bucketize searchsorted multinomial bincount"
    " count_nonzero".split()
)
"""Operations that give positions and numbers of elements."""
WITHOUT_GRADIENT = (
    TESTS
    | _COUNTS
    | frozenset(
        "histc isin less_equal greater_equal not_equal isneginf isposinf isclose signbit bernoulli"
        " unique unique_consecutive logical_xor".split()
    )
)
"""Operations that give whole numbers, true or false, or a draw: autograd records none of them."""
REDUCE = frozenset("mean sum std var prod argmax argmin all any logsumexp median norm".split())


def dtype_of(name: str, dtype: str | None) -> str | None:
    """Of what an operation gives, on a tensor of type `dtype`."""
    if name in TESTS:
        return "bool"
    if name in _COUNTS:
        return "int64"
    if dtype not in WITHOUT_FRACTION:
        return dtype if name in KEEP else None
    if name in ("sum", "cumsum", "prod"):
        return "int64"
    return dtype if name in _KEEPS_WHOLE_NUMBERS else None


def common_dtype(parts: Collection[Tensor]) -> str | None:
    """The type that all of these have."""
    found = {each.dtype for each in parts}
    return found.pop() if len(found) == 1 else None


BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)


def dtype_of_arithmetic(sign: ast.operator, left: Value, right: Value) -> str | None:
    """Of `left <sign> right`, of which one at least is a tensor."""
    tensors = [each for each in (left, right) if isinstance(each, Tensor)]
    if isinstance(sign, BITWISE):
        return next((each.dtype for each in tensors if each.dtype in WITHOUT_FRACTION), "bool")
    found = common_dtype(tensors)
    if found not in WITHOUT_FRACTION:
        return found
    is_whole = len(tensors) == 2 or any(type(constant(each)) is int for each in (left, right))
    return found if is_whole and not isinstance(sign, ast.Div) else None


def of_method(name: str, shape: Shape, args: list[Value], kwargs: dict[str, Value]) -> Shape:
    """Of what an operation on one tensor gives, with the rest of its arguments."""
    if name in KEEP:
        return shape
    if name in PAIRS:
        return broadcast([shape, *map(shape_of, args)])
    if name in ("view", "reshape"):
        return viewed(shape, args)
    if shape is None:
        return None
    if name in REDUCE:
        axis = kwargs.get("dim", kwargs.get("axis", args[0] if args else None))
        if axis is None:
            return ()
        keeps = kwargs.get("keepdim", kwargs.get("keepdims", Constant(False)))
        return reduced(shape, dims_of(axis), constant(keeps))
    if name in ("matmul", "mm", "dot", "__matmul__") and args:
        return product(shape, shape_of(args[0]))
    if name == "multinomial":
        return (*shape[:-1], sized(kwargs.get("num_samples", args[0] if args else None)))
    if name in ("interpolate", "upsample"):
        return (*shape[:2], *(None for _ in shape[2:]))
    numbers: list[object] = [constant(each) for each in args]
    dim = constant(kwargs["dim"]) if "dim" in kwargs else (numbers[0] if numbers else None)
    return _moved(name, shape, numbers, dim)


def _moved(name: str, shape: tuple[Size, ...], numbers: list[object], dim: object) -> Shape:
    forms: dict[str, Callable[[], Shape]] = {
        "flatten": lambda: _flattened(shape, *(numbers + [0, -1][len(numbers) :])[:2]),
        "ravel": lambda: (_total(shape),),
        "squeeze": lambda: _squeezed(shape, dim),
        "unsqueeze": lambda: _unsqueezed(shape, dim),
        "t": lambda: shape[::-1],
        "transpose": lambda: _swapped(shape, *numbers[:2]) if len(numbers) == 2 else None,
        "permute": lambda: _permuted(shape, numbers),
    }
    form = forms.get(name)
    return form() if form is not None else None


def of_call(name: str, args: list[Value], kwargs: dict[str, Value]) -> Shape:
    """Of what a function of torch's gives: `torch.exp(x)`, `torch.cat([x, y])`."""
    first = args[0] if args else kwargs.get("input", kwargs.get("tensors"))
    rest = args[1:]
    if isinstance(first, Sequence) and name in ("cat", "concat", "concatenate", "stack"):
        axis = kwargs.get("dim", kwargs.get("axis", rest[0] if rest else Constant(0)))
        make: Callable[[Sequence, Any], Shape] = stacked if name == "stack" else joined
        return make(first, constant(axis))
    if name in ("vstack", "hstack", "column_stack"):
        return None
    if name == "where" and len(args) == 3:
        return broadcast(map(shape_of, args))
    return of_method(name, shape_of(first), rest, kwargs)


def note_parts(
    call: LibraryCall, made: Tensor, shape: Shape, size: Value | None, dim: object
) -> None:
    """The shape and the number of the parts that `split` or `chunk` leaves along the first
    dimension: the last may be shorter."""
    name = call.name.rpartition(".")[2]
    if name not in ("split", "chunk") or not shape or dim != 0:
        return
    made.pieces = (1 if name == "split" and sized(size) == 1 else None, *shape[1:])
    if name == "split" and size is not None:
        written = call.machine.size(size)
        run = (by_default(call.machine, each) for each in (shape[0], written))
        found = _number_of_parts(shape[0], written), _number_of_parts(*run)
        made.parts = None if found == (None, None) else found


def _number_of_parts(rows: Size, size: Size) -> Size:
    if rows is None or size is None:
        return None
    if not isinstance(rows, int) or not isinstance(size, int):
        return f"({rows} // {size})"  # as programs plan it, the last and shorter part aside
    return -(-rows // size) if size > 0 else None


def range_of(args: list[Value]) -> Shape:
    """Of `arange(args)`."""
    numbers = [sized(each) for each in args]
    known = [each for each in numbers if isinstance(each, int)]
    if not 0 < len(known) == len(numbers) <= 3 or (len(known) == 3 and known[2] == 0):
        return None
    return (len(range(*known)),)


def of_arithmetic(sign: ast.operator, left: Value, right: Value) -> Shape:
    if isinstance(sign, ast.MatMult):
        return product(shape_of(left), shape_of(right))
    return broadcast([shape_of(left), shape_of(right)])
