"""The notebooks of examples/notebooks run from top to bottom, in one kernel, in which a run is then
interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueloop.cli import main

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]

INTERRUPTED = [
    """
import os, time, torch, trueloop
from pathlib import Path

model = torch.nn.Linear(4, 1)
train = trueloop.Feed((torch.randn(64, 4), torch.randn(64, 1)), 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = trueloop.Step(model, optimizer, trueloop.supervised(torch.nn.MSELoss()))
""",
    """
def once(record):
    if record.update == 30:
        Path("press 1").write_text(str(os.getpid()))
    time.sleep(0.01)


history = trueloop.fit(step, train, updates=100_000, sinks=[once])
history.status, history.updates == step.updates < 100_000, torch.isfinite(model.weight).all().item()
""",
    """
def long(record):
    if record.update == step.updates:
        Path("press 2").write_text(str(os.getpid()))
        time.sleep(60)


done = step.updates
trueloop.fit(step, train, updates=100_000, sinks=[long])
""",
    """
history = trueloop.fit(step, train, updates=done + 50, progress=False)
history.status, history.updates == step.updates == done + 50
""",
]
"""Cells: a training, one that is interrupted, one that is interrupted twice, one after these."""


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_they_are_kept_without_outputs_and_named_on_a_page() -> None:
    assert len(NOTEBOOKS) >= 3
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert re.findall(r"\(notebooks/(\w+)\.ipynb\)", page) == [
        name for name in ("quickstart", "own_loop", "doctor") if name in NAMES
    ]
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            assert cell.get("outputs", []) == []
            assert cell.get("execution_count") is None
            assert cell["source"], "no empty cell"


def test_check_finds_the_faults_of_the_loop_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--no-cache", "--format", "json", *map(str, NOTEBOOKS)])
    found = json.loads(capsys.readouterr().out)["findings"]
    codes = {(Path(each["path"]).stem, each["code"]) for each in found}
    assert codes == {("own_loop", "TL104"), ("own_loop", "TL401")}


def press(folder: Path, over: threading.Event) -> None:
    """Interrupt the kernel as the button does, where a cell asks for it: once, then twice."""
    for number in (1, 2):
        asked = folder / f"press {number}"
        while not (asked.exists() and (text := asked.read_text())):
            if over.wait(0.05):
                return
        for _ in range(number):
            os.kill(int(text), signal.SIGINT)
            time.sleep(1.0)  # within a quarter of a second it is the same press


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """The code cells of each notebook with their outputs; as "interrupted" those above."""
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient, which make installs")
    pytest.importorskip("ipykernel", reason="needs ipykernel, which make installs")
    import nbformat

    parts: dict[str, list[Any]] = {}
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        parts[path.stem] = [cell for cell in cells if cell.cell_type == "code"]
    parts["interrupted"] = [nbformat.v4.new_code_cell(text) for text in INTERRUPTED]
    parts["interrupted"][2].metadata["tags"] = ["raises-exception"]
    whole = nbformat.v4.new_notebook()
    for cells in parts.values():
        whole.cells += [nbformat.v4.new_code_cell("%reset -f"), *cells]
    folder, over = tmp_path_factory.mktemp("notebooks"), threading.Event()
    finger = threading.Thread(target=press, args=(folder, over))
    finger.start()
    try:
        resources = {"metadata": {"path": str(folder)}}
        nbclient.NotebookClient(whole, timeout=120, resources=resources).execute()
        yield parts
    finally:
        over.set()
        finger.join()


def outputs(cell: Any, kind: str) -> list[Any]:
    return [each for each in cell.outputs if each.output_type == kind]


def test_fit_has_one_output_that_ends_as_the_lines_of_its_evaluations(
    ran: dict[str, list[Any]],
) -> None:
    (cell,) = [each for each in ran["quickstart"] if "trueloop.fit(" in each.source]
    (shown,) = outputs(cell, "display_data")
    lines = shown.data["text/plain"].splitlines()
    assert [line.split("  ")[0] for line in lines[:8]] == [f"epoch {k}/8" for k in range(1, 9)]
    assert lines[8].startswith("best val loss ")
    assert lines[9].startswith("finished after 104 updates, ")
    assert outputs(cell, "stream") == []
    (table,) = outputs(cell, "execute_result")
    assert table.data["text/html"].count("<tr>") == 9
    assert "finished, 104 updates" in table.data["text/plain"]


def test_a_chart_is_drawn(ran: dict[str, list[Any]]) -> None:
    (cell,) = [each for each in ran["quickstart"] if "plt.plot" in each.source]
    assert any("image/png" in each.data for each in outputs(cell, "display_data"))


def test_what_is_watched_is_a_table_of_findings(ran: dict[str, list[Any]]) -> None:
    wrong, right = (
        each.outputs[0].data for each in ran["own_loop"] if "trueloop.watch(" in each.source
    )
    assert wrong["text/plain"] == "Watching(48 updates, TL104 TL401)"
    assert wrong["text/html"].count("<tr>") == 3
    assert right["text/plain"] == "Watching(48 updates, no findings)"


def test_the_doctor_speaks_below_the_cell_that_has_the_fault(ran: dict[str, list[Any]]) -> None:
    said = ["".join(each.text for each in outputs(cell, "stream")) for cell in ran["doctor"]]
    assert [("TL404" in text, bool(text)) for text in said] == [
        (number == 2, number == 2) for number in range(len(said))
    ]


def test_an_interrupt_ends_the_run_and_leaves_everything_usable(ran: dict[str, list[Any]]) -> None:
    _, once, twice, after = ran["interrupted"]
    assert outputs(once, "execute_result")[0].data["text/plain"] == "('interrupted', True, True)"
    shown = outputs(once, "display_data")[0].data["text/plain"]
    assert re.fullmatch(r"interrupted after \d+ updates, .*", shown.splitlines()[-1])
    (error,) = outputs(twice, "error")
    assert error.ename == "Interrupted"
    assert outputs(after, "execute_result")[0].data["text/plain"] == "('finished', True)"
