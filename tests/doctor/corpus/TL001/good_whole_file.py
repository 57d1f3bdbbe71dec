# trueloop: ignore-file[TL802]
import tempfile

import torch


def load(path):
    return torch.load(path, weights_only=False)


def main():
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        torch.save({"epoch": 3}, file.name)
        print(load(file.name)["epoch"])


if __name__ == "__main__":
    main()
