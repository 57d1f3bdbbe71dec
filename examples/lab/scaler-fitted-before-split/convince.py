import torch

torch.manual_seed(0)
gains = []
for _ in range(2000):
    x = torch.randn(20, 3).exp()  # 20 rows, skewed columns, rare large values
    y = (x.log().sum(1) + torch.randn(20) > 0).float()
    scores = []
    for seen in (x[:15], x):  # fitted on the training rows, or on all of them
        z = (x - seen.mean(0)) / seen.std(0)
        z = torch.cat([z, torch.ones(20, 1)], 1)
        ridge = torch.linalg.solve(z[:15].T @ z[:15] + torch.eye(4), z[:15].T @ (2 * y[:15] - 1))
        scores.append(((z[15:] @ ridge > 0) == y[15:]).float().mean())
    gains.append(scores[1] - scores[0])
gains = torch.stack(gains) * 100
print(f"gain by the leak: {gains.mean():.2f} ± {gains.std() / 2000**0.5:.2f} points of accuracy")
