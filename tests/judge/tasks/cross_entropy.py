"""A mean of losses of labels; the new model subtracts from the logarithm of the sum, which is
infinite where torch has NaN, and reads -100 as "no label", as torch does."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return nn.functional.cross_entropy(predictions, targets)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        kept = targets != -100
        chosen = predictions.gather(1, targets.where(kept, 0)[:, None])[:, 0]
        losses = torch.logsumexp(predictions, 1) - chosen
        return losses[kept].mean()


def get_inputs():
    return [torch.randn(4096, 10), torch.randint(0, 10, (4096,))]
