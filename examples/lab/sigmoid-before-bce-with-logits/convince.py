"""Which logit is the best one for a sample that is positive with this probability."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

logits = torch.linspace(-8, 8, 1601)
print("true probability   learned without sigmoid   learned with sigmoid before the loss")
for p in (0.05, 0.3, 0.45, 0.55, 0.7, 0.95):
    target = torch.full_like(logits, p)
    without = binary_cross_entropy_with_logits(logits, target, reduction="none").argmin()
    double = binary_cross_entropy_with_logits(logits.sigmoid(), target, reduction="none").argmin()
    print(
        f"{p:16}   {torch.sigmoid(logits[without]).item():23.2f}"
        f"   {torch.sigmoid(logits[double]).item():36.2f}"
    )
