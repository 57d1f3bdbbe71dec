"""A function on tensors, made into one compiled graph.

The user's forward and loss are traced by dynamo, which checks before each call that what it has
traced (control flow, modes, plain numbers) is still valid, and traces again if not. What it hands
over is joined with the backward and the update, and compiled as a whole by inductor, which keeps
what it has compiled on disk for the next run.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

Lowered = Callable[[list[Tensor]], Sequence[Tensor]]
"""A compiled function of a list of tensors, which it may empty."""
Function = Callable[..., Sequence[Tensor]]

VERSIONS = 4
"""Times that one function is traced again for the same shapes, before it is given up."""


class NotCapturedError(Exception):
    """A function cannot be made one graph; the message says why."""


class NotCompiledError(NotCapturedError):
    """There is a graph, and the compiler fails on it; the message says why."""


def compiled(function: Function, inputs: Sequence[Tensor], static: Sequence[int]) -> Lowered:
    """`function(*inputs)`, a computation without control flow by values, as inductor's code.

    It may write into its inputs, and returns tensors that share no memory with them. `static` are
    the positions of inputs that are the same memory in each call.
    """
    from torch._inductor import compile_fx as inductor, config

    graph, plain = traced(function, inputs)
    options: dict[str, Any] = {} if not plain[0].is_cuda else {"triton.cudagraphs": True}
    found: list[Any] = []

    def inner(*args: Any, **kwargs: Any) -> Any:
        kwargs["static_input_idxs"] = static
        found.append(inductor.compile_fx_inner(*args, **kwargs))
        return found[-1]

    # Dynamo has looked at the shapes, and the rest is memory of torch's own.
    for name in ("size_asserts", "alignment_asserts"):
        if hasattr(config, name):
            options[name] = False
    try:
        with torch.no_grad():
            whole: Any = inductor.compile_fx(
                graph, plain, inner_compile=inner, config_patches=options
            )
    except Exception as error:
        reason = " ".join(str(error).split())[:160]
        raise NotCompiledError(f"torch's compiler fails ({reason})") from None
    # The code around what is found takes some 10 microseconds, and none of it is needed: no input
    # is returned, and the compiled code itself writes the results.
    lowered: Lowered = found[0] if len(found) == 1 else lambda given: whole(*given)
    if plain[0].is_cuda:
        # A CUDA graph writes into the same memory at each replay. And while a result of the last
        # call is alive, torch records the graph anew and keeps it, call after call.
        return lambda given: [each.clone() for each in lowered(given)]
    # On the CPU the code for autotuning and CUDA graphs is not needed either.
    call = getattr(lowered, "current_callable", None)
    if call is None:
        return lowered
    bare: Any = partial(call)
    bare.graph = lowered  # which takes its code with it when it is deleted
    return cast(Lowered, bare)


def interpreted(function: Function, inputs: Sequence[Tensor], static: Sequence[int]) -> Lowered:
    """The same graph, run operation by operation: for tests, which have no time to compile it."""
    graph, _ = traced(function, inputs)
    return lambda given: graph(*given)


LOWER = compiled
"""How graphs are made into code."""


def traced(function: Function, inputs: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
    """The graph of `function`, with gradients taken inside of it, and its inputs without theirs."""
    from torch.fx.experimental.proxy_tensor import make_fx

    plain = [each.detach() for each in inputs]
    with torch.no_grad(), torch.random.fork_rng(devices=_devices(plain)):
        return make_fx(function, tracing_mode="fake")(*plain), plain


def _devices(tensors: Sequence[Tensor]) -> list[torch.device]:
    return list({each.device for each in tensors if each.is_cuda})


_numbers = itertools.count()
"""Of the functions that have been traced in this process."""


def _quiet(utils: types.ModuleType) -> types.SimpleNamespace:
    """Dynamo's module without the marks for the profiler in the code that it writes: they take as
    long as a small layer."""
    marks = {
        "record_pregraph_bytecode_enter": lambda: None,
        "record_pregraph_bytecode_exit": lambda mark: None,
    }
    return types.SimpleNamespace(**{**vars(utils), **marks})


_FIXED = ("G['__builtins_dict__", "G['__import_torch_dot_", "G['__import_trueloop_dot_")
"""Where dynamo's names of things begin that are Python's, torch's and ours."""
_NAMES = ("CLOSURE_MATCH", "FUNCTION_MATCH", "BUILTIN_MATCH", "CLASS_MATCH", "MODULE_MATCH")
"""Guards that a name still means the same function, class or module."""


