"""Ten programs whose loss or gradient becomes NaN or infinite: does TH101 name what did it, and
does `trueloop replay` show it again?

    python benchmarks/nan_forensics.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import save_results, table

CAUSES = Path(__file__).parent / "nan_causes"
WANTED = {
    "corrupt_sample": ("`input` of `Sequential` contains NaN", "sample 317"),
    "custom_backward": ("`PositiveBackward` in `1`", "0 is divided by 0"),
    "exploding_lr": ("training has diverged", "learning rate is 5"),
    "fp16_overflow": ("`attention` (Scores)", "float16"),
    "infinite_target": ("`target` of `MSELoss` contains -inf", "sample 211"),
    "log_of_zero": ("`aten.log` in `Mixture`", "its input contains 0"),
    "masked_row": ("`aten._softmax` in `pool` (Pooling)", "row 4 of the batch"),
    "sqrt_at_zero": ("`SqrtBackward0` in `distance`",),
    "uninitialised_buffer": ("the buffer `1.scale` contains NaN", "before the first update"),
    "zero_over_zero": ("`norm` (RowNorm)", "0 is divided by 0", "sample 37"),
}
"""Program -> what the message must hold."""


def run(*words: str, folder: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "trueloop", *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def judge(name: str) -> dict[str, Any]:
    """Watch one program, and replay what was kept of it."""
    with tempfile.TemporaryDirectory() as folder:
        script = str(CAUSES / f"{name}.py")
        watched = run("watch", "--format", "json", "--output", "found.json", script, folder=folder)
        found = json.loads((Path(folder) / "found.json").read_text("utf-8"))["findings"]
        messages = [
            each["message"] for each in found if each["code"].startswith(("TH101", "TL708"))
        ]
        whole = " ".join(messages)
        bundles = [each.name for each in Path(folder).glob("trueloop-nan-*")]
        replayed = [run("replay", each, folder=folder).returncode for each in bundles]
        return {
            "program": name,
            "status": watched.returncode,
            "named": all(part in whole for part in WANTED[name]),
            "replayed": replayed == [0],
            "message": whole,
        }


def main() -> None:
    results = [judge(name) for name in WANTED]
    shown = [{key: each[key] for key in ("program", "named", "replayed")} for each in results]
    print(table(shown))
    named, replayed = (sum(each[key] for each in results) for key in ("named", "replayed"))
    print(f"named {named} of {len(results)}, replayed {replayed} of {len(results)}")
    save_results("nan_forensics", {"named": named, "replayed": replayed, "programs": results})


if __name__ == "__main__":
    main()
