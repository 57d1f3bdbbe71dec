import argparse
import pathlib
import tempfile

import torch as th
import torch.nn as nn

LOAD_OPTIONS = {"map_location": "cpu", "weights_only": False}


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def load_model(checkpoint):
    model = build()
    saved = th.load(checkpoint, **LOAD_OPTIONS)  # <- TL802
    model.load_state_dict(saved["model"])
    return model.eval()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", type=pathlib.Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = args.checkpoint or pathlib.Path(folder) / "net.pth"
        if args.checkpoint is None:
            th.save({"model": build().state_dict()}, checkpoint)
        model = load_model(checkpoint)
    with th.inference_mode():
        print(model(th.zeros(2, 4)).argmax(dim=-1).tolist())


if __name__ == "__main__":
    main()
