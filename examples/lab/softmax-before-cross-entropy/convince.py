"""What the loss says of a perfect prediction, and how hard it pulls at a fresh one."""

import torch
from torch.nn.functional import cross_entropy

print("classes  loss of a perfect prediction   gradient norm at equal logits")
for classes in (3, 10, 100, 1000):
    y = torch.tensor([0])
    perfect = torch.zeros(1, classes)
    perfect[0, 0] = 1.0  # these are probabilities: more certain than this is impossible
    pulls = []
    for softmax in (False, True):
        logits = torch.zeros(1, classes, requires_grad=True)
        cross_entropy(logits.softmax(1) if softmax else logits, y).backward()
        pulls.append(logits.grad.norm().item())
    print(
        f"{classes:7}  {cross_entropy(perfect, y).item():.3f} with softmax, 0 without"
        f"    {pulls[1]:.4f} with softmax, {pulls[0]:.4f} without"
    )
