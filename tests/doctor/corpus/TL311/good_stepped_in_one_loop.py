import torch
from torch import nn


class Separator(nn.Module):
    """Two sources out of one mixture."""

    def __init__(self):
        super().__init__()
        self.listen = nn.GRU(5, 12, batch_first=True)
        self.voice = nn.Linear(12, 5)
        self.noise = nn.Linear(12, 5)

    def forward(self, mixture):
        heard, _ = self.listen(mixture)
        return self.voice(heard), self.noise(heard)


torch.manual_seed(0)
net = Separator()
parts = [net.listen, net.voice, net.noise]
apart = [torch.optim.RMSprop(part.parameters(), lr=1e-3) for part in parts]
shared = {
    "voice": torch.optim.SGD([*net.listen.parameters(), *net.voice.parameters()], lr=1e-3),
    "noise": torch.optim.SGD([*net.listen.parameters(), *net.noise.parameters()], lr=1e-3),
}
for update in range(8):
    voice, noise = torch.randn(6, 10, 5), 0.3 * torch.randn(6, 10, 5)
    found_voice, found_noise = net(voice + noise)
    error = (found_voice - voice).abs().mean() + (found_noise - noise).abs().mean()
    for each in apart:
        each.zero_grad()
    error.backward()
    for each in apart:
        each.step()
for update in range(8):
    voice, noise = torch.randn(6, 10, 5), 0.3 * torch.randn(6, 10, 5)
    for number, (name, each) in enumerate(shared.items()):
        each.zero_grad()
        source = voice if name == "voice" else noise
        (net(voice + noise)[number] - source).abs().mean().backward()
        each.step()
