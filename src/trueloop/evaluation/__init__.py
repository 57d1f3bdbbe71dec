"""evaluate and predict: exact scores and outputs over a feed, on any number of ranks, and a model
left as it was found; and the scores that a training gets."""

from __future__ import annotations

from trueloop.evaluation.epoch_scores import EpochScores
from trueloop.evaluation.evaluation_pass import as_feed, evaluating
from trueloop.evaluation.means import Means
from trueloop.evaluation.outputs import predict
from trueloop.evaluation.scores import EvaluationStopped, NeedsGradientsError, evaluate

__all__ = [
    "EpochScores",
    "EvaluationStopped",
    "Means",
    "NeedsGradientsError",
    "as_feed",
    "evaluate",
    "evaluating",
    "predict",
]
