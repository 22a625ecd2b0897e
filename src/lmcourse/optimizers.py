"""Muon: momentum whose steps are made orthogonal (Jordan et al. 2024).

PyTorch has it as `torch.optim.Muon`, which computes in bfloat16, as GPUs like it; on a
processor without bfloat16 that takes several times as long as a whole training step.
"""

import torch


def orthogonalise(matrix, rounds=5, epsilon=1e-7):
    """Bring all singular values near 1 and keep the singular vectors.

    A polynomial of the matrix, a X + b (X Xᵀ) X + c (X Xᵀ)² X, applied again and again,
    pulls every singular value between about 0.7 and 1.2, unless it is below about a
    thousandth of the largest (Jordan et al. 2024); no singular value decomposition is
    needed.

    Parameters
    ----------
    matrix : Tensor of shape (rows, columns)
    rounds : int
        How often the polynomial is applied.
    epsilon : float
        Keeps a matrix of zeros from being divided by zero.

    Returns
    -------
    Tensor of shape (rows, columns)
    """
    a, b, c = 3.4445, -4.7750, 2.0315  # chosen there for speed, not for a sharp 1
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.mT if tall else matrix  # so that x @ x.mT is the small product
    x = x / (x.norm() + epsilon)  # no singular value is above 1
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + torch.addmm(square, square, square, beta=b, alpha=c) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Orthogonal steps for the matrices of hidden layers (Jordan et al. 2024).

    Embeddings, norms and biases need another optimizer, such as AdamW.

    Parameters
    ----------
    params : iterable of Parameter
        Matrices.
    lr : float
        Size of a step; a matrix taller than wide steps by sqrt(rows / columns) more.
    momentum : float
        Nesterov's.
    """

    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        """Change every matrix that has a gradient, in place.

        Gradients are averaged over the steps (kept as ``average`` in the state of a
        matrix), and the step, made orthogonal, goes against a mean of gradient and average
        (Nesterov).
        """
        for group in self.param_groups:
            momentum = group["momentum"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                average = state.setdefault("average", torch.zeros_like(weight))
                average.lerp_(weight.grad, 1 - momentum)
                step = orthogonalise(weight.grad.lerp(average, momentum))
                rows, columns = weight.shape
                weight.sub_(step, alpha=group["lr"] * max(1, rows / columns) ** 0.5)
