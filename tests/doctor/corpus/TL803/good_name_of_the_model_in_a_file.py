"""The file has the state, and the name under which the model is made again."""
import json
import os
import tempfile
import torch
from torch import nn

KINDS = {"linear": nn.Linear, "bilinear": nn.Bilinear}


def main(config):
    model = KINDS[config["model"]](**config["model_args"])
    optimizer = torch.optim.SGD(model.parameters(), lr=config["rate"])
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 2)).pow(2).mean().backward()
        optimizer.step()
    saved = {"model": config["model"], "model_args": config["model_args"]}
    saved["model_sd"] = model.state_dict()
    path = os.path.join(tempfile.mkdtemp(), "last.pth")
    torch.save(saved, path)
    loaded = torch.load(path)
    KINDS[loaded["model"]](**loaded["model_args"]).load_state_dict(loaded["model_sd"])


if __name__ == "__main__":
    text = '{"model": "linear", "model_args": {"in_features": 2, "out_features": 1}, "rate": 0.1}'
    main(json.loads(text))
