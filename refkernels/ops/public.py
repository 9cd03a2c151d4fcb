"""Public functions of ops, from stubs that hold their documentation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.op import Op
from refkernels.ops.tree import tree

Stub = Callable[[], None]


_GRADIENT = (
    "Gradient: "  # begins the end of a stub's documentation, which is that of the backward pass
)


def enclosure_of(ops: Iterable[Op]) -> Callable[[Stub], Callable[..., Enclosure]]:
    """A decorator: a stub named after one of the ops, or NAME_backward, becomes that pass. It takes
    the op's arrays, its params by name, and `certify`, the question. What its documentation says of
    its gradient is that of the backward pass (`gradients_of`)."""
    return functools.partial(_function, {op.name: op for op in ops}, Enclosure)


def enclosures_of(ops: Iterable[Op], kind: Any = Any) -> Callable[[Stub], Callable[..., Any]]:
    """The same for passes with several outputs, which are a named tuple, of that kind if any."""
    return functools.partial(_function, {op.name: op for op in ops}, kind)


def public_names(ops: Iterable[Op]) -> list[str]:
    """The names of the functions that a module of these ops has."""
    suffixes = {"forward": "", "backward": "_backward"}
    return sorted(op.name + suffixes[direction] for op in ops for direction in op.directions)


def gradients_of(ops: Iterable[Op], names: dict[str, Any]) -> Callable[[str], Callable[..., Any]]:
    """Adds to a module's names the backward passes of its public functions that it lacks. Returns
    its `__getattr__`, by which type checkers know that there are names which no line defines."""
    by_name = {op.name: op for op in ops if op.gradients}
    for name in (name for name in by_name if f"{name}_backward" not in names):
        forward = names[name]

        def stub() -> None: ...

        functools.update_wrapper(stub, forward, ("__module__",), ())
        stub.__name__ = stub.__qualname__ = f"{name}_backward"
        stub.__doc__ = f"{vars(forward)['gradient']}\n\nOtherwise as `{name}`."
        kind = Any if len(by_name[name].gradients) > 1 else Enclosure
        names[stub.__name__] = _function(by_name, kind, stub)

    def absent(name: str) -> Callable[..., Any]:
        raise AttributeError(f"module {names['__name__']!r} has no attribute {name!r}", name=name)

    return absent


def _function(ops: dict[str, Op], kind: Any, stub: Stub) -> Callable[..., Any]:
    name = stub.__name__.removesuffix("_backward")
    op, title = ops[name], name.title().replace("_", "")
    said, _, gradient = inspect.cleandoc(stub.__doc__ or "").partition(_GRADIENT)
    signature = _signature(op, stub.__name__ != name, kind)

    @functools.wraps(stub)
    def function(*given: Any, **named: Any) -> Any:
        try:
            asked = signature.bind(*given, **named)
        except TypeError as error:  # says what, not where
            raise TypeError(f"{stub.__name__}() {error}") from None
        asked.apply_defaults()
        answer = op.ask(asked.arguments)
        if kind is Enclosure:
            return answer
        return tree(title, answer) if kind is Any else kind(**answer)

    del function.__wrapped__
    function.__doc__ = said.rstrip()
    vars(function).update(__signature__=signature, gradient=gradient)
    return function


def _signature(op: Op, backward: bool, kind: Any) -> inspect.Signature:
    one, left_out = inspect.Parameter, dict.fromkeys(op.optional)
    arrays = [
        one(name, one.POSITIONAL_OR_KEYWORD, default=left_out.get(name, one.empty), annotation=Any)
        for name in op.takes("backward" if backward else "forward")
    ]
    named = {**op.params, "certify": "enclosure"}
    options = [
        one(name, one.KEYWORD_ONLY, default=value, annotation=Certify if name == "certify" else Any)
        for name, value in named.items()
    ]
    return inspect.Signature([*arrays, *options], return_annotation=kind)
