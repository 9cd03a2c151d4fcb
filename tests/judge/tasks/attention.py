"""Attention without a mask; the new model divides by the sum at the end."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        return (e @ v) / e.sum(-1, keepdim=True)


def get_inputs():
    return [*(torch.rand(32, 8, 512, 64) for _ in range(3))]