def _needed(guards: Sequence[Any]) -> list[bool]:
    """Which of dynamo's guards to check before each call: not that torch's functions are still
    torch's functions, which takes half of the time of all of them."""
    return [not (guard.guard_type in _NAMES and guard.name.startswith(_FIXED)) for guard in guards]


class Direct:
    """One trace of dynamo's, called without the way through torch.compile, which takes longer than
    a small layer: its guards, and then the code that it has written."""

    def __init__(self, entry: Any, function: types.FunctionType) -> None:
        self._guards = entry.guard_manager
        code: types.CodeType = entry.code
        names = {name: each for name, each in function.__globals__.items() if name in code.co_names}
        for name, each in names.items():
            if name.startswith("__compiled_fn"):
                # It is wrapped, so that dynamo traces nothing within it; here it would not.
                names[name] = getattr(each, "_torchdynamo_orig_callable", each)
            elif name.startswith("__import_torch_dot__dynamo_dot_utils"):
                names[name] = _quiet(each)
        names["__builtins__"] = function.__globals__["__builtins__"]
        self.call = types.FunctionType(
            code, names, code.co_name, function.__defaults__, function.__closure__
        )

    def is_valid(self, variables: dict[str, Any]) -> bool:
        """Whether the trace is right for a call with these local variables."""
        # An entry is dropped when something that a guard knows by its address is gone.
        return self._guards.cache_entry is not None and self._guards.check(variables)


class Traced:
    """Calls a function of the user's, of one argument, by what `lower` makes of its graph.

    `lower(graph, inputs)` gets what dynamo has traced, with the tensors of its first call, before
    anything is run. Raises `NotCapturedError`, or an error of the compiler's, with nothing done.
    """

    _NOTHING: ClassVar = (None, object())

    def __init__(
        self, function: Callable[[Any], Any], lower: Callable[[Any, Sequence[Tensor]], Lowered]
    ) -> None:
        self._lower = lower
        self.versions = 0
        self.called = False
        """Whether the last call has come as far as the compiled code."""
        assert isinstance(function, types.FunctionType)
        # A code object of its own: dynamo counts, and searches, what was compiled of one.
        code = function.__code__.replace(co_name=f"{function.__name__}_{next(_numbers)}")
        own = types.FunctionType(
            code, function.__globals__, code.co_name, function.__defaults__, function.__closure__
        )
        self._own = own
        self._function = torch.compile(
            own, backend=self._backend, fullgraph=True, options={"guard_filter_fn": _needed}
        )
        self._argument = code.co_varnames[0]
        self._enclosed = {
            name: cell.cell_contents
            for name, cell in zip(code.co_freevars, own.__closure__ or (), strict=True)
        }
        self._direct: list[Direct] = []
        self._found: tuple[Any, Any] = self._NOTHING
        """The trace that is valid for the argument of the next call, and that argument."""

    def finds(self, given: Any) -> bool:
        """Whether an existing trace is valid for such an argument; the next call then takes it."""
        if self._direct:
            variables = {**self._enclosed, self._argument: given}
            for each in self._direct:
                if each.is_valid(variables):
                    self._found = each, given
                    return True
        return False

    def __call__(self, given: Any) -> Any:
        self.called = False
        if self._found[1] is given or self.finds(given):
            direct, self._found = self._found[0], self._NOTHING
            return direct.call(given)
        found = self._function(given)
        if not self.called:
            raise NotCapturedError("torch's compiler is turned off (torch.compiler.set_stance)")
        self._direct = self._entries()
        return found

    def _entries(self) -> list[Direct]:
        """The traces that dynamo has; none where this version of torch keeps them otherwise."""
        try:
            from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

            entries = _debug_get_cache_entry_list(self._own.__code__)
            return [Direct(each, self._own) for each in entries]
        except (ImportError, AttributeError, KeyError):
            return []

    def _backend(self, graph: Any, examples: Sequence[Any], **options: Any) -> Callable[..., Any]:
        self.versions += 1
        if self.versions > VERSIONS:
            raise NotCapturedError(
                "a plain number or a mode that the forward or the loss reads changes again and "
                "again (TORCH_LOGS=recompiles names it; make it a tensor)"
            )
        lowered: Lowered | None = None

        def run(*inputs: Tensor) -> Any:
            nonlocal lowered
            if lowered is None:
                lowered = self._lower(graph, inputs)
            self.called = True
            grad = torch.is_grad_enabled()
            torch._C._set_grad_enabled(False)
            try:
                return lowered(list(inputs))
            finally:
                torch._C._set_grad_enabled(grad)

        return run
