"""A program in PyTorch beside another framework's, of which the tensors of layers were recorded.

What that program computes between its layers is not known: a value may depend on all that were made
shortly before it. Its numbers are float32's, and in the same order: values are partners where half
of their digits agree, and an edit makes a value where it leaves little of what was apart.
"""

import json
import math
import os
from collections import namedtuple

import numpy as np
import torch

from matching import HUGE, Index, flat, sums
from parting import PLACES, ROUNDS, described, is_replacement, search, varied
from replay import CALLS, RecordedProgram, opened
from sides import Pair, Side

HALF = 2.0**-12  # half of float32's digits
LEFT = 2.0**-6  # of what was apart, that an edit may leave: a quarter of the digits
KINDS = "omitted", "exchanged", "left_out", "swapped", "transposed", "summed"  # of edits
TURNED = {"left_out": "added", "summed": "alone"}  # of A, where B is what is edited

# A layer's call, or what is in front of it: `word`, its type; `module`, its name.
Layer = namedtuple("Layer", "index module word function file line fused of ends",
                   defaults=(torch.ops.aten.relu.default, "", 0, "", None, False))  # fmt: skip


def apart(value, other):
    """The norm of a difference, over that of the `other` but for what is as good as infinite."""
    x, y = (np.clip(flat(one), -HUGE, HUGE) for one in (value, other))
    size = np.linalg.norm(y[np.abs(y) < HUGE])
    return float(np.linalg.norm(x - y) / (size or 1.0)) if x.size == y.size else math.inf


class Near(Index):
    """Values found by half of their digits, in the same order."""

    FINE = 2.0**5

    def find(self, told, value, before=None):
        """`before`: what an edit made this value of; it must leave little of what was apart."""
        near, its = self._near(told[0], told[2]), self._values
        found = sorted(s for _, some in near for s in some if apart(value, its[s]) <= HALF)
        if before is None:
            return found
        return [s for s in found if apart(value, its[s]) <= LEFT * apart(before, its[s])]


class Layers:
    """What the layers of another framework's program took and gave, in the order of their calls:
    the program, its run and its side in one."""

    weights = dict  # of no calls

    def __init__(self, path):
        header, tensor = opened(path)
        with open(os.path.join(os.path.dirname(path), "run.json"), encoding="utf-8") as file:
            layers = {one["name"]: one["type"] for one in json.load(file)["layers"]}
        self.calls, self.values, self.program, self.run = [], [], self, self
        for name, word in layers.items():
            key = "layers/%s/forward/" % name
            parts = [(int(n[len(key) :].split("/")[0]), n) for n in header if n.startswith(key)]
            inside = any(one.startswith(name + ".") or name == "(root)" != one for one in layers)
            for _, full in sorted(parts) if not inside else ():  # inputs come before outputs
                value = tensor(full).detach()
                if value.is_floating_point() and varied(sums(value)):
                    self.calls.append(Layer(len(self.calls), name, word))
                    self.values.append(value.double())
        self.results = lambda: range(len(self.values))
        self.made, self.slots = [(k, 0) for k in self.results()], [[k] for k in self.results()]
        self.needs = [list(range(max(k - PLACES, 0), k)) for k in self.results()]
        self.told = [sums(value) for value in self.values]

    def indexed(self, slots):
        return Near(((slot, self.told[slot]) for slot in slots), self.values)


class Layered(Pair):
    """The pair of a program in PyTorch, `a`, and of layers, `b`, whichever is the run A."""

    def match(self):
        a, b = self.a, self.b
        a.index = Near(enumerate(a.told), a.run.values)
        found = [a.index.find_value(value) for value in b.values]
        b.paired = [bool(slots) for slots in found]
        same = a.indexed(slot for slots in found for slot in slots)  # moved or not
        begun = found[: [*b.paired, False].index(False)]
        behind = {slot for slots in begun for slot in slots}  # what they depend on is right
        for call in reversed(a.program.calls):
            if not behind.isdisjoint(a.run.made_by(call)):
                behind.update(a.run.needs[call.index])
        a.paired = [slot in behind or bool(same.find(told)) for slot, told in enumerate(a.told)]


def compare_layers(path_a, path_b):
    """What differs between a program in PyTorch and the layers of another framework's."""
    record = {"differences": [], "unseen": [], "complete": False}
    reverse = CALLS not in opened(path_a)[0]  # the layers are A's
    a, b = Side(RecordedProgram((path_a, path_b)[reverse])), Layers((path_b, path_a)[reverse])
    a.cut()
    pair = Layered(a, b)
    if b.values and all(b.paired):
        far = max(min(apart(a.run.values[s], v) for s in a.index.find_value(v)) for v in b.values)
        runs = dict(zip(("run", "other"), "AB" if reverse else "BA"))
        record["agreed"] = {**runs, "count": len(b.values), "apart": far}
    while (its := pair.without(b, b.results())) and len(record["differences"]) < ROUNDS:
        found = search(pair, a, b, a.results(), b.results(), KINDS[reverse:])
        if is_replacement(found):
            break
        told, edit = found
        told["edit"] = TURNED.get(told["edit"], told["edit"]) if reverse else told["edit"]
        record["differences"].append(described(pair, a, told, b.calls[min(its)]))
        a.edits.update(edit)
        pair.refresh(a)
    return record
