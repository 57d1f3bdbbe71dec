loss = torch.ones((), requires_grad=True)
