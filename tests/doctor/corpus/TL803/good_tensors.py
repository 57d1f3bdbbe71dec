import io

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(2, 3)

    def forward(self, z):
        return self.model(z)


def save(model, file):
    torch.save(model, file)


def main():
    generator = Generator().eval()
    with torch.no_grad():
        samples = generator(torch.randn(5, 2))
    buffer = io.BytesIO()
    torch.save(samples, buffer)
    torch.save({"weight": generator.model.weight.detach(), "samples": samples}, io.BytesIO())
    save(generator.state_dict(), io.BytesIO())


if __name__ == "__main__":
    main()
