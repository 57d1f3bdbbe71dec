"""The corpus, run: a bad program raises exactly its code at the marked line, a good one nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import watched_scripts

from marks import marked
from trueloop.doctor.rules.catalogue import BY_CODE

CORPUS = Path(__file__).parents[1] / "corpus"
RANKS = ("TL901", "TL902", "TL903", "TL904", "TL905")
"""Run in two processes by processes/test_ranks_integration.py; here the bad ones, as one rank."""
PROGRAMS = sorted(
    path
    for path in CORPUS.glob("T*/*.py")
    if path.parent.name != "TL001" and (path.parent.name not in RANKS or path.stem[:3] == "bad")
)

AT_THE_END = frozenset({"TL106", "TL108"})
"""A step or a backward that never comes is known when there are no more."""
NEED_CUDA = frozenset(
    {
        "TL504-bad_cuda_default",
        "TS102-bad_item_every_step",
        "TS102-bad_predictions_to_cpu",
        "TS103-bad_non_blocking_pageable",
        "TS103-bad_pinned_but_blocking",
        "TS107-bad_transformer_fp32",
        "TS107-bad_wide_mlp_fp32",
    }
)
"""Their fault does not come about elsewhere."""
UNSEEN = frozenset(
    {
        "TL713-bad_second_transform_replaces_the_first",  # the data set is read as it is: in source
        "TL713-bad_transforms_of_each_fold",
        "TL201-bad_evaluates_by_an_option",  # without the option it does not evaluate: in source
        "TL704-bad_switch_names_a_different_launcher",  # without options there is one process
        "TL102-bad_decay_around_a_known_step",  # it cannot be seen that their `step` does not clear
        "TL102-bad_update_rule_of_their_own",
        "TL102-bad_rule_that_averages",
        "TL102-bad_penalty_on_top_of_the_loss",  # of several steps of one iteration: in source
        "TL102-bad_real_and_fake_in_turn",
        "TL102-bad_parts_of_a_batch",
        "TL106-bad_first_of_two_losses",
        "TL106-bad_penalty_of_some_iterations",
        "TL106-bad_step_only_with_the_penalty",
        "TL106-bad_temperature_of_a_policy",  # two optimizers have parameters of one module
        "TL106-bad_thresholds_are_only_cleared",
        "TL106-bad_critic_is_only_logged",  # the optimizer that waits is not cleared, either
        "TL106-bad_projection_is_prepared",
        "TL108-bad_first_loss_of_an_iteration",
        "TL108-bad_second_loss_of_an_iteration",
        "TL108-bad_critic_with_penalty",  # the generator's loss reaches it
        "TL110-bad_adversarial_autoencoder",  # one call on both kinds of samples
        "TL110-bad_domains_in_one_batch",
        "TL203-bad_ensemble_in_a_list",  # its networks are not registered
        "TL203-bad_embedder_for_others",  # which are not here
        "TL203-bad_estimator_predicts",
        "TL203-bad_rows_scored_by_hand",  # that slices of rows are the data is read in source
        "TL203-bad_average_of_clients",  # what a model was copied from is read in source
        "TL204-bad_drift_of_embeddings",  # outputs beside those that train
        "TL204-bad_kept_by_name",
        "TL204-bad_pictures_of_every_step",
        "TL204-bad_scores_with_their_graph",
        "TL508-bad_model_cleared_under_accelerate",  # the optimizer seems to step each time
        "TL202-bad_attention_drops_weights",  # inside of one function of torch
        "TL202-bad_updated_by_hand",  # without an optimizer nothing is seen to train
        "TL202-bad_loaded_over_its_first_weights",
        "TL202-bad_denoises_in_train_mode",  # where an input has come from is not followed
        "TL202-bad_samples_while_it_trains",
        "TL202-bad_whole_set_in_one_call",  # nothing but its name says what the data is for
        "TL202-bad_tested_after_training_at_once",
        "TL202-bad_graph_scored_as_a_whole",
        "TL202-bad_one_batch_is_validated",
        "TL206-bad_attention_in_both_modes",  # inside of one function of torch
        "TL206-bad_attention_in_layers_added_in_place",
        "TL206-bad_attention_in_many_blocks",
        "TL206-bad_rate_of_the_options",
        "TL206-bad_layer_made_in_forward",  # as it runs, a module that says it is in train mode
        "TL206-bad_layer_named_in_forward",
        "TL305-bad_at_the_start_of_a_pass_of_rows",  # whose rows they are is read in source
        "TL408-bad_one_hot_focal_loss",  # the one-hot rows have no name when the backward begins
        "TL603-bad_cosine_by_a_function_per_epoch",  # all steps before its end are made
        "TL604-bad_watched_by_default",  # the key that an option names is read in source
        "TL605-bad_warm_up_and_cosine_by_a_function",
        "TL505-bad_smooth_hinge_over_its_slope",  # a division like that of an average
        "TL501-bad_clamped_by_hand",
        "TL501-bad_clipped_by_hand",
        "TL501-bad_total_norm_by_hand",
        "TL703-bad_folders_one_by_one",  # each class has few batches in a row
        "TL712-bad_manual_updates",
        "TL720-bad_accuracy_of_batches",  # not a loss, but a mean that is written by hand
        "TL720-bad_counted_by_hand",  # whether a count is that of the samples is read in source
        "TL720-bad_tensor_total",
        "TL805-bad_detached_dictionary",  # a tensor of its own over the same memory
    }
)
"""Done by hand: the objects do not tell a limit from an average, nor what the parameters are."""
FOR_READING = re.compile(
    r"from (loops|recipes|masters|snapshots|engines)\b|import (recipes|masters|snapshots|engines)\b"
    r"|in torch\.load\("
)
"""In a program that does not run by itself: it needs a library or a file that nobody has."""
GOOD = sorted(
    path
    for path in (Path(__file__).parents[1] / "rules" / "programs").glob("good_*.py")
    if not FOR_READING.search(path.read_text("utf-8"))
)


@pytest.fixture(scope="module")
def zygote() -> Iterator[subprocess.Popen[str]]:
    process = watched_scripts.zygote()
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=30)


def watched(zygote: subprocess.Popen[str], path: Path, folder: Path) -> dict[str, Any]:
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    zygote.stdin.write(json.dumps({"path": str(path), "folder": str(folder)}) + "\n")
    zygote.stdin.flush()
    answer: dict[str, Any] = json.loads(zygote.stdout.readline())
    return answer


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_program_as_it_runs(path: Path, zygote: subprocess.Popen[str], tmp_path: Path) -> None:
    if "import accelerate" in (text := path.read_text("utf-8")) or "from accelerate" in text:
        pytest.importorskip("accelerate")  # a peer: not among the packages that tests need
    marks = [list(each) for each in marked(path)]
    about = BY_CODE[path.parent.name]
    for _ in range(3 if about.code.startswith("TS") else 1):
        answer = watched(zygote, path, tmp_path)
        waits = [[code, line] for code, _, line in answer["findings"] if code == "TS101"]
        if waits == [each for each in marks if each[0] == "TS101"]:
            break  # otherwise other processes may have kept the program or its worker waiting
    assert answer["errors"] == []
    assert answer["raised"] == ""
    alarms = [
        [code, line]
        for code, severity, line in answer["findings"]
        if severity != "advice"
        or (about.severity == "advice" and code[:2] == about.code[:2])
        or [code, line] in marks  # a fault that this program alone does not show to hurt anybody
    ]
    name = f"{path.parent.name}-{path.stem}"
    if path.parent.name in RANKS:
        assert alarms == []  # one rank gets in nobody's way
        return
    absent = name in UNSEEN or (name in NEED_CUDA and not answer["cuda"])
    if "L" in BY_CODE[path.parent.name].seen and not absent:
        assert alarms == marks
        if about.code.startswith("TL1") and marks and about.code not in AT_THE_END:
            assert answer["noticed"][0] <= 5
    else:
        assert [each for each in alarms if each not in marks] == []


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_programs_that_are_read_are_watched_in_silence(
    path: Path, zygote: subprocess.Popen[str], tmp_path: Path
) -> None:
    answer = watched(zygote, path, tmp_path)
    if not answer["cuda"] and ".cuda()" in path.read_text("utf-8"):
        pytest.skip("needs a GPU")
    assert (answer["errors"], answer["raised"]) == ([], "")
    assert [each for each in answer["findings"] if each[1] != "advice"] == []
