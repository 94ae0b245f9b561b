"""Muon, for the matrices."""

from pathlib import Path

import torch
from torch import distributed
from torch.nn.utils import parameters_to_vector, vector_to_parameters

# Whether the processor has instructions for bfloat16. Others multiply matrices of bfloat16 more slowly
# than those of 32 bits: twice with AVX-512, a hundred times without.
HALF = "avx512_bf16" in Path("/proc/cpuinfo").read_text()
MOMENTUM = 0.95
ROUNDS = 4


def orthogonal(matrices):
    """Newton-Schulz iteration, for which 16 bits are enough: the nearest orthogonal matrix to each
    of (n, rows, columns)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    x = x.bfloat16() if HALF else x
    for _ in range(ROUNDS):
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon:
    """Steps each matrix along the orthogonalised momentum of its gradient. Of several workers, each
    steps its share of the matrices of every shape, and the others take over what it came to."""

    def __init__(self, parameters, decay, rank=0, workers=1):
        shapes = {}
        for parameter in parameters:
            shapes.setdefault(tuple(parameter.shape), []).append(parameter)
        self.shares = [[group[worker::workers] for group in shapes.values()]
                       for worker in range(workers)]
        self.decay, self.rank = decay, rank
        self.momenta = [torch.zeros(len(group), *shape)
                        for shape, group in zip(shapes, self.shares[rank])]

    @torch.no_grad()
    def step(self, rate):
        for momentum, group in zip(self.momenta, self.shares[self.rank]):
            gradient = torch.stack([parameter.grad for parameter in group])
            momentum.lerp_(gradient, 1 - MOMENTUM)
            update = orthogonal(gradient.lerp(momentum, MOMENTUM))
            scale = max(1, update.shape[1] / update.shape[2]) ** 0.5
            for parameter, direction in zip(group, update):
                parameter.mul_(1 - rate * self.decay)
                parameter.add_(direction, alpha=-rate * scale)
        if len(self.shares) > 1:
            self.exchange()

    def exchange(self):
        """Each worker in turn tells the others its share of the matrices, whole."""
        for worker, groups in enumerate(self.shares):
            share = [parameter for group in groups for parameter in group]
            values = parameters_to_vector(share)
            distributed.broadcast(values, worker)
            if worker != self.rank:
                vector_to_parameters(values, share)

    def state(self):
        return self.momenta

    def restore(self, state):
        self.momenta = state
