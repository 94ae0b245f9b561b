"""The transformer: llama architecture, small enough to train on one core."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """What llama.cpp must know to run the weights."""

    vocabulary: int
    width: int = 192
    layers: int = 6
    heads: int = 6
    hidden: int = 448
    context: int = 2048
    rms_epsilon: float = 1e-5

    @property
    def head_width(self):
        return self.width // self.heads

    def asdict(self):
        return asdict(self)


# Of each head's pairs of dimensions, this part turns with the position, at angles per token from
# 1 down to SLOWEST; the others stay unturned, so that a head can look for content at any distance.
TURNING_PART = 0.625
SLOWEST = 1 / 2000


def angles_per_token(head_width):
    """The angle by which each pair of a head's dimensions turns from token to token."""
    pairs = head_width // 2
    turning = int(pairs * TURNING_PART)
    return [SLOWEST ** (i / (turning - 1)) if i < turning else 0.0 for i in range(pairs)]


def normalised(x, weight, epsilon):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight


class Layer(nn.Module):
    """One layer. Matrices have the shape (out, in); q and k keep the two halves of each pair of
    dimensions apart (export.py interleaves them as llama.cpp wants)."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        width, hidden = shape.width, shape.hidden

        def matrix(rows, columns, gain=1.0):
            return nn.Parameter(torch.randn(rows, columns) * gain / math.sqrt(columns))

        closing = 1 / math.sqrt(2 * shape.layers)
        self.attn_norm = nn.Parameter(torch.ones(width))
        self.attn_q = matrix(width, width)
        self.attn_k = matrix(width, width)
        self.attn_v = matrix(width, width)
        self.attn_output = matrix(width, width, closing)
        self.ffn_norm = nn.Parameter(torch.ones(width))
        self.ffn_gate = matrix(hidden, width)
        self.ffn_up = matrix(hidden, width)
        self.ffn_down = matrix(width, hidden, closing)

    def forward(self, x, rotation, mask):
        """x: (rows, length, width); mask: (1, length, length), added to the scores."""
        rows, length, width = x.shape
        heads, each = self.shape.heads, self.shape.head_width
        normal = normalised(x, self.attn_norm, self.shape.rms_epsilon)
        flat = normal.reshape(-1, width)

        def split(matrix):
            out = flat @ matrix.t()
            return out.view(rows, length, heads, each).transpose(1, 2)

        q = turned(split(self.attn_q), rotation).reshape(rows * heads, length, each)
        k = turned(split(self.attn_k), rotation).reshape(rows * heads, length, each)
        v = split(self.attn_v).reshape(rows * heads, length, each)
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(each))
        seen = torch.bmm(torch.softmax(scores, -1), v)
        seen = seen.view(rows, heads, length, each).transpose(1, 2).reshape(-1, width)
        x = x + (seen @ self.attn_output.t()).view(rows, length, width)

        flat = normalised(x, self.ffn_norm, self.shape.rms_epsilon).reshape(-1, width)
        opened = functional.silu(flat @ self.ffn_gate.t()) * (flat @ self.ffn_up.t())
        return x + (opened @ self.ffn_down.t()).view(rows, length, width)


def turned(x, rotation):
    """x: (rows, heads, length, head width), rotated by its positions."""
    cosine, sine = rotation
    first, second = x.chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


class Network(nn.Module):
    """Embedding, layers, and the embedding again as the output (tied)."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Parameter(torch.randn(shape.vocabulary, shape.width) * 0.05)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.output_norm = nn.Parameter(torch.ones(shape.width))
        position = torch.arange(shape.context).float()[:, None]
        angles = position * torch.tensor(angles_per_token(shape.head_width))[None, :]
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        self.masks = {}

    def hidden(self, tokens):
        """tokens: (rows, length) -> normalised state (rows, length, width)."""
        length = tokens.shape[1]
        if length not in self.masks:
            self.masks[length] = torch.full((length, length), -1e9).triu(1)[None]
        rotation = (self.cosine[:length], self.sine[:length])
        x = functional.embedding(tokens, self.token_embd)
        for layer in self.layers:
            x = layer(x, rotation, self.masks[length])
        return normalised(x, self.output_norm, self.shape.rms_epsilon)

    def loss(self, tokens, weights):
        """The weighted sum of the losses of tokens[:, 1:], of which only those with a weight are
        computed. weights: (rows, length), of each token as a target."""
        targets = tokens[:, 1:]
        wanted = weights[:, 1:]
        chosen = wanted > 0
        state = self.hidden(tokens[:, :-1])[chosen]
        logits = state @ self.token_embd.t()
        losses = functional.cross_entropy(logits, targets[chosen], reduction="none")
        return (losses * wanted[chosen]).sum()

    def parameters_count(self):
        return sum(parameter.numel() for parameter in self.parameters())
