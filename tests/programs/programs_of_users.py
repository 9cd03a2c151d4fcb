"""Functions and modules as users write them; read in torch's interpreter, not by pytest."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def fused(x, weight, bias):
    z = x @ weight + bias
    return F.gelu(F.layer_norm(z, (3,)), approximate="tanh") * 0.1


class Block(nn.Module):
    def __init__(self, width=12, heads=3):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).split(width, dim=-1)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(x)))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))

    def forward(self, x):
        return self.blocks(x)


def masked(x, keep):
    scores = (x @ x.transpose(0, 1)).masked_fill(~keep, float("-inf"))
    return torch.softmax(scores / math.sqrt(x.shape[1]), dim=-1) @ x


def branches(x):
    return x * 2 if x.sum() > 0 else x


def reads_a_number(x):
    return x * x.mean().item()


def uncovered(x):
    return torch.special.bessel_j0(x)


def drops(x):
    return F.dropout(x, 0.5, training=True)


def is_complex(x):
    return torch.fft.rfft(x).abs()


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        return 3 * dy


def own_gradient(x):
    return _Doubled.apply(x)
