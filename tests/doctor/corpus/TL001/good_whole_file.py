# trueloop: ignore-file[TL802]
import os
import tempfile

import torch


def load(path):
    return torch.load(path, weights_only=False)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save({"epoch": 3}, path)
        print(load(path)["epoch"])


if __name__ == "__main__":
    main()
