"""Features come from a frozen encoder in float16; the probe on top trains in float32."""
import torch
import torch.nn as nn


class Probe(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, classes)

    def forward(self, features):
        return self.fc(self.norm(features))


def main():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16)).eval()
    for p in encoder.parameters():
        p.requires_grad = False
    probe = Probe(16, 3)
    optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
    loader = [(torch.randn(8, 8), torch.randint(0, 3, (8,))) for _ in range(10)]
    for x, y in loader:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            features = encoder(x)
        loss = nn.functional.cross_entropy(probe(features.float()), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
