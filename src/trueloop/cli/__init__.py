"""The command line: `trueloop VERB …`; one file per verb.

Exit status: 0 fine; 1 the training itself failed, a resumed run is a different run, or `check`
found errors or warnings; 2 the user's mistake, in one line; 128 + the signal's number (130, 143)
interrupted, with what was reached saved; 141 whoever read the output went away.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from trueloop.cli._signals import Signals
from trueloop.errors import ConfigError, NonFiniteError, RankError, UserError, nearest, shortened
from trueloop.names import printable_line

VERBS = {
    "train": "train a ready-made task or your own",
    "resume": "resume an interrupted run from its last checkpoint",
    "verify-resume": "check that a resumed run is bitwise the one that never stopped",
    "evaluate": "score a run's best weights, on its own data or different data",
    "predict": "write a run's predictions for new data to a file",
    "export": "write a run's model for use without trueloop: Python, torch, ONNX",
    "generate": "write text with a trained language model, or score a text",
    "runs": "list the runs in a folder",
    "follow": "show the curves of a run in the terminal as it goes",
    "report": "write a run's report again, or compare several runs",
    "check": "find silent training bugs in source, without running it",
    "watch": "run your program unchanged, and find silent training bugs",
    "replay": "re-run the recorded operations that produced a NaN",
    "lsp": "show what check finds in your editor, as you type",
    "explain": "print the page of a rule: the fault, what it breaks, what is right",
    "tune": "measure what makes a training faster, or search for options",
    "lab": "test common advice about training loops by experiment",
    "env": "print versions, devices and settings, and what is likely set wrong",
    "completion": "print a script that completes commands at the Tab key",
}
OK, FAILED, MISTAKE, NO_READER = 0, 1, 2, 141
_thresholds: list[tuple[int, int, int]] = []
"""Those of Python's garbage collector, while others hold."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status.

    Without `argv` it is the process's own command line that is run: its end is the process's.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        collect_seldom()
    with Signals(to_the_end=argv is None) as signals:
        if words[:1] != ["watch"]:
            try:
                return signals.outlast(lambda: _status(words))
            finally:
                collect_as_usual()  # Python collects once more when it ends
        # It runs a program that nothing of what follows may come near.
        begin = signals.outlast(lambda: _watched(words[1:]))
        signals.release()
    collect_as_usual()
    return begin if isinstance(begin, int) else begin()


def collect_seldom() -> None:
    """Until a training begins, collect garbage after many new objects: those of torch's import
    stay, and a fifth of the time of a start would go to collections that look at them."""
    _thresholds.append(gc.get_threshold())
    gc.set_threshold(100_000, *_thresholds[-1][1:])


def collect_as_usual() -> None:
    """As Python does it, but for what has been imported until now."""
    if _thresholds:
        gc.freeze()
        gc.set_threshold(*_thresholds.pop())


def _watched(words: list[str]) -> Callable[[], int] | int:
    """A function that runs the program under the watcher, or the exit status without a
    program."""
    watch = importlib.import_module("trueloop.cli.watch")
    prepared: Callable[[], int] | int = watch.prepared(words)
    return prepared


