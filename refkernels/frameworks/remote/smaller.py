"""Makes a task smaller, in the interpreter with torch: its text with smaller integers.

The integers of a task are those in its module's statements and in get_inputs() and
get_init_inputs(), not those in its classes, which a candidate repeats. They are halved, one or all
that are equal, where the Model still runs on torch's meta device, without numbers, and has less to
compute: first those that change nothing but the first axis of every input (batches), then those
that leave the parameters as they are (places in space and time) down to SHORT, then the rest
(channels), then short ones; of each the largest first. A normalisation keeps FEWEST numbers, so
that single ones do not decide it. Needs torch only (Python 3.8).
"""

import ast
import math
import os
import sys
import types

FEWEST = 32
LEAST, SHORT = 4, 16  # an integer below the first is no size
PRODUCTS = 64  # multiplications that count as one element
MOST = 1 << 24  # elements at sizes of which one is the task's own
LONGEST = 1 << 37  # multiplications, in float32 and float64: half a minute of one core
GIVING = ("get_inputs", "get_init_inputs")


def smaller(whole, path, name, most, kept=None, alone=True):
    """The task's text with smaller integers, and these by name, where class `name` computes at
    most `most` elements, or as few as can be. `kept`: the number of an integer that stays; `alone`:
    whether equal ones may part, unless the model then lacks places that are drawn."""
    text, before, best, stages = whole, integers(whole), measured(whole, path, name), {}
    groups = [group for group in _groups(before, alone) if kept not in group]
    same = set(enumerate(best.parameters if best else ()))  # which no size makes smaller
    for group in groups if best and best.work > most else ():
        found = measured(_halved(text, group), path, name, run=False)
        if found:
            stages[group] = _stage(best, found)
            same &= set(enumerate(found.parameters))
    most += sum(math.prod(shape) for _, shape in same)
    while stages and best.work > most:
        values = [integer.value for integer in integers(text)]
        group = min(stages, key=lambda g: _order(stages[g], len(g), values[g[0]]))
        halved = _halved(text, group) if min(values[k] for k in group) >= LEAST else text
        found = measured(halved, path, name)
        if found and found.work < best.work and found.fewest >= min(best.fewest, FEWEST):
            text, best = halved, found
        else:
            del stages[group]
    if alone and kept is None and text != whole and not _runs(text, path, name):
        return smaller(whole, path, name, most, kept, alone=False)
    after = [integer.value for integer in integers(text)]
    return text, {old.name: new for old, new in zip(before, after) if old.value != new}


def larger(text, path, name, changed):
    """The texts, integers and terms at which this machine can run class `name`: the task's own, or
    else each of those that are changed at its own value, the others smaller where they may be."""
    whole = measured(text, path, name)
    if whole is None or whole.fits():
        return [(text, {}, whole.terms)] if whole else []
    found = {}
    for kept in (k for k, integer in enumerate(integers(text)) if integer.name in changed):
        other, sizes = smaller(text, path, name, MOST, kept)
        run = measured(other, path, name)
        if run and run.fits():
            found[other] = sizes, run.terms
    return [(other, *rest) for other, rest in found.items()]


class Integer:
    """An integer in a text: its place in bytes, and the name that it is assigned to."""

    def __init__(self, node, name):
        self.value, self.name = node.value, name or "%d in line %d" % (node.value, node.lineno)
        self.line, self.start, self.end = node.lineno - 1, node.col_offset, node.end_col_offset


def integers(text):
    """Those that a task's sizes may be."""
    found = []
    for statement in ast.parse(text).body:
        is_function = isinstance(statement, ast.FunctionDef)
        if isinstance(statement, ast.ClassDef) or (is_function and statement.name not in GIVING):
            continue
        names = {}
        for target in getattr(statement, "targets", ()):
            both = target, statement.value
            several = all(isinstance(part, ast.Tuple) for part in both)
            pairs = zip(*(part.elts for part in both)) if several else [both]
            names.update((value, name.id) for name, value in pairs if isinstance(name, ast.Name))
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                found.append(Integer(node, names.get(node)))
    return found


def _groups(known, alone):
    """The numbers of all integers with the same value, and of one."""
    equal = {}
    for k, integer in enumerate(known):
        if integer.value >= LEAST:
            equal.setdefault(integer.value, []).append(k)
    several = [tuple(numbers) for numbers in equal.values() if len(numbers) > 1]
    return [(k,) for n in equal.values() for k in n if alone or len(n) == 1] + several


