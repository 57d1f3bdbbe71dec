"""The composition root: builds the parts that watch a process, and connects them.

Patches publish to the hub; the recorder turns what they saw into events for the rules; probes, the
non-finite monitor, the training monitor and the step timer subscribe. Nothing below imports this.
"""

from __future__ import annotations

from trueloop.doctor.live.hub import Hub
from trueloop.doctor.live.memory import out_of_memory
from trueloop.doctor.live.memory.recorded_shapes import RecordedShapes
from trueloop.doctor.live.nonfinite.monitor import NonFiniteMonitor
from trueloop.doctor.live.objects.manual_edits import ManualEdits
from trueloop.doctor.live.patches import install
from trueloop.doctor.live.patches.patching import Patches
from trueloop.doctor.live.probes.all_probes import PROBES, subscribe
from trueloop.doctor.live.recorder import Recorder
from trueloop.doctor.live.sampling_schedule import SamplingSchedule
from trueloop.doctor.live.timing import timing_report
from trueloop.doctor.live.timing.step_timer import StepTimer
from trueloop.doctor.live.training.monitor import TrainingMonitor
from trueloop.doctor.live.unsampled_updates import UnsampledUpdates
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.loading import rules_for


class Watcher:
    """Watches one process.

    Args:
        rules: the rules to apply; all that are seen live if None.
        first: watch so many updates and then take every hook off; None: all.
    """

    def __init__(self, rules: list[type[Rule]] | None = None, first: int | None = None) -> None:
        self.hub = hub = Hub()
        self.sampling = SamplingSchedule(hub, first)
        self.recorder = recorder = Recorder(hub, rules_for("L") if rules is None else rules)
        codes = {rule.code for rule in recorder.rules}
        self.timer = StepTimer(hub, recorder)
        self.nonfinite = NonFiniteMonitor(hub, recorder, codes)
        self.training = TrainingMonitor(hub, recorder, codes, self.nonfinite)
        self.probes = [*(kind(recorder) for kind in PROBES), self.training]
        self.patches = Patches()
        UnsampledUpdates(hub, self.sampling, self.timer, self.nonfinite, self.training)
        self._connect(ManualEdits(hub, recorder))

    def _connect(self, edits: ManualEdits) -> None:
        """Who hears of what, and in which order."""
        hub, recorder, sampling = self.hub, self.recorder, self.sampling
        timer, nonfinite, training = self.timer, self.nonfinite, self.training
        hub.loader_begins.subscribe(training.begins, timer.begins)
        hub.batch_fetched.subscribe(nonfinite.fetched)
        hub.mode_switched.subscribe(timer.switched)
        hub.compiles.subscribe(timer.reads.compiles)
        hub.evaluation_loss.subscribe(training.evaluated)
        hub.loss_scaled.subscribe(nonfinite.scaled, training.scaled)
        hub.backward_begins.subscribe(nonfinite.before, training.backward)
        hub.backward_ended.subscribe(nonfinite.after)
        hub.gradients_used.subscribe(edits.look)
        hub.gradients_written.subscribe(edits.note_gradients)
        hub.parameters_written.subscribe(edits.note_parameters)
        hub.optimizer_stepped.subscribe(training.stepped)
        hub.updated.subscribe(sampling.updated)
        hub.update_ended.subscribe(nonfinite.stepped, timer.updated)
        hub.compiled_update.subscribe(sampling.compiled_update)
        hub.loop_turned.subscribe(sampling.turned)
        hub.missed_something.subscribe(recorder.unwatched)
        hub.sampling_ended.subscribe(
            nonfinite.pause, recorder.sampling_ended, hub.unwatched, hub.refresh_call_patch
        )
        hub.closes.subscribe(self._close)
        for each in self.probes:
            subscribe(each, hub)

    def start(self) -> None:
        """Put the hooks in; the program's torch must be imported."""
        assert not self.hub.active
        self.hub.active = True
        install.install(self.recorder, self.patches)

    def stop(self) -> None:
        """Take all hooks off."""
        self.hub.unsampled.leave()
        self.hub.sampling = False
        self._close(in_step=False)

    def _close(self, *, in_step: bool = True) -> None:
        hub = self.hub
        hub.active = hub.checks_finite = hub.follows_training = False
        self.timer.close()
        self.patches.undo(in_step=in_step)

    def death_of(self, error: BaseException) -> out_of_memory.OutOfMemory | None:
        """The facts about an out-of-memory exception."""
        (recipes,) = (each for each in self.probes if isinstance(each, RecordedShapes))
        return out_of_memory.death_of(self.recorder, self.nonfinite.calls, recipes, error)

    def findings(self) -> list[Finding]:
        """The findings of the rules, after all loops have ended."""
        self.hub.guarded(self.nonfinite.end)
        self.hub.guarded(self.training.end)
        self.hub.guarded(timing_report.tell, self.timer)
        if not self.hub.cut:
            self.recorder.end()
        return self.recorder.findings()
