import torch
import torch.nn.functional as F


def train(model, loader, opt, epochs=3):
    for epoch in range(epochs):
        model.train()
        for batch in loader:
            opt.zero_grad()
            out = model(batch["image"])
            loss = F.mse_loss(out, batch["target"], reduction="mean")
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()  # <- TL107
        print(epoch, loss.item())


def collate(samples):
    return {"image": torch.stack([s[0] for s in samples]), "target": torch.stack([s[1] for s in samples])}


if __name__ == "__main__":
    torch.manual_seed(0)
    samples = [(torch.randn(6), torch.randn(2)) for _ in range(32)]
    loader = torch.utils.data.DataLoader(samples, batch_size=8, shuffle=True, collate_fn=collate)
    net = torch.nn.Linear(6, 2)
    train(net, loader, torch.optim.Adam(net.parameters(), lr=0.01))