def _halved(text, group):
    lines = text.encode().splitlines(keepends=True)
    known = integers(text)
    for integer in sorted((known[k] for k in group), key=lambda i: -i.start):
        line = lines[integer.line]
        half = str(integer.value // 2).encode()
        lines[integer.line] = line[: integer.start] + half + line[integer.end :]
    return b"".join(lines).decode()


def _stage(before, after):
    rest = [[shape[1:] for shape in measured.inputs] for measured in (before, after)]
    return (before.parameters != after.parameters) * 2 or int(rest[0] != rest[1])


def _order(stage, number, value):
    return 3 if stage == 1 and value < SHORT else stage, number, -value


def executed(text, path):
    """The module of a task's text."""
    module = types.ModuleType("refkernels_program")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def measured(text, path, name, run=True):
    """What a Model takes and computes, without numbers; None where it does not run so."""
    try:
        found = _Measured(executed(text, path), name)
        if run:
            found.run()
    except Exception:
        return None
    return found


def _runs(text, path, name):
    """Whether it runs with numbers: places that are drawn may lie beyond what is shorter."""
    try:
        module = executed(text, path)
        getattr(module, name)(*getattr(module, "get_init_inputs", list)())(*module.get_inputs())
    except Exception:
        return False
    return True


class _Measured:
    """The shapes of a Model's `inputs` and `parameters`; after `run`, `work`: about how many
    elements it computes, `products`: how many it multiplies, `fewest`: of a normalisation, and
    `terms`: the most that one result has."""

    def __init__(self, module, name):
        import torch

        initial = getattr(module, "get_init_inputs", list)()
        with torch.device("meta"), torch.no_grad():
            self.given = module.get_inputs()
        try:
            with torch.device("meta"):
                self.model = getattr(module, name)(*initial)
        except RuntimeError:  # it reads numbers
            self.model = getattr(module, name)(*initial).to("meta")
        leaves = torch.utils._pytree.tree_leaves(self.given)
        inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        state = list(self.model.state_dict().values())
        self.inputs, self.parameters = ([tuple(t.shape) for t in part] for part in (inputs, state))
        self.work, self.fewest = sum(tensor.numel() for tensor in [*inputs, *state]), math.inf
        lengths = [n for shape in [*self.inputs, *self.parameters] for n in shape]
        self.products, self.terms = 0, max(lengths, default=1)

    def fits(self):
        """Whether its results, in float64, take at most half of the memory that is free."""
        if not hasattr(os, "sysconf"):  # Windows
            return False
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return 8 * (self.work - self.products // PRODUCTS) <= free / 2 and self.products <= LONGEST

    def run(self):
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        class Counting(TorchDispatchMode):
            def __torch_dispatch__(counting, operator, types, args=(), kwargs=None):
                key = operator, _layout([args, kwargs or {}])
                same, result, counts = KNOWN.get(key, (False, None, None))
                if counts is None:
                    if operator is torch.ops.aten.convolution.default:  # unchecked on meta
                        torch._C._select_conv_backend(*args, None)
                    result = operator(*args, **(kwargs or {}))
                    counts = _counts(operator, args, kwargs or {}, result)
                    same = args and result is args[0] and _layout(result) == key[1][0][0]
                    if same or not any(r.alias_info for r in operator._schema.returns):
                        KNOWN[key] = same, result, counts  # without numbers, as good as a new one
                found, products, terms, together = counts
                self.work += found + products // PRODUCTS
                self.products, self.terms = self.products + products, max(self.terms, terms)
                self.fewest = min(self.fewest, together)
                return args[0] if same else result

        with torch.device("meta"), torch.no_grad(), Counting():
            self.model(*self.given)


KNOWN = {}  # by operator and layout of its arguments, its result and counts


def _layout(item):
    if isinstance(item, (list, tuple)):
        return tuple(map(_layout, item))
    if isinstance(item, dict):
        return tuple((key, _layout(value)) for key, value in item.items())
    if hasattr(item, "stride"):
        return tuple(item.shape), item.stride(), item.dtype
    return type(item), item


def _counts(operator, args, kwargs, result):
    """How many numbers an operator computes and how many it multiplies; the most terms of one, and
    how many numbers a normalisation takes together."""
    from torch.utils.flop_counter import flop_registry

    given, found = (_numbers(part) for part in (args, result))
    together, products = _together(operator, args), 0
    terms = given // found if found else 0
    if operator.overloadpacket in flop_registry:
        multiplied = flop_registry[operator.overloadpacket]
        products = multiplied(*args, **dict(kwargs, out_val=result)) // 2
        terms = max(terms, products // found)
    return found, products, max(terms, 0 if together == math.inf else together), together


def _numbers(tree):
    import torch

    leaves = torch.utils._pytree.tree_leaves(tree)
    return sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))


def _together(operator, args):
    """How many numbers one normalisation has; infinite for another operator."""
    name = str(operator)
    if "_norm" not in name or "vector" in name or not args[0].numel():
        return math.inf
    given = dict(zip((argument.name for argument in operator._schema.arguments), args))
    x = args[0]
    if "normalized_shape" in given:
        return math.prod(given["normalized_shape"])
    if "group" in given:
        return x.numel() // (x.shape[0] * given["group"])
    return x.numel() // x.shape[1] if given.get("training") else math.inf
