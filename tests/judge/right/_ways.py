"""Ways to run a right kernel that change neither its formula nor its answer: other orders of the
elements, blocks, strides, and a wider format. `kernels` makes named kernels of formulas.

Elementwise ways take arrays of one shape, and give arrays of that shape. Ways over rows take arrays
whose first axes are equal, and formulas that take each row by itself.
"""

import functools

import numpy as np


def in_kind(array, number):
    """The number in the array's format."""
    return array.dtype.type(number)


def _arrays(given, named):
    return [value for value in (*given, *named.values()) if isinstance(value, np.ndarray)]


def _called(formula, change, given, named):
    """The formula of changed arrays, each of which is given by position or by name."""
    change_array = lambda value: change(value) if isinstance(value, np.ndarray) else value  # noqa: E731
    return formula(
        *map(change_array, given), **{name: change_array(value) for name, value in named.items()}
    )


def _mapped(change, answer):
    if isinstance(answer, tuple):
        return tuple(None if part is None else change(part) for part in answer)
    return change(answer)


def _joined(parts):
    if isinstance(parts[0], tuple):
        return tuple(
            None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True)
        )
    return np.concatenate(parts)


def whole(formula):
    return formula


def _named(formula):
    """The formula; if it is a ufunc, with a name for its argument."""
    return (lambda x: formula(x)) if isinstance(formula, np.ufunc) else formula


def _moved(there, back):
    """A way that moves all elements, and the answer's elements back."""

    def way(formula):
        @functools.wraps(formula)
        def kernel(*given, **named):
            shape = _arrays(given, named)[0].shape
            answer = _called(formula, lambda array: there(array.reshape(-1)), given, named)
            return _mapped(lambda part: back(part).reshape(shape), answer)

        return kernel

    return way


def in_blocks(size):
    """A way that takes so many elements at a time."""

    def way(formula):
        @functools.wraps(formula)
        def kernel(*given, **named):
            first = _arrays(given, named)[0]
            parts = [
                _called(formula, lambda a, i=i: a.reshape(-1)[i : i + size], given, named)
                for i in range(0, max(first.size, 1), size)
            ]
            return _mapped(lambda part: part.reshape(first.shape), _joined(parts))

        return kernel

    return way


def _order(count):
    return np.random.default_rng(0).permutation(count)


def _gapped(flat):
    wide = np.zeros(2 * flat.size + 1, flat.dtype)
    wide[1::2] = flat
    return wide[1::2]


ELEMENTWISE = {
    "whole": whole,
    "tiled": in_blocks(7),
    "reversed": _moved(lambda a: a[::-1], lambda a: a[::-1]),
    "gapped": _moved(_gapped, np.copy),
    "permuted": _moved(lambda a: a[_order(a.size)], lambda a: a[np.argsort(_order(a.size))]),
}


def in_format(kind, formula):
    """A way that computes in another format, and rounds the answer once."""

    @functools.wraps(formula)
    def kernel(*given, **named):
        own = next(array for array in _arrays(given, named) if array.dtype.kind not in "iub")
        wide = lambda a: a if a.dtype.kind in "iub" else a.astype(kind)  # noqa: E731
        with np.errstate(over="ignore"):
            return _mapped(
                lambda part: np.asarray(part, own.dtype), _called(formula, wide, given, named)
            )

    return kernel


def kernels(formulas, ways=ELEMENTWISE):
    """By name, {way}_{formula}_{op}, a kernel for every way and formula. `formulas`: by op, those
    for the arrays' own format, which are tried in float64 too, and those for float64 alone, whose
    names end in "_wide"."""
    made = {}
    for op, by_name in formulas.items():
        tried = {}
        for name, formula in by_name.items():
            if name.endswith("_wide"):
                tried[name] = in_format(np.float64, _named(formula))
            else:
                tried |= {
                    name: _named(formula),
                    f"{name}_wide": in_format(np.float64, _named(formula)),
                }
        for name, formula in tried.items():
            made |= {f"{way}_{name}_{op}": change(formula) for way, change in ways.items()}
    return made


def with_totals(formulas, totals):
    """By name, {total}_{op}, a kernel for every way of adding. Each formula takes `total(x)`, the
    sums along the last axis, before its arrays."""
    return {
        f"{name}_{op}": functools.partial(formula, total)
        for op, formula in formulas.items()
        for name, total in totals.items()
    }
