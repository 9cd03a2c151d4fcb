"""Two programs' values, and which of them are partners: have the same numbers."""

import in_torch
from matching import Index, alike, same_numbers, sums
from replay import FAILURES, ExactRun, Unseen
from rows import joined


class Side:
    """One program: its run under edits, the sums of its values, their index."""

    def __init__(self, program, first=True):
        self.program, self.first, self.edits, self.tables = program, first, {}, {}
        self.refresh()

    def refresh(self, opened=()):
        try:
            self.run = ExactRun(self.program, self.edits, self.tables, opened)
            self.edits = self.run.edits
        except FAILURES as error:
            reason = str(error).split("\n")[0]
            raise Unseen("its calls cannot be run again (%s)" % reason) from error
        self.told = [sums(value) for value in self.run.values]
        self.index = self.indexed(range(len(self.told)))

    def indexed(self, slots):
        return Index((slot, self.told[slot]) for slot in slots)

    def slots(self, numbers):
        return [self.run.state[n] for n in numbers if n in self.run.state]

    def results(self):
        """The slots that the forward pass is for: its loss, else what the model returns."""
        return self.slots([self.program.loss]) or self.slots(self.program.outputs)

    def cut(self):
        """Leave the calls behind the results, and return them."""
        made = [self.run.made[slot] for slot in self.results()]
        end = 1 + max((maker[0] for maker in made if isinstance(maker, tuple)), default=-1)
        self.program.calls, behind = self.program.calls[:end], self.program.calls[end:]
        self.refresh()
        return behind

    def origins(self, slot):
        """A slot, behind those that have its numbers in another order or shape."""
        made = self.run.made[slot]
        needs = self.run.needs[made[0]] if isinstance(made, tuple) else ()
        if needs and alike(self.told[needs[0]], self.told[slot]):
            yield from self.origins(needs[0])
        yield slot

    def named(self, slot):
        """What a value is: a parameter, or where it is made."""
        made = self.run.made[next(self.origins(slot))]
        if not isinstance(made, tuple):
            return self.program.owner(made) or "tensor %s" % (tuple(self.run.values[slot].shape),)
        call = self.program.calls[made[0]]
        word = call.word + ("[%d]" % made[1] if len(call.results) > 1 else "")
        return "%s, %s" % (word, place(call)) if place(call) else word

    def weights(self):
        """Leaves that are parameters or buffers, by name."""
        owned = ((self.program.owner(n), slot) for n, slot in self.run.at_leaf.items())
        return {name: self.run.values[slot].numpy() for name, slot in owned if name is not None}


def place(call):
    """A module with the line that calls, as the user's code names them."""
    line = "%s:%d" % (call.file, call.line) if call.file else ""
    return "%s (%s)" % (call.module, line) if call.module and line else call.module or line


def partner(side, slot, other):
    """A slot of the other program with the same numbers, or None: weights to the bit, as one ulp of
    one weight shows in what is computed of it."""
    value, leaf = side.run.values[slot], not isinstance(side.run.made[slot], tuple)
    for found in other.index.find(side.told[slot]):
        computed = not leaf or isinstance(other.run.made[found], tuple)
        if computed or same_numbers(value, other.run.values[found]):
            return found
    return None


class Pair:
    """Two sides. `paired` of each: which of its values have a partner."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.joins = joined(a.weights(), b.weights())
        self.match()

    def match(self):
        made_of_rows = {place[0] for _, places in self.joins.values() for place in places}
        for side, other, names in ((self.a, self.b, made_of_rows), (self.b, self.a, self.joins)):
            side.paired = [partner(side, slot, other) is not None for slot in range(len(side.told))]
            for number, slot in side.run.at_leaf.items():
                side.paired[slot] = side.paired[slot] or side.program.owner(number) in names

    def refresh(self, side):
        side.refresh()
        self.match()

    def without(self, side, sinks):
        """The slots that the sinks depend on, with no partner between."""
        found, left = set(), list(sinks)
        while left:
            slot = left.pop()
            if side.paired[slot] or slot in found:
                continue
            found.add(slot)
            made = side.run.made[slot]
            if isinstance(made, tuple):
                left += side.run.needs[made[0]]
        return found


def makers(side, slots):
    """The calls that make the slots, in order."""
    indices = {side.run.made[s][0] for s in slots if isinstance(side.run.made[s], tuple)}
    return [side.program.calls[k] for k in sorted(indices)]


def unseen(side):
    """What a program computes with that no call was seen to make."""
    reasons = ["tensors of %s" % kind for kind in side.program.unseen]
    for call in side.program.calls:
        for slot, norm in zip(side.run.slots[call.index], call.norms, strict=False):
            if slot is None or norm is None or call.writes or "empty" in call.name:
                continue
            again = float(side.run.values[slot].double().norm())
            if again != again and norm == norm:
                reasons.append("%s in %s reads memory that no call was seen to write"
                               % (call.word, place(call)))  # fmt: skip
                return reasons
    return reasons


def in_pieces(pair):
    """Whether B's batches are parts or unions of A's, or one program takes all rows of a batch a
    part at a time: then its values have other shapes."""
    run, its = pair.b.run, pair.without(pair.b, pair.b.results())
    leaves = (run.values[slot] for slot in its if not isinstance(run.made[slot], tuple))
    others = any(value.numel() > 1 and not value.is_floating_point() for value in leaves)
    return others or any(map(takes_parts, (pair.a, pair.b)))


def takes_parts(side):
    """Whether values without partner are all rows of ids, or of a leaf that is no weight, some at a
    time."""
    run, rows = side.run, {}
    for call in side.program.calls:
        needs, made = run.needs[call.index], run.slots[call.index]
        if not in_torch.is_view(call.function) or len(needs) != 1:
            continue
        whole, origin = run.values[needs[0]], run.made[needs[0]]
        weights = isinstance(origin, tuple) or side.program.owner(origin) is not None
        for slot in made if not (weights and whole.is_floating_point()) else ():
            part = run.values[slot] if slot is not None else whole
            fewer = part.dim() == whole.dim() > 0 and 0 < len(part) < len(whole)
            if fewer and part.shape[1:] == whole.shape[1:] and not side.paired[slot]:
                rows.setdefault(needs[0], []).append(len(part))
    return any(len(n) > 1 and sum(n) == len(run.values[slot]) for slot, n in rows.items())
