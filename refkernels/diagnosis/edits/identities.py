"""Identities: what equals a part of a program in exact arithmetic, and rounds otherwise.

    log1p(u) = log(1 + u)      mean((x - mean x)²) = mean(x²) - mean(x)²      a / b = a (1 / b)

The search, in float64, does not see them: a program that is written with some is one more program,
read in the kernel's arithmetic. An identity is taken at all places alike. One that loses digits, or
overflows where the program does not, has a text.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, only, through
from refkernels.diagnosis.edits.names import formula_of
from refkernels.ops.edits import Rule

KIND = "unstable_identity"
_MOST = 64  # ways to write a program
_FUNCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "log1p": {"log(1 + {})": lambda xp, u: xp.log(1 + u)},
    "expm1": {"exp({}) - 1": lambda xp, u: xp.exp(u) - 1},
    "erfc": {"1 - erf({})": lambda xp, u: 1 - xp.erf(u)},
    "tanh": {
        "(e^2u - 1) / (e^2u + 1), u = {}": lambda xp, u: (xp.exp(u * 2) - 1) / (xp.exp(u * 2) + 1),
        "1 - 2 / (e^2u + 1), u = {}": lambda xp, u: 1 - 2 / (xp.exp(u * 2) + 1),
        "2 / (1 + e^-2u) - 1, u = {}": lambda xp, u: 2 / (1 + xp.exp(u * -2)) - 1,
        "(e^u - e^-u) / (e^u + e^-u), u = {}": lambda xp, u: (
            (xp.exp(u) - xp.exp(-u)) / (xp.exp(u) + xp.exp(-u))
        ),
    },
}
_LOG1P_OF_EXP: dict[str, Callable[..., Any]] = {
    "max(u, 0) + log(1 + e^-|u|), u = {}": lambda xp, u: (
        xp.maximum(u, xp.number(0)) + xp.log(1 + xp.exp(-abs(u)))
    ),
    "log(1 + e^u) up to u = 20, then u, u = {}": lambda xp, u: xp.where(
        u < 20, xp.log(1 + xp.exp(u)), u
    ),
}


class Identity(NamedTuple):
    """What takes a node's place. Of one kind, a program takes those of one number."""

    kind: str
    number: int
    text: str
    node: Node
    replacement: Replacement


def identities(program: Program) -> Iterator[Identity]:
    """Every identity of a program's nodes."""
    for node in program.functions(*_FUNCTIONS):
        (u,) = node.operands
        ways = [(u, *way) for way in _FUNCTIONS[node.option].items()]
        if node.option == "log1p" and _is(u, "exp"):
            ways += [(through(u).operands[0], *way) for way in _LOG1P_OF_EXP.items()]
        for number, (argument, text, rule) in enumerate(ways):
            told = text.format(formula_of(argument))
            yield Identity(node.option, number, told, node, by(argument)(rule))
    for node in program.of("subtract"):
        if all(_is(part, "expm1") for part in node.operands):
            u, v = (through(part).operands[0] for part in node.operands)
            text = f"exp({formula_of(u)}) - exp({formula_of(v)})"
            difference = by(u, v)(lambda xp, u, v: xp.exp(u) - xp.exp(v))
            yield Identity("expm1", 0, text, node, difference)
    for node in program.of("mean", "sum", "welford"):
        yield from one_pass_of(node)
    for node in program.of("pivot"):
        yield from _other_shifts(node)
    for node in program.of("subtract"):
        yield from _log_of_quotient(node)
    for node in program.of("maximum"):
        yield from _without_guard(program, node)
    for node in program.of("either"):
        yield Identity("either", 0, "", node, only(node.operands[1], node.shape))
    for node in program.of("divide"):
        if not is_number(through(node.operands[0])):
            yield Identity("divide", 0, "", node, by(*node.operands)(lambda xp, a, b: a * (1 / b)))
        yield from _by_tanh(node)
    for node in program.of("multiply"):
        if node.operands[1].op == "multiply":
            in_order = by(*_factors(node))(lambda xp, *all: functools.reduce(xp.multiply, all))
            yield Identity("multiply", 0, "", node, in_order)


def _is(node: Node, function: str) -> bool:
    return through(node).op == "function" and through(node).option == function


def _factors(node: Node) -> list[Node]:
    parts = node.operands if node.op == "multiply" else ()
    return [factor for part in parts for factor in _factors(part)] or [node]


