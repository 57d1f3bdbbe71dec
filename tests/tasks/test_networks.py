"""The networks of `table` and `images`, rebuilt from what a run keeps in task.json."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import torch

from trueloop.tasks.images import Images, ResNet, resnet
from trueloop.tasks.table import Table, TableNet, network

LINES = [f"{k % 7}.5,{('red', 'green', 'blue')[k % 3]},{3 * k},{k % 4}" for k in range(40)]


@pytest.mark.parametrize(("target", "log"), [("price", False), ("price", True), ("kind", False)])
def test_a_table_s_network_is_rebuilt_from_plain_values(table_file, target, log):
    path = table_file("size,colour,price,kind", [line.replace(",0,", ",1,") for line in LINES])
    task = Table(Table.Options(target=target, width=8, log_target=log), data=path)
    splits = task.splits()
    model = task.model().eval()
    arguments = json.loads(json.dumps(task.state()))["network"]
    twin = TableNet(**arguments).eval()
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin(*splits.val[0]), model(*splits.val[0]))


def test_an_image_network_is_rebuilt_from_plain_values(image_folder):
    task = Images(Images.Options(width=4), data=image_folder())
    splits = task.splits()
    model = task.model().eval()
    arguments = json.loads(json.dumps(task.state()))["network"]
    twin = ResNet(**arguments).eval()
    twin.load_state_dict(model.state_dict())
    images = torch.stack([splits.val[k][0] for k in range(len(splits.val))])
    assert torch.allclose(twin(images), model(images), atol=1e-6)


def test_what_training_never_shows_begins_in_the_middle():
    embedding = network.CategoryEmbedding([5, 9, 5])
    for unseen in (0, 1):
        assert (embedding(torch.full((1, 3), unseen)) == 0).all()
    assert (embedding(torch.full((1, 3), 2)) != 0).all()


def test_each_column_has_vectors_of_its_own():
    """Also where columns share a table: a change of one column changes its part of the output."""
    sizes = [5, 9, 5, 300, 9, 3]
    embedding = network.CategoryEmbedding(sizes)
    indices = torch.full((1, len(sizes)), 2)
    before = embedding(indices)
    assert before.shape == (1, embedding.width)
    changed = []
    for column, size in enumerate(sizes):
        other = indices.clone()
        other[0, column] = size - 1
        if size > 3:
            changed.append(set((embedding(other) != before).flatten().nonzero().flatten().tolist()))
    assert all(changed)
    assert sum(map(len, changed)) == len(set().union(*changed))


def test_numbers_are_embedded_alike_whole_and_in_parts(monkeypatch):
    embedding = network.PeriodicEmbedding(7)
    numbers = torch.randn(5, 7)
    whole = embedding(numbers)
    monkeypatch.setattr(network, "_MOST_WAVES", 5 * 24 * 3)
    with torch.inference_mode():
        assert torch.allclose(embedding(numbers), whole, atol=1e-6)


@pytest.mark.parametrize("module", [network, resnet])
def test_the_networks_need_torch_alone(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    used = {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    used |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in used} <= {
        "__future__", "collections", "math", "torch"
    }  # fmt: skip
