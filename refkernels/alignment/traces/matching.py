"""Which values of two runs have the same numbers, in any order and shape.

A value is told by how many numbers it has and by six of their sums. Weights of which one is the
other's rows (fused projections, split or permuted) are partners by their rows.
"""

import math

import numpy as np
import torch

HUGE = 1e30  # numbers that stand for infinity
SAME = 1e-9  # relative difference of sums that float64 leaves between two ways to compute


def sums(value):
    """(count, Σ|x|, Σx², Σx, Σx³, Σ|c|, Σc) in float64, c = x / (1 + |x|): c tells small numbers
    beside large ones. What masks with infinity or a format's least number is seen by c alone."""
    x = value.detach().double().resolve_neg().numpy()  # its sums take a tenth of torch's time
    with np.errstate(invalid="ignore"):
        c = np.where(np.isinf(x), np.sign(x), x / (1.0 + np.abs(x)))
    c, x = np.where(np.isnan(c), 2.0, c), np.where(np.abs(x) < HUGE, x, 0.0)
    square = x * x
    parts = np.abs(x), square, x, square * x, np.abs(c), c
    return (x.size, *(float(part.sum()) for part in parts))


def alike(a, b, tolerance=SAME):
    """Whether two of `sums` belong to the same numbers."""
    size = math.sqrt(a[2]) if a[2] > 0.0 else 0.0
    limits = (a[1], a[2], a[1], size * a[2], a[5], a[5])
    return a[0] == b[0] and all(
        abs(x - y) <= tolerance * limit for x, y, limit in zip(a[1:], b[1:], limits, strict=True)
    )


def same_numbers(a, b):
    """Whether two values have the same numbers to the bit, in any order."""
    if a.shape == b.shape and torch.equal(a, b):
        return True
    return torch.equal(*(value.double().flatten().sort().values for value in (a, b)))


class Index:
    """The slots of values, found by their numbers."""

    def __init__(self, entries):
        self._places = {}
        for slot, told in entries:
            self._places.setdefault(self._key(told), []).append((slot, told))

    @staticmethod
    def _key(told):
        return told[0], math.floor(math.log(told[2]) * 1e7) if 0.0 < told[2] < math.inf else None

    def find(self, told):
        """The slots whose values have the same numbers."""
        count, place = self._key(told)
        keys = [(count, place)] if place is None else [(count, place + d) for d in (-1, 0, 1)]
        return [
            slot for key in keys for slot, other in self._places.get(key, ()) if alike(told, other)
        ]


def rows(value):
    """The rows of a weight, and its columns, as bytes."""
    value = value.double().reshape(value.shape or (1,))
    turned = [value] if value.dim() < 2 else [value.flatten(1), value.flatten(1).T]
    return [
        [row.numpy().tobytes() for row in form.contiguous().reshape(len(form), -1)]
        for form in turned
        if form.numel()
    ]


def joined(weights_a, weights_b):
    """{name in B: for each of its rows the (name, row) in A}, of weights that are made of A's rows
    or whose rows make A's; with the form (rows 0, columns 1) of each side."""
    places = {}
    for name, value in weights_a.items():
        for form, lines in enumerate(rows(value)):
            for k, line in enumerate(lines):
                places.setdefault(line, (name, form, k))
    found = {}
    for name, value in weights_b.items():
        for form, lines in enumerate(rows(value)):
            if all(line in places for line in lines):
                found[name] = form, [places[line] for line in lines]
                break
    return found


def assembled(sources, joins):
    """The value that a joined weight's rows make of A's values: of gradients, say."""
    form, places = joins
    forms = {}
    lines = []
    for name, turned, k in places:
        if name not in sources:
            return None
        key = name, turned
        if key not in forms:
            value = sources[name].double()
            flat = value.reshape(len(value), -1) if value.dim() else value.reshape(1, 1)
            forms[key] = flat.T if turned else flat
        lines.append(forms[key][k].reshape(-1))
    value = torch.stack(lines)
    return value.T if form else value


def leading(value):
    """The base b of the numbers b^(-k/n), k = 0, …, n - 1; None for others."""
    x = value.detach().double().reshape(-1)
    if x.numel() < 3 or not bool((x > 0).all()) or abs(float(x[0]) - 1.0) > 1e-6:
        return None
    steps = x[1:] / x[:-1]
    if float((steps - steps[0]).abs().max()) > 1e-5 or abs(float(steps[0]) - 1.0) < 1e-6:
        return None
    base = float(steps[0]) ** -x.numel()
    return float("%.5g" % base)
