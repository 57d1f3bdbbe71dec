import io

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Linear(6, 8)
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(torch.relu(self.backbone(x)))


def load_pretrained(model, file):
    state = torch.load(file, map_location="cpu")
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any(not key.startswith("head.") for key in missing):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")


def load_and_say(model, file):
    message = model.load_state_dict(torch.load(file), strict=False)
    print(message)


def load_and_log(model, file):
    print("loaded:", model.load_state_dict(torch.load(file), strict=False))


def main():
    for load in (load_pretrained, load_and_say, load_and_log):
        file = io.BytesIO()
        state = Net(10).state_dict()
        torch.save({k: v for k, v in state.items() if not k.startswith("head")}, file)
        file.seek(0)
        load(Net(3), file)


if __name__ == "__main__":
    main()
