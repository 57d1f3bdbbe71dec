"""`trueloop completion SHELL`: a script that completes verbs, tasks, options and their values.

The script has all of them in it: no Python starts when a key is pressed.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Sequence
from typing import Any

from trueloop.cli import OK, VERBS
from trueloop.errors import ConfigError, nearest
from trueloop.option import OptionFacts

SHELLS = ("bash", "zsh", "fish")
_OF_A_TASK = ("train", "tune", "verify-resume")
_EPILOG = """\
Write the script into the file where your shell looks for it, and start a new shell:

  bash  ~/.local/share/bash-completion/completions/trueloop
  zsh   ~/.zfunc/_trueloop, or a different folder of your fpath
  fish  ~/.config/fish/completions/trueloop.fish

The script knows the options of this version: write it again after an update.

example:
  trueloop completion bash > ~/.local/share/bash-completion/completions/trueloop"""
_OF_WATCH = {"format": OptionFacts(choices=("text", "json"))}
"""For the one parser that declares no values."""
_RUNS = {
    "bash": "_trueloop_run_dirs",
    "zsh": "_trueloop_runs",
    "fish": "(__trueloop_runs)",
}
"""Completes a run directory: those in runs/, and any folder."""
_PREAMBLE = {
    "bash": """\
_trueloop_run_dirs() {
  local config
  if [ -z "$1" ]; then
    for config in runs/*/config.json; do
      [ -f "$config" ] && echo "${config%/config.json}"
    done
  fi
  compgen -d -- "$1"
}""",
    "zsh": """\
_trueloop_runs() {
  local -a found
  found=(runs/*/config.json(N:h))
  (( $#found )) && compadd -- $found
  _files -/
}""",
    "fish": """\
function __trueloop_runs
  for config in runs/*/config.json
    string replace -r '/config.json$' '' $config
  end
  __fish_complete_directories (commandline -ct)
end""",
}


def main(argv: Sequence[str]) -> int:
    """Print the script; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop completion",
        usage="trueloop completion SHELL",
        description="Print a script with which your shell completes verbs, tasks, options, values, "
        "files and run directories at the Tab key.",
        epilog=_EPILOG,
    )
    parser.add_option(
        "shell", metavar="SHELL", required=True, choices=SHELLS, help="the shell that it is for"
    )
    shell = parser.parse(argv).shell
    if shell not in SHELLS:
        raise ConfigError(f"unknown shell {shell!r}: {nearest(shell, SHELLS)}")
    print(script(shell))
    return OK


def script(shell: str) -> str:
    """The script for one of `SHELLS`."""
    import shtab

    text = str(shtab.complete(whole_parser(), shell, preamble=_PREAMBLE[shell]))
    # Where nothing of ours fits, the shell's own: my_task.py:MyTask begins with a file.
    return text.replace("complete -o bashdefault -F", "complete -o bashdefault -o default -F")


def whole_parser() -> ArgumentParser:
    """One parser of every verb and task, as `shtab` reads them; it parses nothing."""
    from trueloop.tasks import READY_MADE, load

    root = ArgumentParser("trueloop", add_help=False)
    root.add_argument("--help", action="store_true", help="the verbs")
    root.add_argument("--version", action="store_true", help="the version of trueloop")
    verbs = root.add_subparsers(dest="verb")
    for verb, text in VERBS.items():
        of_verb = verbs.add_parser(verb, help=text, description=text, add_help=False)
        if verb not in _OF_A_TASK:
            _copy(options_of(verb), of_verb)
            if verb == "watch":
                of_verb.add_argument("script", metavar="SCRIPT", help="the program")
                _complete(of_verb._actions[-1], "SCRIPT")
            continue
        of_verb.add_argument("--config", metavar="FILE", help="file with the task and its options")
        _complete(of_verb._actions[-1], "FILE")
        tasks = of_verb.add_subparsers(dest="task")
        for task in READY_MADE:
            says = (load(task).__doc__ or "").strip().splitlines()[0].replace("%", "%%")
            of_task = tasks.add_parser(task, help=says, description=says, add_help=False)
            _copy(options_of(verb, task), of_task)
    return root


def options_of(verb: str, *task: str) -> ArgumentParser:
    """The parser of a verb, as its --help sees it."""
    from trueloop.cli._help import PARSERS
    from trueloop.cli._ranks import run_verb

    if verb == "watch":  # whose parser is its own, for the sake of the program that it runs
        from trueloop.cli.watch import _parser

        return _parser()
    found: list[ArgumentParser] = []
    token = PARSERS.set(found)
    try:
        run_verb(verb, [*task, "--help"])
    except SystemExit:
        pass
    finally:
        PARSERS.reset(token)
    assert found, f"trueloop {verb} --help has no parser"
    return found[0]


def _copy(source: ArgumentParser, parser: ArgumentParser) -> None:
    """The options and arguments of `source` in a plain parser, with their values."""
    from trueloop.cli._help import first_sentence

    facts = getattr(source, "facts", _OF_WATCH)
    for action in source._actions:
        if action.help == SUPPRESS:
            continue
        names = action.option_strings or [action.dest]
        text = first_sentence(action.help or "").replace("%", "%%")
        if action.nargs == 0 or (action.nargs == "?" and len(action.option_strings) == 2):
            parser.add_argument(*names, action="store_true", help=text)
            continue
        words = facts.get(action.dest, OptionFacts()).choices
        choices = tuple(word for word in words if word == word.lower())
        values: dict[str, Any] = {"choices": choices} if choices else {}
        nargs = action.nargs if action.nargs in ("+", "*", "?") else None
        copied = parser.add_argument(
            *names, metavar=action.metavar, nargs=nargs, help=text, **values
        )
        _complete(copied, str(action.metavar))


def _complete(action: Action, metavar: str) -> None:
    """Let an argument complete files or folders, by its placeholder in the help."""
    import shtab

    kinds = {"RUN": _RUNS, "FOLDER": shtab.DIRECTORY, "DIR": shtab.DIRECTORY, "FILE": shtab.FILE}
    kinds |= {"PATH": shtab.FILE, "BUNDLE": shtab.DIRECTORY, "SCRIPT": shtab.FILE}
    if metavar in kinds:
        action.complete = kinds[metavar]  # type: ignore[attr-defined]
