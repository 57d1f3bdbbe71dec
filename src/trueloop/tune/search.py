"""The search: trials that train, each in a separate process, ended early by their evaluations."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.checkpoint import write_atomic
from trueloop.errors import RunError, TrueloopError
from trueloop.run import Run
from trueloop.run.json_files import unspell
from trueloop.run.log import best_eval
from trueloop.tune.proposed_config import value_as_yaml
from trueloop.tune.study import StudyFolder, distributions
from trueloop.tune.trial_processes import TrialProcesses, TrialResult, TrialSpec

if TYPE_CHECKING:
    import optuna

_LOOK = 0.3
"""Seconds between two looks at a trial's log."""
_GRACE = 30.0
"""Seconds that a trial has to save and end."""
_FIRST_FAILURES = 3
"""So many trials that fail, with none that did not, and the search ends: they have a cause."""


class EvaluationLog:
    """The evaluations of a run, read from its log as they are written."""

    def __init__(self, path: Path, monitor: str) -> None:
        self.values: list[float] = []
        """The monitored score of each evaluation; NaN where it was not finite or not there."""
        self._path, self._monitor, self._offset = path, monitor, 0

    def read(self) -> None:
        """Take in what has been written since."""
        try:
            size = self._path.stat().st_size
            if size < self._offset:  # a resumed run has cut its log back
                self._offset, self.values = 0, []
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except OSError:
            return
        whole, end, _ = content.rpartition(b"\n")
        self._offset += len(whole) + len(end)
        for line in whole.split(b"\n"):
            if b'"eval"' in line:
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            return
        if found.get("kind") == "eval":
            value = unspell(found.get(self._monitor))
            self.values.append(float(value) if isinstance(value, (int, float)) else math.nan)


