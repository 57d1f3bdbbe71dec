"""Whether a loader takes tensors in memory apart into samples and puts them together again."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset, default_collate

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.things import Loader

if TYPE_CHECKING:
    from torch.utils.data import DataLoader


def note(loader: DataLoader[Any], thing: Loader) -> None:
    """Note on a loader's thing how it fetches, once."""
    if thing.one_by_one is None:
        thing.iterable = issubclass(type(loader.dataset), IterableDataset)
        thing.one_by_one = (
            loader.batch_size is not None
            and loader.collate_fn is default_collate
            and _is_indexed(loader.dataset)
        )


def _is_indexed(dataset: object, depth: int = 4) -> bool:
    """All that it does to give a sample is to index tensors."""
    if type(dataset) is Subset:
        return depth > 0 and _is_indexed(dataset.dataset, depth - 1)
    if type(dataset) is TensorDataset:
        return not hasattr(type(dataset), "__getitems__")
    method = getattr(type(dataset), "__getitem__", None)
    if not inspection.is_a(dataset, Dataset) or type(method) is not FunctionType:
        return False
    return not hasattr(type(dataset), "__getitems__") and _indexes(method, dataset)


def _indexes(method: FunctionType, dataset: object) -> bool:
    """`return self.x[i], self.y[i]`, where these are tensors on the CPU."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method))).body[0]
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(tree, ast.FunctionDef) or len(tree.args.args) != 2:
        return False
    body = tree.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # its docstring
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return False
    value = body[0].value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    own, index = (each.arg for each in tree.args.args)
    return bool(parts) and all(_is_row(each, own, index, dataset) for each in parts)


def _is_row(node: ast.expr, own: str, index: str, dataset: object) -> bool:
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return False
    holder, place = node.value.value, node.slice
    if not isinstance(holder, ast.Name) or not isinstance(place, ast.Name):
        return False
    held = inspection.attributes(dataset).get(node.value.attr)
    return (holder.id, place.id) == (own, index) and type(held) is torch.Tensor
