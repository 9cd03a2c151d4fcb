"""Every public function says what it computes, on what, how exactly, what it raises, and by whom.

A docstring may leave parts to another: "Otherwise as `sum`". The equation is always its own, and
so is the source of an op's definition; a gradient's may be that of the forward pass.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import refkernels
from refkernels import alignment, registry

MODULES = [importlib.import_module(f"refkernels.{name}") for name in refkernels._MODULES]
ORACLES = [module for module in MODULES if module.__name__.endswith("_ref")]
PARTS = {
    "shapes": r"\bshapes?\b|\baxis\b|\baxes\b|\([^)]*\.\.\.",
    "dtypes": r"float16.*float32|\bdtypes\b",
    "a bound": r"\b[Bb]ounds?\b|\b[Rr]adius\b|\bexactly\b",
}
RAISES = re.compile(r"\b[Rr]aises?\b")
DATED = r"\((19|20)\d\d\)|\bdocumentation\b|\bIEEE 754-2019\b|\bISO/IEC \d|\bDLMF\b"
SOURCE = re.compile(rf"\bSources?: .{{0,80}}?({DATED})")
NAMED = {  # of an op, where its functions are not called as it is
    "layernorm": ("forward", "backward"),
    "matmul": ("forward", "backward"),
}
ALGORITHMS = {  # functions beside the ops that others have published
    "layernorm_ref": ("naive", "two_pass", "welford", "chunked_welford", "pairwise"),
    "matmul_ref": ("forward_bound", "forward_condition"),
    "metrology": ("ulp", "ulp_error"),
}
NEVER_RAISE = ("digest", "cases")  # of any array, and without arguments


class Documented(NamedTuple):
    """A public function, its own docstring, and with it those that it leaves the rest to."""

    own: str
    whole: str


def documented(module: ModuleType, name: str) -> Documented:
    """The docstrings of a function of an oracle."""
    own = " ".join((inspect.getdoc(getattr(module, name)) or "").split())
    whole, left = own, set(_others(own)) - {name}
    seen = {name}
    while left:
        other = left.pop()
        assert hasattr(module, other), f"{module.__name__}.{name} refers to `{other}`"
        text = " ".join((inspect.getdoc(getattr(module, other)) or "").split())
        seen.add(other)
        whole += " " + text
        left |= set(_others(text)) - seen
    return Documented(own, whole)


def _others(text: str) -> list[str]:
    return re.findall(r"(?:therwise (?:as|like)|Raises as) `(\w+)`", text)


def of_ops() -> Iterator[Any]:
    """The functions of every op: its module, the function's name, and that of the forward pass."""
    for name, op in registry.ops().items():
        (module,) = [m for m in ORACLES if name in {own.name for own in m.OPS}]
        forward, backward = NAMED.get(name, (name, f"{name}_backward"))
        yield pytest.param(module, forward, None, id=name)
        if "backward" in op.directions:
            by_name = hasattr(module, backward)  # else by the family's one function
            yield pytest.param(module, backward if by_name else "backward", forward, id=f"{name}'")


@pytest.mark.parametrize(("module", "name", "forward"), list(of_ops()))
def test_an_op_s_functions_say_all(module: ModuleType, name: str, forward: str | None) -> None:
    said = documented(module, name)
    assert re.search(r" (=|<=) ", said.own), "no equation of its own"
    lacking = [part for part, words in PARTS.items() if not re.search(words, said.whole)]
    assert not lacking, f"{name} does not say {lacking}"
    assert RAISES.search(said.whole), f"{name} does not say what it raises"
    source = said.own if forward is None else said.whole + documented(module, forward).own
    assert SOURCE.search(source), "no source"


@pytest.mark.parametrize("module", [*MODULES, alignment, refkernels], ids=lambda m: m.__name__)
def test_every_public_function_says_what_it_raises(module: ModuleType) -> None:
    for name in getattr(module, "__all__", ()):
        public = getattr(module, name)
        assert not callable(public) or inspect.getdoc(public), f"{name} has no docstring"
        if inspect.isroutine(public) and name not in NEVER_RAISE:
            assert RAISES.search(documented(module, name).whole), name


def test_published_algorithms_name_their_source() -> None:
    for room, names in ALGORITHMS.items():
        module = importlib.import_module(f"refkernels.{room}")
        for name in names:
            assert SOURCE.search(documented(module, name).own), name