class StudyRunner:
    """Goes through the trials of a study, new ones and those that were interrupted."""

    def __init__(
        self,
        folder: StudyFolder,
        study: optuna.Study,
        processes: TrialProcesses,
        *,
        say: Callable[[str], None],
        after_trial: Callable[[], None],
    ) -> None:
        self.folder, self.study, self.plan = folder, study, folder.plan
        self._processes, self._say, self._after = processes, say, after_trial
        self._space = distributions(self.plan.space)

    def run(self, trials: int, seconds: float | None) -> None:
        """Make trials until there are so many, or the time is over (then none is begun)."""
        began = time.monotonic()
        while seconds is None or time.monotonic() - began < seconds:
            trial = self._next(trials)
            if trial is None:
                return
            self._run_trial(trial)
            self._after()
            self._check_failures()

    def _next(self, trials: int) -> optuna.Trial | None:
        """The trial that was interrupted, or a new one; None where there are enough."""
        import optuna

        for frozen in self.study.get_trials(deepcopy=False):
            if frozen.state == optuna.trial.TrialState.RUNNING:
                if set(frozen.params) == set(self._space):
                    return optuna.Trial(self.study, frozen._trial_id)
                # Killed while its values were drawn: there is nothing of it yet.
                self._end(optuna.Trial(self.study, frozen._trial_id), None, "killed at its start")
        if len(self.study.get_trials(deepcopy=False)) >= trials:
            return None
        return self.study.ask(self._space)

    def _run_trial(self, trial: optuna.Trial) -> None:
        """Train with the trial's values to the end, or until it promises too little."""
        number, params = trial.number, dict(trial.params)
        config = self.folder.config_of(number)
        options = {"task": self.plan.task, **self.plan.options, **params}
        text = "".join(f"{name}: {value_as_yaml(value)}\n" for name, value in options.items())
        write_atomic(config, text.encode())
        shown = ", ".join(f"{name} {_short(value)}" for name, value in params.items())
        self._say(f"trial {number}: {shown}")
        run = self.folder.run_of(number)
        words = ["train", self.plan.task, "--config", str(config), "--run", str(run)]
        words += ["--resume", "auto", "--quiet"]
        log = EvaluationLog(run / "metrics.jsonl", self.plan.monitor)
        self._processes.start(TrialSpec(job=words, log=self.folder.log_of(number)))
        try:
            outcome, pruned = self._watched(trial, log)
        except KeyboardInterrupt:
            self._stop()  # saved, so that the next start goes on with it
            raise
        self._conclude(trial, outcome, pruned, log)

    def _watched(self, trial: optuna.Trial, log: EvaluationLog) -> tuple[TrialResult, bool]:
        """Report the evaluations as they come; how the trial ended, and whether it was pruned."""
        import optuna

        frozen = self.study.get_trials(deepcopy=False)[trial.number]
        reported = len(frozen.intermediate_values)
        assert isinstance(frozen, optuna.trial.FrozenTrial)
        while (outcome := self._processes.poll(_LOOK)) is None:
            log.read()
            while reported < len(log.values):
                reported += 1
                value = log.values[reported - 1]
                if not math.isfinite(value):
                    continue
                trial.report(value, reported)
                # At its last evaluation a trial has cost all that it will: its score is kept.
                if reported != self._evaluations(trial.params) and trial.should_prune():
                    return self._stop(), True
        log.read()
        for step, value in enumerate(log.values[reported:], reported + 1):
            if math.isfinite(value):
                trial.report(value, step)
        return outcome, False

    def _evaluations(self, params: dict[str, Any]) -> int | None:
        """Evaluations of a whole trial, where there is one at the end of each epoch."""
        options = {"epochs": self.plan.epochs, **self.plan.options, **params}
        if options.get("eval_every") is not None or options["epochs"] is None:
            return None
        return int(options["epochs"])

    def _stop(self) -> TrialResult:
        """End the running trial, saved where there is time for it."""
        self._processes.stop(signal.SIGINT)
        outcome = self._processes.poll(_GRACE)
        while outcome is None:
            self._processes.stop(signal.SIGKILL)
            outcome = self._processes.poll(_GRACE)
        return outcome

    def _conclude(
        self, trial: optuna.Trial, outcome: TrialResult, pruned: bool, log: EvaluationLog
    ) -> None:
        import optuna

        if pruned:
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            count = len(log.values)
            words = f"{count} evaluation{'s' if count != 1 else ''}"
            self._say(f"trial {trial.number}: pruned after {words}")
            return
        value, reason = self._result(trial.number, outcome)
        self._end(trial, value, reason)

    def _result(self, number: int, outcome: TrialResult) -> tuple[float | None, str]:
        """The best monitored score of the trial's run, or why it has none."""
        if not outcome.is_done:
            return None, outcome.reason or outcome.status
        if outcome.value != 0:
            return None, self._last_words(number) or f"exit status {outcome.value}"
        try:
            lines = Run(self.folder.run_of(number)).metrics()
        except TrueloopError as error:
            return None, str(error)
        evals = [line for line in lines if line["kind"] == "eval"]
        best = best_eval(evals, self.plan.monitor)
        if best is None:
            return None, f"no evaluation had a finite {self.plan.monitor}"
        return float(best[self.plan.monitor]), ""

    def _last_words(self, number: int) -> str:
        try:
            lines = self.folder.log_of(number).read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return said[-1].removeprefix("trueloop: error: ")[:500] if said else ""

    def _end(self, trial: optuna.Trial, value: float | None, reason: str) -> None:
        """Record the trial's end: its value, or the reason of its failure."""
        import optuna

        if value is not None:
            self.study.tell(trial, value)
            self._say(f"trial {trial.number}: {self.plan.monitor} {value:.6g}")
            return
        trial.set_user_attr("reason", reason)
        self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        self._say(f"trial {trial.number}: failed: {reason}")

    def _check_failures(self) -> None:
        import optuna

        ended = self.study.get_trials(deepcopy=False)
        failed = [one for one in ended if one.state == optuna.trial.TrialState.FAIL]
        if len(failed) == len(ended) >= _FIRST_FAILURES:
            raise RunError(
                f"the first {len(failed)} trials failed, the last one: "
                f"{failed[-1].user_attrs.get('reason')}"
            )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
