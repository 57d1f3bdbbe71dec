import torch

model = torch.nn.Sequential(torch.nn.Linear(1000, 1000), torch.nn.ReLU(), torch.nn.Linear(1000, 1))
loss = model(torch.randn(500, 1000)).mean()

activations = loss.grad_fn.next_functions[0][0]._saved_mat1
print("before backward the loss keeps activations of shape", tuple(activations.shape))
del activations
loss.backward()
try:
    print(loss.grad_fn.next_functions[0][0]._saved_mat1)
except RuntimeError as error:
    print("after backward:", str(error).split(".")[0])
print("the loss itself:", loss.nelement() * loss.element_size(), "bytes")
