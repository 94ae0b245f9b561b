"""Muon for matrices, Adam for the embedding and the norms."""

import torch

MOMENTUM = 0.95
ROUNDS = 4


def orthogonal(matrices):
    """Newton-Schulz iteration, for which 16 bits are enough: the nearest orthogonal matrix to each
    of (n, rows, columns)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
    for _ in range(ROUNDS):
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon:
    """Steps each matrix along the orthogonalised momentum of its gradient."""

    def __init__(self, parameters, decay):
        self.groups = {}
        for parameter in parameters:
            self.groups.setdefault(tuple(parameter.shape), []).append(parameter)
        self.decay = decay
        self.momenta = [torch.zeros(len(group), *shape) for shape, group in self.groups.items()]

    @torch.no_grad()
    def step(self, rate):
        for momentum, (shape, group) in zip(self.momenta, self.groups.items()):
            gradient = torch.stack([parameter.grad for parameter in group])
            momentum.lerp_(gradient, 1 - MOMENTUM)
            update = orthogonal(gradient.lerp(momentum, MOMENTUM))
            scale = max(1, shape[0] / shape[1]) ** 0.5
            for parameter, direction in zip(group, update):
                parameter.mul_(1 - rate * self.decay)
                parameter.add_(direction, alpha=-rate * scale)

    def state(self):
        return self.momenta

    def restore(self, state):
        self.momenta = state
