"""Which files are said to differ between the processes of one program."""

from __future__ import annotations

import os
import socket

import pytest

from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.findings import Location

NOWHERE = Location("", 0)


@pytest.mark.parametrize(
    ("file", "differs"),
    [
        ("/tmp/tmp0avm3x_q/model.pt", False),
        ("/tmp/tmp_vmware/model.pt", False),
        ("/tmp/vm/model.pt", True),
        ("runs/model_vm.pt", True),
        ("runs/vm-model.pt", True),
        ("runs/model4711.pt", True),
        ("runs/model-4711.pt", True),
        ("runs/14711/model.pt", False),
        ("runs/model.pt", False),
        ("runs/model0.pt", True),
        ("runs/model10.pt", False),
        ("<memory>", True),
    ],
)
def test_a_name_with_the_host_the_process_or_the_rank_differs(
    monkeypatch: pytest.MonkeyPatch, file: str, differs: bool
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "vm")
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    assert rank_identity.differs(file, NOWHERE, []) is differs