def one_pass_of(node: Node) -> Iterator[Identity]:
    """sum((x - m)²) -> sum(x²) - n m², and of means."""
    axis, x, squared = node.option, node.operands[0], through(node.operands[0])
    of_squares = Node("square", (x,), None, x.shape)
    if node.op != "welford":
        shifted = through(squared.operands[0]) if squared.op == "square" else squared
        if squared.op != "square" or shifted.op != "subtract":
            return
        own, mean = shifted.operands[0], through(shifted.operands[1])
        means = mean.op in ("mean", "item") and through(mean.operands[0])
        if means not in (through(own), *through(own).operands):
            return
        x = _moved_alike(x, squared, own)
        of_squares = _moved_alike(
            node.operands[0], squared, Node("square", (own,), None, own.shape)
        )
    n = x.shape[axis]

    def moments(xp: Any, x: Any, squares: Any) -> Any:
        mean = xp.mean(x, axis)
        variance = xp.mean(squares, axis) - xp.square(mean)
        return {"mean": variance, "sum": variance * n}.get(node.op, (mean, variance * n))

    yield Identity("variance", 0, "mean(x²) - mean(x)²", node, by(x, of_squares)(moments))


def _other_shifts(node: Node) -> Iterator[Identity]:
    """exp(x - max x) -> exp(x), exp(x - mean x): results do not depend on the shift."""
    x, axis = node.operands[0], node.option
    without = by()(lambda xp: xp.broadcast(xp.number(0), node.shape))
    yield Identity("shift", 0, f"exp({formula_of(x)})", node, without)
    by_mean = by(x)(lambda xp, x: xp.stop(xp.mean(x, axis)))
    yield Identity("shift", 1, f"exp({formula_of(x)} - mean({formula_of(x)}))", node, by_mean)


def _by_tanh(node: Node) -> Iterator[Identity]:
    """a / (1 + exp(-u)) -> a (1 + tanh(u / 2)) / 2."""
    above, below = node.operands[0], through(node.operands[1])
    exponentials = [part for part in below.operands if below.op == "add" and _is(part, "exp")]
    if exponentials and all(is_number(part) for part in {*below.operands} - {*exponentials}):
        (u,) = through(exponentials[0]).operands
        half = by(above, u)(lambda xp, a, u: a * ((1 + xp.tanh(-u / 2)) / 2))
        told = formula_of(u.operands[0]) if u.op == "negative" else f"-({formula_of(u)})"
        yield Identity("divide", 1, f"1 + tanh({told} / 2)", node, half)


def _without_guard(program: Program, node: Node) -> Iterator[Identity]:
    """where(u > c, f(max(u, c)), g) -> f(u)."""
    u, c = node.operands
    for choice in program.of("where"):
        condition = choice.operands[0]
        guarded = condition.op == "is" and condition.operands[0].operands == (c, u)
        if guarded and is_number(c):
            yield Identity("guard", 0, "", node, only(u, node.shape))
            yield Identity("guard", 0, "", choice, only(choice.operands[2], choice.shape))


def _log_of_quotient(node: Node) -> Iterator[Identity]:
    """d - log(sum(exp(d))) -> log(exp(d) / sum(exp(d)))."""
    d, logarithm = (through(operand) for operand in node.operands)
    total = through(logarithm.operands[0]) if _is(logarithm, "log") else node
    if total.op == "sum" and _is(total.operands[0], "exp"):
        (e,) = total.operands
        if through(through(e).operands[0]) is d:
            quotient = by(e, total)(lambda xp, e, total: xp.log(e / total))
            yield Identity("logarithm", 0, f"log(exp({formula_of(d)}) / sum)", node, quotient)


def _moved_alike(moved: Node, node: Node, other: Node) -> Node:
    """Another node, moved as `moved` moves a node."""
    if moved is node:
        return other
    return replace(moved, operands=(_moved_alike(moved.operands[0], node, other),))


def written(graph: Graph) -> Iterator[tuple[str, Rule]]:
    """Ways to write a program with some of its identities: what loses digits in it, as text, and
    the rule that edits it."""
    kinds: dict[str, dict[int, str]] = {}
    for identity in identities(Program(graph)):
        kinds.setdefault(identity.kind, {})[identity.number] = identity.text
    choices = [[(kind, None), *((kind, number) for number in ways)] for kind, ways in kinds.items()]
    for choice in itertools.islice(itertools.product(*choices), 1, _MOST):
        taken = {kind: number for kind, number in choice if number is not None}
        text = ", ".join(filter(None, (kinds[kind][number] for kind, number in taken.items())))
        yield text, functools.partial(_edits, taken)


def _edits(taken: Mapping[str, int], graph: Graph) -> Edits:
    return {
        identity.node: identity.replacement
        for identity in identities(Program(graph))
        if taken.get(identity.kind) == identity.number
    }


def taking(kind: str, number: int) -> Rule:
    """The rule that takes every identity of a kind and number."""
    return functools.partial(_edits, {kind: number})


one_pass = taking("variance", 0)  # every variance as mean(x²) - mean(x)²
