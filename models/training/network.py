"""The transformer: llama architecture, small enough to train on one core."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import autograd, nn
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
TURNING_PART = 0.5
SLOWEST = 1 / 2000
BLOCK = 128  # queries that attend together


def angles_per_token(head_width):
    """The angle by which each pair of a head's dimensions turns from token to token."""
    pairs = head_width // 2
    turning = int(pairs * TURNING_PART)
    return [SLOWEST ** (i / (turning - 1)) if i < turning else 0.0 for i in range(pairs)]


class Normalised(autograd.Function):
    """x / rms(x) * weight with its gradient in as few passes over memory as can be."""

    @staticmethod
    def forward(context, x, weight, epsilon):
        """x: (tokens, width)."""
        width = x.shape[1]
        scale = (torch.linalg.vector_norm(x, dim=1, keepdim=True).square() / width + epsilon).rsqrt()
        x = x * scale
        context.save_for_backward(x, weight, scale)
        return x * weight

    @staticmethod
    def backward(context, gradient):
        x, weight, scale = context.saved_tensors
        product = gradient * x
        along = torch.mv(product, weight)[:, None] / x.shape[1]
        return ((gradient * weight).addcmul_(x, along, value=-1).mul_(scale), product.sum(0), None)


normalised = Normalised.apply


class Gated(autograd.Function):
    """silu(gate) * up, whose gradient takes no exponential function again."""

    @staticmethod
    def forward(context, gate, up):
        opened = torch.sigmoid(gate)
        passed = gate * opened
        context.save_for_backward(opened, passed, up)
        return passed * up

    @staticmethod
    def backward(context, gradient):
        opened, passed, up = context.saved_tensors
        slope = opened + passed - passed * opened
        return gradient * up * slope, gradient * passed


class Layer(nn.Module):
    """One layer. Matrices have the shape (out, in); in q and k, dimensions that turn together are
    neighbours, as llama.cpp wants them."""

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

    def forward(self, x, rows, rotation, mask):
        """x: (rows * length, width); mask: (1, length, length), added to the scores."""
        length, width = len(x) // rows, x.shape[1]
        heads, each = self.shape.heads, self.shape.head_width
        normal = normalised(x, self.attn_norm, self.shape.rms_epsilon)
        matrices = torch.cat((self.attn_q / math.sqrt(each), self.attn_k, self.attn_v))
        q, k, v = (normal @ matrices.t()).view(rows, length, 3, heads, each).unbind(2)

        def by_head(y):
            return y.transpose(1, 2).reshape(rows * heads, length, each)

        seen = attention(by_head(turned(q, rotation)), by_head(turned(k, rotation)), by_head(v), mask)
        seen = seen.view(rows, heads, length, each).transpose(1, 2).reshape(-1, width)
        x = x + seen @ self.attn_output.t()

        normal = normalised(x, self.ffn_norm, self.shape.rms_epsilon)
        gate, up = (normal @ torch.cat((self.ffn_gate, self.ffn_up)).t()).chunk(2, -1)
        return x + Gated.apply(gate, up) @ self.ffn_down.t()


def attention(q, k, v, mask):
    """q, k, v: (heads of all rows, length, head width); causal. Goes by blocks of queries, which
    need no scores of the keys behind them, and stay in the processor's cache."""
    length, blocks = q.shape[1], []
    for start in range(0, length, BLOCK):
        end = min(start + BLOCK, length)
        scores = torch.baddbmm(mask[:, start:end, :end], q[:, start:end], k[:, :end].transpose(1, 2))
        blocks.append(torch.bmm(torch.softmax(scores, -1), v[:, :end]))
    return torch.cat(blocks, 1)


def turned(x, rotation):
    """x: (rows, length, heads, head width), rotated by its positions."""
    pairs = torch.view_as_complex(x.float().view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation).view(x.shape)


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
        self.register_buffer("rotation", torch.polar(torch.ones(()), angles)[:, None],
                             persistent=False)
        self.masks = {}

    def hidden(self, tokens):
        """tokens: (rows, length) -> normalised state (rows, length, width)."""
        rows, length = tokens.shape
        if length not in self.masks:
            self.masks[length] = torch.full((length, length), -1e9).triu(1)[None]
        x = functional.embedding(tokens.flatten(), self.token_embd)
        for layer in self.layers:
            x = layer(x, rows, self.rotation[:length], self.masks[length])
        return normalised(x, self.output_norm, self.shape.rms_epsilon).view(rows, length, -1)

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
