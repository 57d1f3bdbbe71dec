"""A fixed filter: its one parameter is frozen where it is made, so no graph is built."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Blur(nn.Module):
    def __init__(self, freeze=True):
        super().__init__()
        self.kernel = nn.Conv2d(3, 3, 3, groups=3, bias=False)
        self.kernel.weight.data = torch.full((3, 1, 3, 3), 1 / 9)
        self.kernel.weight.requires_grad = not freeze

    def before_and_after(self, x):
        blurred = self.kernel(x)
        return x, blurred


torch.manual_seed(0)
blur = Blur().eval()
test_loader = DataLoader(TensorDataset(torch.randn(16, 3, 8, 8)), batch_size=4)
for (images,) in test_loader:
    sharp, soft = blur.before_and_after(images)
    print(sharp.std().item(), soft.std().item())
