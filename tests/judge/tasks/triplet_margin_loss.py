"""A loss without an oracle."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, anchor, near, far):
        return nn.functional.triplet_margin_loss(anchor, near, far, margin=1.0)


def get_inputs():
    return [*(torch.rand(128, 4096) for _ in range(3))]


def get_init_inputs():
    return []