def _status(words: list[str]) -> int:
    """Run one verb, with every mistake in one line; the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file name that is not UTF-8 must not end a run where it is printed.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            keep_libraries_quiet()
            status = _dispatch(words)
        if sys.stdout is not None:  # closed by the caller: `>&-`
            sys.stdout.flush()
    except SystemExit as stop:  # argparse leaves this way after --help
        if isinstance(stop.__context__, BrokenPipeError):  # and rich when its reader went away
            return NO_READER
        return stop.code if isinstance(stop.code, int) else MISTAKE
    except UserError as error:
        return _fail(error, str(error), MISTAKE)
    except (NonFiniteError, RankError) as error:
        return _fail(error, str(error), FAILED)
    except ModuleNotFoundError as error:
        return _fail(error, _missing_library(error), MISTAKE)
    except BrokenPipeError:
        # The reader (head, less) went away: nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    except (MemoryError, RuntimeError) as error:
        return _fail(error, _of_the_machine(error), MISTAKE)
    except OSError as error:
        return _fail(error, _about_files(error), MISTAKE)
    return status


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return OK
    if words[0] == "--version":
        from trueloop import __version__

        print(f"trueloop {__version__}")
        return OK
    verb, *rest = words
    if verb not in VERBS:
        kind = "option" if verb.startswith("-") else "verb"
        raise ConfigError(f"unknown {kind} {verb!r}: {nearest(verb, VERBS)}")
    from trueloop.cli._ranks import run_verb

    return run_verb(verb, rest)


def refuse_dashes(words: Sequence[str]) -> None:
    """Raise `ConfigError` for --option=--, of which argparse makes an empty list."""
    for word in words:
        option, _, value = word.partition("=")
        if value == "--" and option.startswith("--"):
            raise ConfigError(f"{option} needs a value, and -- is not one: write {option}=VALUE")


def usage() -> str:
    width = max(map(len, VERBS)) + 2
    verbs = "\n".join(f"  {verb:<{width}}{line}" for verb, line in VERBS.items())
    return (
        "usage: trueloop VERB [options]\n\n"
        "The PyTorch training loop with every line in the right place.\n\n"
        f"verbs:\n{verbs}\n\n"
        "  trueloop VERB --help     the options of a verb\n"
        "  trueloop train           the tasks there are\n\n"
        "example:\n  trueloop train spiral --epochs 30 --lr 3e-3"
    )


def keep_libraries_quiet() -> None:
    """Third parties' warnings are not news about the user's run, unless they are asked for."""
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=r"(?!trueloop)")
        warnings.filterwarnings("default", module=r"trueloop")
        warnings.filterwarnings("always", category=RuntimeWarning, module=r"trueloop")
        warnings.showwarning = _print_warning
        # `--deterministic` asks for what there is; that some operation has none is no news.
        warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation")


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, without the place in our code."""
    print(f"trueloop: warning: {printable_line(str(message))}", file=sys.stderr)


def _fail(error: BaseException, message: str, status: int) -> int:
    """Print the one line about it, on many ranks by one of them; the exit status."""
    where = ""
    if os.environ.get("WORLD_SIZE", "1").strip() != "1":
        from trueloop import ranks

        ranks.fail_before_joining(error)
        if not ranks.speaks():
            return status
        where = ranks.prefix()
    print(f"trueloop: error: {where}{shortened(printable_line(message))}", file=sys.stderr)
    return status


def _missing_library(error: ModuleNotFoundError) -> str:
    """The message in an environment of `trueloop-check`; any other error is raised on."""
    from importlib.util import find_spec

    if find_spec("torch") is not None:
        raise error
    return (
        "torch is not installed, and without it only check, explain and lsp work: "
        "pip install trueloop (in place of trueloop-check)"
    )


def _of_the_machine(error: Exception) -> str:
    """The message for an error that is the machine's rather than the program's; any other is raised
    on."""
    from trueloop.device import is_out_of_memory

    if is_out_of_memory(error):
        return "out of memory: lower --batch-size, or make the model or the data smaller"
    if "DataLoader worker" in str(error):  # of a loader that the user's own task reads by itself
        from trueloop.feed.workers import worker_death

        death = worker_death(error)
        if death is not None:
            return str(death)
    raise error


def _about_files(error: OSError) -> str:
    """An error of the operating system in one line, with what can be done about it."""
    import errno

    remedy = {
        errno.ENOSPC: "free some space, or write elsewhere",
        errno.EDQUOT: "free some space, or write elsewhere",
        errno.EACCES: "choose a place that you may write, or change its permissions",
        errno.EPERM: "choose a place that you may write, or change its permissions",
        errno.EROFS: "choose a place that can be written",
        errno.EMFILE: "raise the limit on open files (ulimit -n), or use fewer --workers",
    }.get(error.errno or 0, "check the path")
    if error.strerror is None:
        return str(error) or type(error).__name__
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror.lower()}{where}: {remedy}"
