import torch
from torch.utils.checkpoint import checkpoint

dropout = torch.nn.Dropout(0.5)
for keep in (True, False):
    torch.manual_seed(0)
    x = torch.ones(12, requires_grad=True)
    y = checkpoint(lambda x: dropout(x).square(), x, use_reentrant=False, preserve_rng_state=keep)
    y.sum().backward()
    print(f"preserve_rng_state={keep}")
    print("  mask of the forward ", (y != 0).int().tolist())
    print("  mask of the gradient", (x.grad != 0).int().tolist())
