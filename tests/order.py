"""Which tests begin first where several processes share them: those that take long, and wait.

`pytest --dist worksteal` hands each process an equal part of the list, from its beginning to its
end, and one that has run out takes from the ends of others.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

LONG = (
    # On ranks: all from one process that has torch.
    (
        "test_elastic_integration", "test_ends_on_ranks_integration", "test_hangs",
        "test_failures", "test_many_ranks", "test_tasks_on_ranks_integration",
        "test_train_on_ranks", "test_evaluation_on_ranks", "test_scale", "test_step_on_ranks",
        "test_several_on_ranks", "test_compiled_on_ranks_integration",
    ),
    # Commands in processes of their own.
    (
        "test_disk_integration", "test_search_integration", "test_tune", "test_trial_processes",
        "test_commands_integration", "test_text_command_integration", "test_wrong_commands",
        "test_signals_everywhere_integration", "test_signals_integration",
        "test_own_workers_integration", "test_worker_deaths_integration",
        "test_workers_integration", "test_house",
    ),
    # The doctor, watching.
    (
        "test_script_integration", "test_script_messages_integration",
        "test_companions_integration", "test_memory_integration", "test_stacks_integration",
        "test_ranks_integration", "test_ranks_of_fit_integration", "test_processes_integration",
        "test_corpus_live_integration", "test_timing_live", "test_bundles",
        "test_docs_integration",
    ),
    # From the process that ranks come from.
    (
        "test_kill_resume_integration", "test_preemption_integration", "test_verify_resume",
        "test_lab_integration", "test_mutations_integration", "test_examples",
        "test_corpus_fixes_integration", "test_mutated_source_integration",
    ),
)  # fmt: skip
"""The files; one process begins with those of one group, which share what they have started."""


def dealt(items: list[Any], processes: int) -> list[Any]:
    """The same tests, so that the long ones stand at the beginning of each process's part."""
    long: dict[str, list[Any]] = {name: [] for names in LONG for name in names}
    rest: list[Any] = []
    for item in items:
        long.get(Path(item.path).stem, rest).append(item)
    parts: list[list[Any]] = [[] for _ in range(processes)]
    for number, names in enumerate(LONG):
        for name in names:
            parts[number % processes] += long[name]
    others, left = iter(rest), len(items)
    for number, part in enumerate(parts):
        size = left // (processes - number)
        part += islice(others, max(0, size - len(part)))
        left -= size
    return [*(item for part in parts for item in part), *others]
