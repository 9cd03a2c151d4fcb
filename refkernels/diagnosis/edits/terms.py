"""Terms, factors and functions: left out, twice, negated, exchanged, another."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import permutations, product
from typing import Any

from refkernels.contexts.graph import Node
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, only, rule, shaped, through


def _of_inputs(change: Any, program: Program, params: bool = False) -> Iterator[Any]:
    for node in (node for node in program.of("input") if bool(node.shape) != params):
        yield node, {node: by(node)(change)}, {"part": node}


@rule("term_missing", "term")  # a + b -> a
def missing_terms(program: Program) -> Iterator[Any]:
    for node in program.of("add", "subtract"):
        for kept, missing in permutations(node.operands):
            negated = node.op == "subtract" and kept is node.operands[1]
            left = by(kept)(lambda xp, b: -b) if negated else only(kept, node.shape)
            yield node, {node: left}, {"part": missing}


rule("term_missing", "term")(partial(_of_inputs, lambda xp, v: v * 0))


@rule("term_doubled", "term")  # a + b -> a + 2 b
def doubled_terms(program: Program) -> Iterator[Any]:
    for node in program.of("add", "subtract"):
        for twice in (o for o in reversed(node.operands) if not is_number(o)):  # 2 eps is an eps
            add = node.op == "add" or twice is node.operands[0]
            doubled = by(node, twice)(lambda xp, v, b, add=add: v + b if add else v - b)
            yield node, {node: doubled}, {"part": twice}


rule("term_doubled", "term")(partial(_of_inputs, lambda xp, v: v * 2))
rule("complement_taken", "term")(partial(_of_inputs, lambda xp, v: 1 - v))  # x -> 1 - x


# A kind of edit; of two operands, what is computed in the place of what; and which it is about.
_COMPUTED_AS: tuple[tuple[str, str, Any, int | None], ...] = (
    ("sign_wrong", "add", lambda xp, a, b: a - b, 1),
    ("sign_wrong", "add", lambda xp, a, b: b - a, 0),
    ("sign_wrong", "subtract", lambda xp, a, b: a + b, 1),
    ("exchanged_operands", "subtract", lambda xp, a, b: b - a, None),
    ("exchanged_operands", "divide", lambda xp, a, b: b / a, None),
    ("factor_inverted", "divide", lambda xp, a, b: a * b, 1),
    ("factor_inverted", "multiply", lambda xp, a, b: a / b, 1),
    ("factor_inverted", "multiply", lambda xp, a, b: b / a, 0),
    ("factor_twice", "multiply", lambda xp, a, b: a * b * b, 1),
    ("factor_twice", "multiply", lambda xp, a, b: a * b * a, 0),
    ("factor_twice", "divide", lambda xp, a, b: a / b / b, 1),
)


def _computed_as(op: str, other: Any, about: int | None, program: Program) -> Iterator[Any]:
    for node in program.of(op):
        part = node if about is None else node.operands[about]
        yield node, {node: by(*node.operands)(other)}, {"part": part}


for _kind, _op, _other, _about in _COMPUTED_AS:
    rule(_kind, "term")(partial(_computed_as, _op, _other, _about))


@rule("factor_missing", "term")  # a b -> a, a a -> a
def missing_factors(program: Program) -> Iterator[Any]:
    for node in program.of("multiply", "divide"):
        pairs = list(permutations(node.operands))[: 1 + (node.op == "multiply")]
        for kept, missing in dict.fromkeys(pairs):
            yield node, {node: only(kept, node.shape)}, {"part": missing}
            if missing.op == "negative":  # -b a -> -a
                minus = by(kept)(lambda xp, a, to=node.shape: shaped(xp, -a, to))
                yield node, {node: minus}, {"part": missing.operands[0]}
    for node in program.inputs:
        yield node, {node: by(node)(lambda xp, v: v * 0 + 1)}, {"part": node}
    for factor in program.of("input", "number"):
        products = [node for node in program.users.get(factor, ()) if node.op == "multiply"]
        others = [(node, [o for o in node.operands if o is not factor]) for node in products]
        changes = {node: only(kept[0], node.shape) for node, kept in others if kept}
        if len(changes) > 1:
            yield factor, changes, {"part": factor, "every": len(changes)}


# weight_decay = 0
rule("param_ignored", "constant")(partial(_of_inputs, lambda xp, v: xp.number(0), params=True))


@rule("one_added", "term")  # a w -> a (1 + w), of an input w
def ones_added(program: Program) -> Iterator[Any]:
    for node in program.inputs:
        users = program.users.get(node, [])
        if any(user.op in ("multiply", "broadcast", "move") for user in users):
            yield node, {node: by(node)(lambda xp, w: xp.may_store(1 + w))}, {"part": node}


@rule("mean_taken_off", "term")  # x -> x - mean(x)
def subtracted_means(program: Program) -> Iterator[Any]:
    """Of what is squared, and so averaged: the norm of centred numbers for that of numbers."""
    for node in dict.fromkeys(square.operands[0] for square in program.of("square")):
        if node.shape and node.shape[-1] > 1:
            yield node, {node: by(node)(lambda xp, x: x - xp.mean(x))}, {"part": node}


@rule("sum_for_maximum", "term")  # max(a, c) -> a + c; at every one with this c
def sums_for_maxima(program: Program) -> Iterator[Any]:
    bounds: dict[Node, list[Node]] = {}
    for node in program.of("maximum"):
        bounds.setdefault(node.operands[1], []).append(node)
    for limit, nodes in bounds.items():
        changes = {node: by(*node.operands)(lambda xp, a, b: a + b) for node in nodes}
        yield nodes[0], changes, {"part": limit, "every": len(nodes)}


@rule("maximum_for_sum", "term")  # a + c -> max(a, c)
def maxima_for_sums(program: Program) -> Iterator[Any]:
    for node in program.of("add"):
        for limit in filter(is_number, node.operands):
            larger = by(*node.operands)(lambda xp, a, b: xp.maximum(a, b))
            yield node, {node: larger}, {"part": limit}


@rule("constant_scaled", "constant")  # mean(x²) + c -> mean(x²) + c max(|x|)²
def scaled_constants(program: Program) -> Iterator[Any]:
    """As where a row is first divided by its largest size, lest squares overflow."""
    for node in program.of("add"):
        for total, c in permutations(node.operands):
            inner = through(total).operands[0] if through(total).op in ("mean", "sum") else node
            if is_number(c) and inner.op == "square":
                scaled = by(total, c, *inner.operands)(
                    lambda xp, total, c, x: total + c * xp.square(xp.max(abs(x)))
                )
                yield node, {node: scaled}, {"part": c}


@rule("exponent_differs", "constant")  # b^n -> b^(n + 1), of every base
def other_exponents(program: Program) -> Iterator[Any]:
    powers: dict[int, list[Node]] = {}
    for node in program.of("power"):
        powers.setdefault(node.option, []).append(node)
    for n, nodes in powers.items():
        for other in (n - 1, n + 1):
            power = {
                node: by(*node.operands)(lambda xp, b, n=other: xp.power(b, n)) for node in nodes
            }
            yield nodes[0], power, {"exponent": n, "taken": other}
    for node in program.functions("sqrt", "rsqrt"):  # v + eps, or its square, for the root of it
        sign = 1 if node.option == "sqrt" else -1
        for n in (1, 2) if sign < 0 else (2,):
            raised = by(*node.operands)(
                lambda xp, v, n=n, sign=sign: xp.power(v, n) if sign > 0 else 1 / xp.power(v, n)
            )
            yield node, {node: raised}, {"exponent": f"{sign}/2", "taken": sign * n}


@rule("function_missing", "function")  # f(x) -> x, x² -> x, |x| -> x
def missing_functions(program: Program) -> Iterator[Any]:
    for node in (*program.functions(), *program.of("square", "absolute", "negative", "power")):
        (inner,) = node.operands
        yield node, {node: only(inner, node.shape)}, {"part": inner}


def _of_functions(change: Callable[..., Any], program: Program) -> Iterator[Any]:
    for node in program.functions():
        yield node, {node: by(node)(partial(change, name=node.option))}, {"part": node}


rule("part_negated", "function")(partial(_of_functions, lambda xp, v, name: -v))  # f(x) -> -f(x)
rule("function_twice", "function")(partial(_of_functions, lambda xp, v, name: xp.function(name, v)))


_SIBLINGS = {
    "sqrt": ("rsqrt",), "rsqrt": ("sqrt",), "tanh": ("erf", "atan"), "erf": ("tanh",),
    "exp": ("expm1",), "expm1": ("exp",), "log": ("log1p",), "log1p": ("log",),
    "sin": ("cos",), "cos": ("sin",), "atan": ("tanh",), "erfc": ("erf",),
}  # fmt: skip


_POWERS: dict[str, Callable[..., Any]] = {
    "|x|": lambda xp, x: abs(x),
    "x |x|": lambda xp, x: x * abs(x),
    "x³": lambda xp, x: xp.power(x, 3),
}
_MAXIMA: dict[str, Callable[..., Any]] = {
    "min": lambda xp, a, b: xp.minimum(a, b),
    "max²": lambda xp, a, b: xp.square(xp.maximum(a, b)),
}


@rule("other_function", "function")  # tanh for erf, rsqrt for sqrt, x³ for x², min for max
def other_functions(program: Program) -> Iterator[Any]:
    for node in program.functions():
        for other in _SIBLINGS[node.option]:
            sibling = by(*node.operands)(lambda xp, x, name=other: xp.function(name, x))
            yield node, {node: sibling}, {"function": node.option, "other": other}
    for node in program.functions("tanh", "erf"):
        cut = by(*node.operands)(lambda xp, x: xp.clip(x, -1, 1))
        yield node, {node: cut}, {"function": node.option, "other": "clip"}
    for node in program.of("square"):
        for other, power in _POWERS.items():
            yield node, {node: by(*node.operands)(power)}, {"function": "x²", "other": other}
    for node in program.of("maximum"):
        for other, chosen in _MAXIMA.items():
            yield node, {node: by(*node.operands)(chosen)}, {"function": "max", "other": other}


_SHARE, _LOGISTIC = "exp(x) / sum(exp(x))", "1 / (1 + exp(-x))"


@rule("other_function", "function")  # one for the other
def sigmoid_and_softmax(program: Program) -> Iterator[Any]:
    for node in program.of("divide"):
        above, below = map(through, node.operands)
        if below.op == "sum" and above.op == "function" and through(below.operands[0]) is above:
            softmax = by(above.operands[0])(lambda xp, x: 1 / (1 + xp.exp(-x)))
            shifted = through(above.operands[0])
            if shifted.op == "subtract" and through(shifted.operands[1]).op == "pivot":
                softmax = softmax._replace(operands=(shifted.operands[0],))
            yield node, {node: softmax}, {"function": _SHARE, "other": _LOGISTIC}
        for one, e in permutations(below.operands) if below.op == "add" else ():
            e = through(e)
            if is_number(through(one)) and e.op == "function" and e.option == "exp":
                for axis in range(-len(node.shape), 0):
                    softmaxed = by(e.operands[0])(partial(_softmax, axis))
                    details = {"function": _LOGISTIC, "other": _SHARE, "axis": axis}
                    yield node, {node: softmaxed}, details


def _softmax(axis: int, xp: Any, minus: Any) -> Any:
    e = xp.exp(-minus - xp.stop(xp.max(-minus, axis)))
    return e / xp.sum(e, axis)


@rule("base_2", "function")  # 2^x for e^x, log2 for log
def other_bases(program: Program) -> Iterator[Any]:
    for node in program.functions("exp", "expm1"):
        power = by(*node.operands)(
            lambda xp, x, name=node.option: xp.function(name, x * xp.log(xp.number(2)))
        )
        yield node, {node: power}, {"part": node}
    for node in program.functions("log", "log1p"):
        yield node, {node: by(node)(lambda xp, v: v / xp.log(xp.number(2)))}, {"part": node}


_OF_INPUTS: dict[str, Callable[[Any, Any], Any]] = {
    "exp(x)": lambda xp, x: xp.exp(x),
    "log(x)": lambda xp, x: xp.log(x),
    "-exp(x)": lambda xp, x: -xp.exp(x),
    "x²": lambda xp, x: xp.square(x),
    _LOGISTIC: lambda xp, x: 1 / (1 + xp.exp(-x)),
    "x / (1 + exp(-x))": lambda xp, x: x / (1 + xp.exp(-x)),
    _SHARE: lambda xp, x: _softmax(-1, xp, -x),
    "π/180 x": lambda xp, x: xp.may_store(x * xp.pi() / 180),
    "π x": lambda xp, x: xp.may_store(x * xp.pi()),
    "2π x": lambda xp, x: xp.may_store(x * xp.pi() * 2),
    "180/π x": lambda xp, x: xp.may_store(x * 180 / xp.pi()),
}
_OF_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: _OF_INPUTS[name] for name in (_LOGISTIC, "x / (1 + exp(-x))")},
    "max(x, 0.01 x)": lambda xp, x: xp.maximum(x, x * xp.number(0.01)),
    "x (1 + erf(x / √2)) / 2": lambda xp, x: x * xp.erfc(-x / xp.sqrt(xp.number(2))) / 2,
    "x / (1 + exp(-√(8 / π) (x + 0.044715 x³)))": lambda xp, x: (
        x / (1 + xp.exp(-xp.sqrt(8 / xp.pi()) * (x + xp.power(x, 3) * xp.number(0.044715))))
    ),
    "tanh(x)": lambda xp, x: xp.tanh(x),
    "max(x, 0)": lambda xp, x: xp.maximum(x, xp.number(0)),
    "sqrt(x)": lambda xp, x: xp.sqrt(x),
}


def _transformed(nodes: Iterable[Node], functions: Mapping[str, Any]) -> Iterator[Any]:
    for node, (name, function) in product(nodes, functions.items()):
        yield node, {node: by(node)(function)}, {"part": node, "function": name}


@rule("input_transformed", "input")  # x -> softmax(x), of what was given as probabilities
def transformed_inputs(program: Program) -> Iterator[Any]:
    return _transformed(program.inputs, _OF_INPUTS)


@rule("fused_activation", "function")  # y -> silu(y)
def activated_results(program: Program) -> Iterator[Any]:
    return _transformed(dict.fromkeys(filter(None, program.graph.outputs)), _OF_RESULTS)


@rule("input_added", "function")  # y -> y + x, as a residual
def added_inputs(program: Program) -> Iterator[Any]:
    for node, x in product(dict.fromkeys(program.graph.outputs), program.inputs):
        if node and x.shape == node.shape:
            yield node, {node: by(node, x)(lambda xp, y, x: y + x)}, {"part": x}


@rule("constant_outside_root", "constant")  # sqrt(u + c) -> sqrt(u) + c
def outside_the_root(program: Program) -> Iterator[Any]:
    for node in program.functions("sqrt", "rsqrt"):
        total = through(node.operands[0])
        for u, c in permutations(total.operands) if total.op == "add" else ():
            if not is_number(through(c)):
                continue
            outside = (
                (lambda xp, v, c: v + c)
                if node.option == "sqrt"
                else (lambda xp, v, c: 1 / (1 / v + c))
            )
            yield node, {total: only(u, total.shape), node: by(node, c)(outside)}, {"part": c}


_STEPS = ("function", "step")
_ADDING = {"add": operator.add, "subtract": operator.sub}
_SCALING = {"multiply": operator.mul, "divide": operator.truediv}


@rule("applied_elsewhere", "term")  # f(a c) -> f(a) c, a c + b -> (a + b) c or a + b c
def moved_operations(program: Program) -> Iterator[Any]:
    for node in program.of(*_ADDING, *_SCALING):
        kinds = (_ADDING, _SCALING) if node.op in _ADDING else (_SCALING, _ADDING)
        for kept, c in list(permutations(node.operands))[: 1 + (node.op in ("add", "multiply"))]:
            source = c.operands[0] if c.op == "broadcast" else c
            inner, apply = through(kept), kinds[0][node.op]
            places = [user for user in program.readers(node) if user.op in kinds[1]]
            places += [o for user in places for o in user.operands if through(o) is not node]
            places += inner.operands if inner.op in kinds[1] else ()
            if not source.shape or source.op in ("input", "array"):  # what is computed stays near
                places += (*_later(program, node), *_earlier(kept))
            behind = _reached(c, lambda node: node.operands)
            for place in dict.fromkeys(places) if kept.shape else ():
                if place not in behind and (not source.shape or place.shape == node.shape):
                    moved = by(place, c)(lambda xp, v, c, apply=apply: apply(v, c))
                    changes = {node: only(kept, node.shape), place: moved}
                    yield node, changes, {"part": c, "at": place}


def _later(program: Program, node: Node) -> Iterator[Node]:
    """Functions and results that depend on a node."""
    later = _reached(node, lambda node: program.users.get(node, ()))
    return (n for n in later if n.op in _STEPS or n in program.graph.outputs)


def _earlier(node: Node) -> Iterator[Node]:
    """The arguments of functions that a node depends on."""
    earlier = (node, *_reached(node, lambda node: node.operands))
    return (n.operands[0] for n in earlier if n.op in _STEPS)


def _reached(node: Node, following: Callable[[Node], Iterable[Node]]) -> dict[Node, None]:
    seen, waiting = dict[Node, None](), [node]
    while waiting:
        new = [other for other in following(waiting.pop()) if other not in seen]
        seen |= dict.fromkeys(new)
        waiting += new
    return seen
