"""Weights of which one is made of the other's rows, or columns: fused projections, split or
permuted. In NumPy alone, for every framework."""


def forms(value):
    """A value as a matrix, and that transposed."""
    value = value.reshape(len(value) if value.ndim else 1, -1)
    return value, value.T


def rows(value):
    """The rows of a weight, and its columns, as bytes."""
    turned = forms(value)[: value.ndim or 1] if value.size else ()
    return [[row.tobytes() for row in form] for form in turned]


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
