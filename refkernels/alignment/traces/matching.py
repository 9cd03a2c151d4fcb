"""Which values of two runs have the same numbers, in any order and shape.

A value is told by how many numbers it has and by six of their sums.
"""

import math

import numpy as np
import torch

from rows import forms

HUGE = 1e30  # numbers that stand for infinity
BLOCK = 2**15  # numbers whose sums a processor's cache holds
SAME = 1e-9  # relative difference of sums that float64 leaves between two ways to compute


def flat(value):
    value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return value.detach().double().resolve_neg().reshape(-1).numpy()  # its sums are NumPy's: faster


def sums(value):
    """(count, Σ|x|, Σx², Σx, Σx³, Σ|c|, Σc) in float64, c = x / (1 + |x|): c tells small numbers
    beside large ones. What masks with infinity or a format's least number is seen by c alone."""
    x = flat(value)
    blocks = (sums_of_block(x[k : k + BLOCK]) for k in range(0, max(x.size, 1), BLOCK))
    return (x.size, *map(sum, zip(*blocks)))


def sums_of_block(x):
    signs, size = x, np.abs(x)
    with np.errstate(invalid="ignore"):
        c = size / (1.0 + size)
    if not size.max(initial=0.0) < HUGE:  # or a NaN
        c = np.where(np.isinf(x), 1.0, np.where(np.isnan(x), 2.0, c))
        signs, x = np.nan_to_num(x), np.where(size < HUGE, x, 0.0)
        size = np.abs(x)
    square = x * x
    parts = size, square, x, square * x, c, np.copysign(c, signs)
    return [float(part.sum()) for part in parts]


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
    """The slots of values, found by their numbers; `values`: all of them, by slot."""

    FINE = 1e7  # how many places there are for sums of squares, up to e times the first

    def __init__(self, entries, values=()):
        self._places, self._values = {}, values
        for slot, told in entries:
            places = self._places.setdefault(self._key(told[0], told[2]), {})
            places.setdefault(told, []).append(slot)

    def _key(self, count, square):
        return count, math.floor(math.log(square) * self.FINE) if 0.0 < square < math.inf else None

    def _near(self, count, square):
        """(sums, slots) of values of so many numbers and about this sum of their squares."""
        key = self._key(count, square)
        keys = [key] if key[1] is None else [(count, key[1] + d) for d in (-1, 0, 1)]
        return [entry for key in keys for entry in self._places.get(key, {}).items()]

    def find(self, told, value=None, before=None):
        """The slots whose values have the same numbers."""
        near = self._near(told[0], told[2])
        return sorted(slot for other, slots in near if alike(told, other) for slot in slots)

    def find_value(self, value, before=None):
        """The same of a value that is not told yet: the sum of its squares rules out most."""
        x = flat(value)
        square = float(np.einsum("i,i->", x, x))  # below HUGE², each number is below HUGE
        may_be = self._near(x.size, square) or not square < HUGE * HUGE
        return self.find(sums(value), value, before) if may_be else []


def assembled(sources, joins):
    """The value that a joined weight's rows make of A's values: of gradients, say."""
    form, places = joins
    if not sources.keys() >= {name for name, _, _ in places}:
        return None
    value = torch.stack([forms(sources[name])[turned][k] for name, turned, k in places])
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
