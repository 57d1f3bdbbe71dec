"""The one index of the rules: code, name, severity, and where each is seen.

Codes are stable: a code is never used for a different rule.
"""

from __future__ import annotations

from typing import NamedTuple

from trueloop.doctor.model.findings import Severity


class Entry(NamedTuple):
    code: str
    name: str
    severity: Severity
    seen: str
    """`S` in source, `L` live, `D` in the data of `trueloop train`, or several of them. A rule
    about data has a page here, and its detector beside the task."""
    once_a_function: bool = False
    """`check` reports one finding for all lines of a function: the next line has the same cause."""

    @property
    def module(self) -> str:
        """The file with its page and its detector, below `trueloop.doctor.rules`."""
        family = _FAMILIES[self.code[:3]]
        return f"{family}.{self.code}_{self.name}".lower().replace("-", "_")


_FAMILIES = {
    "TL0": "comments",
    "TL1": "order",
    "TL2": "modes",
    "TL3": "parameters",
    "TL4": "losses",
    "TL5": "precision",
    "TL6": "schedules",
    "TL7": "data",
    "TL8": "checkpoints",
    "TL9": "ranks",
    "TH1": "health",
    "TS1": "speed",
}
"""The folders of rules, by the beginning of their codes."""


ENTRIES = (
    # The comments that silence the others
    Entry("TL001", "unused-ignore", "advice", "S"),
    # Order of the step
    Entry("TL101", "zero-grad-after-backward", "error", "SL"),
    Entry("TL102", "missing-zero-grad", "error", "SL"),
    Entry("TL103", "step-before-backward", "error", "SL"),
    Entry("TL104", "clip-before-backward", "error", "SL"),
    Entry("TL105", "clip-after-step", "error", "SL"),
    Entry("TL106", "backward-never-stepped", "error", "SL"),
    Entry("TL107", "step-outside-batch-loop", "error", "SL"),
    Entry("TL108", "step-without-backward", "error", "SL"),
    Entry("TL109", "step-repeated", "error", "SL"),
    Entry("TL110", "gradients-of-other-loss", "error", "SL"),
    Entry("TL111", "loop-returns-in-first-turn", "error", "S"),
    # Modes and the graph
    Entry("TL201", "trains-in-eval-mode", "error", "SL"),
    Entry("TL202", "validates-in-train-mode", "error", "SL"),
    Entry("TL203", "validation-builds-graph", "warning", "SL"),
    Entry("TL204", "loss-tensor-kept", "error", "SL"),
    Entry("TL205", "forward-called-directly", "warning", "S", once_a_function=True),
    Entry("TL206", "functional-dropout-always-on", "error", "SL", once_a_function=True),
    Entry("TL207", "checkpoint-redraws", "error", "L"),
    Entry("TL208", "frozen-part-in-train-mode", "warning", "SL"),
    # Parameters and the optimizer
    Entry("TL301", "optimizer-holds-stale-parameters", "error", "SL"),
    Entry("TL302", "parameters-not-optimized", "error", "L"),
    Entry("TL303", "modules-in-plain-container", "error", "SL", once_a_function=True),
    Entry("TL304", "parameter-never-gets-gradient", "warning", "L"),
    Entry("TL305", "optimizer-rebuilt-in-loop", "error", "SL"),
    Entry("TL306", "parameter-not-updating", "warning", "L"),
    Entry("TL307", "parameter-not-leaf", "error", "S", once_a_function=True),
    Entry("TL308", "layer-made-in-forward", "error", "SL"),
    Entry("TL309", "optimizer-holds-frozen-alone", "error", "SL"),
    Entry("TL310", "eps-where-momentum-was-meant", "warning", "S", once_a_function=True),
    Entry("TL311", "parameter-in-two-optimizers", "error", "SL"),
    Entry("TL312", "muon-on-embeddings", "warning", "SL"),
    Entry("TL313", "layer-repeated", "warning", "SL", once_a_function=True),
    # Loss and targets
    Entry("TL401", "softmax-before-cross-entropy", "error", "SL"),
    Entry("TL402", "sigmoid-before-bce-with-logits", "error", "SL"),
    Entry("TL403", "nll-on-wrong-input", "error", "SL"),
    Entry("TL404", "loss-broadcasts", "error", "L"),
    Entry("TL405", "kl-div-misused", "warning", "SL"),
    Entry("TL406", "initial-loss-off", "warning", "L"),
    Entry("TL407", "constant-predictions", "warning", "L"),
    Entry("TL408", "softmax-over-batch", "warning", "SL"),
    Entry("TL409", "padding-is-scored", "warning", "L"),
    Entry("TL410", "penalty-without-graph", "error", "SL"),
    Entry("TL411", "logits-compared-with-half", "warning", "S"),
    # Precision, accumulation, clipping
    Entry("TL501", "clips-scaled-gradients", "error", "SL"),
    Entry("TL502", "scaler-never-updated", "error", "SL"),
    Entry("TL503", "step-bypasses-scaler", "error", "SL"),
    Entry("TL504", "fp16-without-scaler", "warning", "SL"),
    Entry("TL505", "accumulation-not-averaged", "warning", "SL"),
    Entry("TL506", "accumulation-tail-lost", "warning", "SL"),
    Entry("TL507", "trains-in-half", "warning", "L"),
    Entry("TL508", "zero-grad-inside-accumulation", "error", "SL"),
    Entry("TL509", "autocast-around-backward", "advice", "SL"),
    Entry("TL510", "micro-batches-weighted-unequally", "warning", "SL"),
    Entry("TL511", "pairs-of-micro-batches", "advice", "L"),
    # Schedules
    Entry("TL601", "scheduler-before-optimizer", "warning", "SL"),
    Entry("TL602", "epoch-schedule-per-batch", "error", "SL"),
    Entry("TL603", "batch-schedule-per-epoch", "error", "SL"),
    Entry("TL604", "plateau-watches-wrong-way", "error", "SL"),
    Entry("TL605", "schedule-length-mismatch", "error", "SL"),
    Entry("TL606", "scheduler-never-steps", "warning", "SL"),
    Entry("TL607", "scheduler-of-other-optimizer", "error", "SL"),
    Entry("TL608", "scheduler-steps-twice", "error", "SL"),
    Entry("TL609", "annealing-compounds", "warning", "S"),
    # Data
    Entry("TL701", "workers-share-generator", "error", "SL"),
    Entry("TL702", "augmentation-repeats-every-epoch", "warning", "SL"),
    Entry("TL703", "train-data-not-shuffled", "warning", "SL"),
    Entry("TL704", "sampler-epoch-not-set", "error", "SL"),
    Entry("TL705", "train-val-overlap", "error", "LD"),
    Entry("TL706", "preprocessing-sees-validation", "error", "S"),
    Entry("TL707", "inputs-not-normalised", "warning", "L"),
    Entry("TL708", "non-finite-input", "error", "L"),
    Entry("TL709", "mean-of-batch-means", "warning", "S"),
    Entry("TL710", "target-leaks", "error", "LD"),
    Entry("TL711", "selects-on-test-data", "warning", "S"),
    Entry("TL712", "reseeds-in-loop", "warning", "SL"),
    Entry("TL713", "validation-augmented", "warning", "SL"),
    Entry("TL714", "constant-column", "advice", "D"),
    Entry("TL715", "duplicate-columns", "advice", "D"),
    Entry("TL716", "rare-class", "advice", "D"),
    Entry("TL717", "identifier-as-input", "warning", "D"),
    Entry("TL718", "dependent-rows-split-at-random", "advice", "D"),
    Entry("TL719", "conversations-cut", "warning", "D"),
    Entry("TL720", "sum-of-batch-means", "warning", "SL"),
    Entry("TL721", "length-of-a-dict-batch", "error", "SL"),
    # Checkpoints and reproducibility
    Entry("TL801", "checkpoint-without-optimizer", "warning", "SL"),
    Entry("TL802", "unsafe-load", "warning", "S", once_a_function=True),
    Entry("TL803", "whole-model-pickled", "warning", "SL", once_a_function=True),
    Entry("TL804", "wrapped-keys-saved", "warning", "SL"),
    Entry("TL805", "best-state-aliased", "error", "SL", once_a_function=True),
    Entry("TL806", "seeded-too-late", "warning", "S"),
    Entry("TL807", "keys-silently-missing", "warning", "SL", once_a_function=True),
    # Ranks
    Entry("TL901", "wrapper-bypassed", "error", "SL"),
    Entry("TL902", "every-rank-writes", "warning", "SL"),
    Entry("TL903", "ranks-read-same-data", "error", "SL"),
    Entry("TL904", "ranks-diverge", "error", "L"),
    Entry("TL905", "moved-after-wrapping", "error", "SL"),
    # Health
    Entry("TH101", "non-finite-loss", "error", "L"),
    Entry("TH102", "gradient-explodes", "warning", "L"),
    Entry("TH103", "update-size-unusual", "advice", "L"),
    Entry("TH104", "overfitting", "advice", "L"),
    Entry("TH105", "loss-stuck", "warning", "L"),
    Entry("TH106", "memory-grows", "warning", "L"),
    # Speed
    Entry("TS101", "waits-for-data", "advice", "L"),
    Entry("TS102", "sync-every-step", "advice", "L"),
    Entry("TS103", "transfer-not-overlapped", "advice", "L"),
    Entry("TS104", "workers-respawn", "advice", "L"),
    Entry("TS105", "optimizer-not-fused", "advice", "L"),
    Entry("TS106", "python-gradient-norm", "advice", "L"),
    Entry("TS107", "fp32-matmul", "advice", "L"),
    Entry("TS108", "sample-at-a-time", "advice", "L"),
)
BY_CODE = {entry.code: entry for entry in ENTRIES}
