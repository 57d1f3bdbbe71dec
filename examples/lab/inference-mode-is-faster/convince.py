import timeit

import torch

layer = torch.nn.Linear(512, 512)
batch = torch.randn(256, 512)
vector = torch.randn(16)

for mode in (torch.no_grad, torch.inference_mode):
    with mode():
        product = min(timeit.repeat(lambda: layer(batch), number=20, repeat=10)) / 20
        view = min(timeit.repeat(lambda: vector.view(4, 4), number=5000, repeat=10)) / 5000
    print(f"{mode.__name__:15} matrix product {product * 1e6:7.1f} us   view {view * 1e6:5.2f} us")
