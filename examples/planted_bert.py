"""Faults of a training that hardly show, planted in train_bert.py's trainings with torch.

    PYTHON examples/train_bert.py torch FOLDER --planted tanh_gelu

None of these faults is declared: a layer or an optimizer states the right definition, and computes
something else. `refkernels align` has to find it in the numbers. "nothing" plants the right update
in the same hand-written form.
"""

import math

import torch

F = torch.nn.functional
LAYERS = ("layernorm_eps", "tanh_gelu", "loss_without_eps", "loss_over_padding", "gradient_times_8")
CLIPS = ("clip_without_eps", "clip_each", "clip_left_out")
UPDATES = (
    "nothing", "dampening", "nesterov", "no_bias_correction", "eps_hat", "eps_inside",
    "decay_on_exempt", "l2_for_decoupled",
)  # fmt: skip


def plant(name, model, optimizer, clip):
    """Makes the model wrong; returns the optimizer and the clipping, of which one may be wrong."""
    if name in LAYERS:
        globals()[name](model)
    elif name in CLIPS:
        return optimizer, lambda: globals()[name](model)
    elif name in UPDATES:
        return KINDS[type(optimizer).__name__](name, optimizer), clip
    else:
        raise SystemExit(f"--planted is one of {', '.join((*LAYERS, *CLIPS, *UPDATES))}.")
    return optimizer, clip


def of_type(model, name):
    return [layer for layer in model.modules() if type(layer).__name__ == name]


def layernorm_eps(model):
    for layer in of_type(model, "LayerNorm"):
        shape, weight, bias = layer.normalized_shape, layer.weight, layer.bias
        layer.forward = lambda x, s=shape, w=weight, b=bias: F.layer_norm(x, s, w, b, 1e-5)


def tanh_gelu(model):
    for layer in of_type(model, "GELU"):
        layer.forward = lambda x: F.gelu(x, approximate="tanh")


def loss_without_eps(model):
    def forward(logits, labels, weights):
        return (F.cross_entropy(logits, labels, reduction="none") * weights).sum() / weights.sum()

    model.masked.forward = forward


def loss_over_padding(model):
    model.masked.forward = lambda logits, labels, weights: F.cross_entropy(logits, labels)


def gradient_times_8(model):
    """A sum over eight ranks in place of their mean; the printed loss is right."""

    def seen(layer, inputs, losses):
        for loss in losses:
            loss.register_hook(lambda gradient: 8.0 * gradient)

    model.register_forward_hook(seen)


def clip_without_eps(model, limit=1.0):
    gradients = [p.grad for p in model.parameters()]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
    factor = torch.clamp(limit / norm, max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)


def clip_each(model, limit=1.0):
    for p in model.parameters():
        torch.nn.utils.clip_grad_norm_([p], limit)


def clip_left_out(model):
    pass


class SGD(torch.optim.SGD):
    def __init__(self, wrong, right):
        super().__init__(right.param_groups)
        self.wrong = wrong

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state, g, mu = self.state[p], p.grad, group["momentum"]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = g.clone()
                else:
                    share = 0.9 if self.wrong == "dampening" else 1.0
                    state["momentum_buffer"].mul_(mu).add_(g, alpha=share)
                buf = state["momentum_buffer"]
                p.sub_(group["lr"] * (g + mu * buf if self.wrong == "nesterov" else buf))


class Adam(torch.optim.Adam):
    def __init__(self, wrong, right):
        super().__init__(right.param_groups)
        self.wrong = wrong

    @torch.no_grad()
    def step(self, closure=None):
        decayed = type(self) is AdamW
        for group in self.param_groups:
            lr, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]
            decay = 0.01 if self.wrong == "decay_on_exempt" else group["weight_decay"]
            for p in group["params"]:
                state, g = self.state[p], p.grad
                if not state:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                if self.wrong == "l2_for_decoupled":
                    g = g + decay * p
                elif decayed:
                    p.mul_(1 - lr * decay)
                m, v, t = state["exp_avg"], state["exp_avg_sq"], int(state["step"])
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                c1, c2 = 1 - beta1**t, 1 - beta2**t
                if self.wrong == "no_bias_correction":
                    c1 = c2 = 1.0
                below = v.sqrt() / math.sqrt(c2) + eps
                if self.wrong == "eps_hat":
                    below = (v.sqrt() + eps) / math.sqrt(c2)
                elif self.wrong == "eps_inside":
                    below = (v / c2 + eps).sqrt()
                p.addcdiv_(m, below, value=-lr / c1)


class AdamW(Adam):
    pass


KINDS = {"SGD": SGD, "Adam": Adam, "AdamW": AdamW}
