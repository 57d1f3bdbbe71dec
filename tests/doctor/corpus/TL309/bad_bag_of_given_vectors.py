import torch
from torch import nn

torch.manual_seed(2)
bag = nn.EmbeddingBag.from_pretrained(torch.randn(30, 4), mode="sum")
head = nn.Linear(4, 2)
optimizer = torch.optim.SGD(  # <- TL309
    [{"params": bag.parameters(), "lr": 0.1}, {"params": head.parameters()}], lr=0.01
)
for _ in range(8):
    words = torch.randint(0, 30, (12, 6))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(bag(words)), words[:, 0] % 2)
    loss.backward()
    optimizer.step()
print(loss.item())
