"""The meaning of names and conditions in a program, whether it is read or watched as it runs."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from trueloop.doctor.model.nodes import walk

RANKS = (
    r"rank|master|main_?proc|is_main|primary|zero|leader|chief|coordinator|\bgpu|device|local_"
    r"|proc\w*_(id|index)|node|is_root"
)
"""Asks which of the processes this is; whether there are several is a separate question."""
ASKS_FOR_RANK = re.compile(RANKS, re.I)
RANK_GUARD = re.compile(RANKS + r"|^(not )?([a-z_]{1,8}|[\w.]+\(\)) == 0$", re.I)
"""The same of a whole condition: `if local == 0`, `if which() == 0` too."""
DIFFERS_BY_RANK = re.compile(RANKS + r"|world|hostname|getpid|shard|replica", re.I)
"""Speaks of what differs between the processes."""

WITHOUT_FRACTION = frozenset("bool int32 int64".split())
"""Types whose tensors have no gradient."""
MODE_DEPENDENT_LAYERS = frozenset(
    "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout BatchNorm1d BatchNorm2d"
    " BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d DropPath"
    " StochasticDepth TransformerEncoderLayer TransformerDecoderLayer Transformer"
    " TransformerEncoder TransformerDecoder".split()
)

_CUTS = frozenset("range arange islice".split())
_SHARES = frozenset("shard split_dataset_by_node".split())
_SPLITS = frozenset("array_split tensor_split chunk".split())
_PER_RANK = re.compile(r"rank|world|replica|num_(proc|gpu)", re.I)
_COMPUTED = re.compile(
    r"loss|err|cost|nll|kl|[mb]?ce$|mse|elbo|entropy|penalty|objective|logit|pred|out|recon|feat|emb"
    r"|hidden",
    re.I,
)


def names_a_tensor(name: str) -> bool:
    """Of several things that a model or a loss returns, this one is more than a count."""
    return _COMPUTED.search(name) is not None


def tests_mode(definition: ast.AST) -> bool:
    """Some condition in a function asks whether the module trains."""
    for node in walk(definition):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            asked: list[ast.AST] = [node.test]
        elif isinstance(node, ast.BoolOp):
            asked = list(node.values)
        else:
            continue
        for part in (inner for each in asked for inner in walk(each)):
            word = getattr(part, "attr", "") or getattr(part, "id", "")
            if "train" in word or "eval" in word:
                return True
    return False


def cuts_by_rank(tree: ast.AST) -> bool:
    """A file takes a share of its data by the rank: `indices[rank::world_size]`."""
    for node in walk(tree):
        if isinstance(node, ast.Slice) and "rank" in ast.unparse(node).lower():
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _SHARES or (name in _CUTS | _SPLITS and _PER_RANK.search(ast.unparse(node))):
                return True
    return False


_PREFIXES = ("module.", "_orig_mod.", "model._orig_mod")
_CUT = [len("module."), len("_orig_mod.")]


def handles_prefix(tree: ast.Module) -> bool:
    """The source handles a wrapper's prefix somewhere: `key.replace("module.", "")`, or `key[7:]`
    in a file that loads states."""
    nodes = walk(tree)
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    loads = "load_state_dict" in attributes
    return any(_names_prefix(node) or (loads and _cuts_prefix(node)) for node in nodes)


def _names_prefix(node: ast.AST) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and text.strip("^").startswith(_PREFIXES)


def _cuts_prefix(node: ast.AST) -> bool:
    """`key[7:]`."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)):
        return False
    part = node.slice
    first = part.lower if isinstance(part, ast.Slice) and part.upper is None else None
    return isinstance(first, ast.Constant) and first.value in _CUT


def saves_parts(tree: ast.Module) -> bool:
    """A function of a file, or its top level, writes a choice of a model's entries: only those that
    are trained, for one."""
    top = [each for each in tree.body if not isinstance(each, (ast.FunctionDef, ast.ClassDef))]
    functions: list[list[ast.stmt]] = [
        [node] for node in walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    scopes = [[inner for each in body for inner in walk(each)] for body in (*functions, top)]
    choosing = {
        node.name
        for (node,) in functions
        if isinstance(node, ast.FunctionDef)
        and any(_chooses_entries(each.value) for each in walk(node) if _is_return(each))
    }
    return any(
        any(map(_is_saving, inner))
        and (any(map(_chooses_entries, inner)) or any(_calls(each, choosing) for each in inner))
        for inner in scopes
    )


def _is_return(node: ast.AST) -> TypeGuard[ast.Return]:
    return isinstance(node, ast.Return)


def _calls(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in names


def _chooses_entries(node: ast.AST | None) -> bool:
    if not isinstance(node, ast.DictComp) or not any(each.ifs for each in node.generators):
        return False
    sources = [ast.unparse(each.iter) for each in node.generators]
    return any(word in each for each in sources for word in ("state_dict(", "named_parameters("))


def _is_saving(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "attr", getattr(node.func, "id", "")) == "save"


_STEP_LEFT_OUT = re.compile(
    r"#\s*(?:\w+\.)*(\w+)\.step\(.*\)\s*$|^\s*#\s*\w+\s*=\s*(\w+)\s*,?\s*$", re.M
)
"""`# scheduler.step()`, or the argument that would hand it over: `# scheduler=scheduler,`."""
_NOT_IN_USE = re.compile(
    r"^[ \t]*(?:\w+\.)*(\w+)[ \t]*=[^#\n]*#[^\n]*\b(?:not (?:in use|used)|unused|placeholder)\b",
    re.M | re.I,
)
"""`scheduler = StepLR(optimizer, 100)  # a placeholder`."""


def steps_left_out(text: str) -> frozenset[str]:
    """The names whose `step()` is commented out in a file, or that a comment says are not in use:
    nobody has forgotten it."""
    left_out = (one or other for one, other in _STEP_LEFT_OUT.findall(text))
    return frozenset([*left_out, *_NOT_IN_USE.findall(text)])


CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
"""Modules that hold a list of modules."""
_SHARED_WEIGHTS = re.compile(
    r"shar(e|ing)|(?<![a-z])(tied?|ties|tying)(?![a-z])|siam|albert|universal|re-?us(e|ing)"
    r"|same (weight|layer|module|block|param)",
    re.IGNORECASE,
)


def lines_of_sharing(text: str) -> frozenset[int]:
    """The lines that speak of sharing weights, in names and comments, of a file with containers."""
    if not any(each in text for each in CONTAINERS):
        return frozenset()
    lines = enumerate(text.splitlines(), 1)
    return frozenset(number for number, line in lines if _SHARED_WEIGHTS.search(line))
