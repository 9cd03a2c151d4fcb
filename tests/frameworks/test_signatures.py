"""A user's kernel is called by the names of its parameters: right kernels under the signatures that
libraries have are right in an assertion and a measurement, and what does not fit is
unsupported."""

from __future__ import annotations

import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from hunting import HUNT, one_in, seed_of

from refkernels import registry
from refkernels.frameworks.kernels import facts_of
from refkernels.frameworks.remote import kernel_adapter
from refkernels.frameworks.remote.kernel_adapter import FORMS, Unbound
from refkernels.frameworks.synonyms import MEANINGS, SYNONYMS
from refkernels.op import Direction, Op
from refkernels.testing import cases

HEAD = '''"""Right kernels: each asks the op's plain algorithm."""
import numpy as np

from refkernels import registry
from refkernels.arithmetic import formats


def _right(name, **given):
    op = registry.get(name.removesuffix("_backward"))
    direction = "backward" if name.endswith("_backward") else "forward"
    arrays = {n: given.pop(n) for n in op.takes(direction) if n in given}
    arrays = {n: array for n, array in arrays.items() if isinstance(array, np.ndarray)}
    assert all(type(given[n]) is bool for n in given if type(op.params[n]) is bool)
    floats = [array for name, array in arrays.items() if formats.is_one(array.dtype)]
    return op.plain(direction, arrays, {**op.params, **given}, formats.of(floats[0]))


def _cap(value):
    assert value >= 0
    return value or None
'''
TABLE = Path(__file__).with_name("library_signatures.txt").read_text("utf-8").splitlines()
LIBRARY_SIGNATURES = [line.split(" | ") for line in TABLE if not line.startswith("#")]
SMALL = 1 << 12  # elements
NUMBERED = [
    pytest.param(number, id=f"{name} of {origin}: ({signature[:40]})")
    for number, (name, origin, signature, _) in enumerate(LIBRARY_SIGNATURES)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each signature, with a right kernel under it."""
    folder = tmp_path_factory.mktemp("kernels")
    for number, (name, _, signature, meaning) in enumerate(LIBRARY_SIGNATURES):
        body = f"    return _right({name!r}, {meaning})\n"
        text = f"{HEAD}\n\ndef {name}({signature}):\n{body}"
        (folder / f"kernel_{number}.py").write_text(text, encoding="utf-8")
    return folder


def op_of(name: str) -> tuple[Op, Direction]:
    op = registry.get(name.removesuffix("_backward"))
    return op, "backward" if name.endswith("_backward") else "forward"


@pytest.mark.parametrize("number", one_in(6, NUMBERED))
def test_a_right_kernel_is_right_in_an_assertion(folder: Path, number: int) -> None:
    """Every small case passes, or is skipped because the kernel has no parameter for it."""
    name = LIBRARY_SIGNATURES[number][0]
    op, direction = op_of(name)
    kernel = runpy.run_path(str(folder / f"kernel_{number}.py"))[name]
    passed, reasons = 0, list[str]()
    for case in cases(op, directions=[direction]):
        if max(array.size for array in case.inputs.values()) <= SMALL:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    case.check(kernel)
                    passed += 1
                except SkipTest as skipped:
                    reasons.append(str(skipped))
    assert passed
    assert all(reason.startswith(f"unsupported: {name} take") for reason in reasons)


@pytest.mark.parametrize(
    ("name", "signature", "reason"),
    [
        ("attention", "q, k, v, temperature", "needs temperature, which is no input and no param"),
        ("attention", "q, k", "takes no v"),
        ("layernorm", "x, first, second", "needs first, which is no input and no param"),
        ("layernorm_backward", "dy, x, mean, rstd, weight", "needs mean, which is an output, and"),
        ("softmax_backward", "dy, y", "needs y, which is an output, and no input, of softmax"),
        ("softmax_backward", "grad, output", "needs output, which is an output, and no input"),
        ("rms_norm", "x, weight, dim", "needs dim, which is no input and no param"),
        ("softmax", "x, out", "needs out, which is no input and no param"),
        ("matmul", "a, b, c", "needs c, which is no input and no param"),
        ("matmul", "*, left, right", "needs left, which is no input and no param"),
        ("rms_norm", "x, weight, eps=True", "takes eps as a bool, which cannot say eps="),
    ],
)
def test_what_cannot_be_bound_is_unsupported_with_the_reason(
    name: str, signature: str, reason: str
) -> None:
    op, direction = op_of(name)
    namespace: dict[str, Any] = {}
    exec(f"def {name}({signature}): raise AssertionError('called')", namespace)
    for case in cases(op, directions=[direction]):
        with pytest.raises(SkipTest, match=f"unsupported: {name} .*{reason}"):
            case.check(namespace[name])


@pytest.mark.parametrize(
    ("signature", "queries", "causal", "received"),
    [
        ("q, k, v, causal=False", 3, "none", False),
        ("q, k, v, causal=False", 3, "top_left", True),
        ("q, k, v, causal=True", 3, "none", False),
        ("q, k, v, causal=None", 3, "bottom_right", True),
        ("q, k, v, causal", 2, "none", False),
        ("q, k, v, causal", 2, "top_left", None),
        ("q, k, v, causal", 2, "bottom_right", None),
        ("q, k, v, is_causal=False", 2, "top_left", True),
        ("q, k, v, is_causal=False", 2, "bottom_right", None),
        ("q, k, v, causal: str", 2, "bottom_right", "bottom_right"),
        ("q, k, v, causal='none'", 2, "none", "none"),
    ],
)
def test_a_causal_that_is_a_bool_receives_the_right_one(
    signature: str, queries: int, causal: str, received: bool | str | None
) -> None:
    name = "is_causal" if "is_causal" in signature else "causal"
    namespace: dict[str, Any] = {}
    exec(f"def attention({signature}): return {name}", namespace)
    arrays = {"q": np.zeros((queries, 4)), "k": np.zeros((3, 4)), "v": np.zeros((3, 4))}
    facts = facts_of(registry.get("attention"), "attention")
    arguments = namespace["attention"], facts, "forward", arrays, {"causal": causal}
    if received is None:
        with pytest.raises(Unbound, match=f"takes {name} as a bool, which cannot say causal="):
            kernel_adapter.call(*arguments)
    else:
        assert kernel_adapter.call(*arguments) is received or isinstance(received, str)


@pytest.mark.parametrize(
    ("parameter", "window", "received"),
    [
        ("window_size=(-1, -1)", None, (-1, -1)),
        ("window_size=(None, None)", (3, 0), (3, 0)),
        ("window_size=None", (3, 0), None),  # it may be one number
        ("window=None", (3, 0), (3, 0)),
        ("softcap=0.0", None, 0.0),
        ("softcap=50.0", None, None),
    ],
)
def test_a_default_that_says_none_stays_and_a_pair_goes_where_pairs_are_taken(
    parameter: str, window: Any, received: Any
) -> None:
    namespace: dict[str, Any] = {}
    name = parameter.split("=")[0]
    exec(f"def attention(q, k, v, {parameter}): return 1.0 * {name}[0]", namespace)
    exec(f"def asked(q, k, v, {parameter}): return {name}", namespace)
    arrays = dict.fromkeys("qkv", np.zeros((3, 4)))
    facts = facts_of(registry.get("attention"), "attention")
    arguments = facts, "forward", arrays, {"window": window}
    if received is None:
        with pytest.raises(Unbound, match=f"takes {name} as|with {name}=None"):
            kernel_adapter.call(namespace["attention"], *arguments)
    else:
        assert kernel_adapter.call(namespace["asked"], *arguments) == received


def test_a_function_without_a_signature_that_refuses_a_name_is_unsupported() -> None:
    facts = facts_of(registry.get("sum"), "total")
    x = np.arange(4.0)
    assert kernel_adapter.call(np.add.reduce, facts, "forward", {"x": x}, {"axis": -1}) == 6.0
    with pytest.raises(Unbound, match=r"total cannot be called with axis as in this case"):
        kernel_adapter.call(max, facts, "forward", {"x": x}, {"axis": -1})


def test_a_required_weight_that_a_case_lacks_gives_no_nan() -> None:
    facts = facts_of(registry.get("rms_norm"), "scaled")
    question = lambda x, weight: x * np.asarray(weight, float), facts, "forward"
    with pytest.raises(
        Unbound, match=r"called with weight=None as in this case .*: it returns NaN"
    ):
        kernel_adapter.call(*question, {"x": np.ones((2, 3))}, {})
    kernel_adapter.call(*question, {"x": np.full((2, 3), np.inf)}, {})  # numbers may give NaN too


def drawn(rng: np.random.Generator, op: Op, direction: Direction) -> tuple[str, dict[str, str]]:
    """A signature of the op's inputs and params in any order, under its own or other names, with
    defaults or without, and what each parameter means. Of the required inputs, some may have names
    that nobody knows, and are then in the op's order."""
    takes = op.takes(direction)
    names = [*takes, *op.params]
    meant = {*names, "dy"} if direction == "backward" else {*names}
    order = [str(name) for name in rng.permutation(names)]
    unknown = [name for name in takes if name not in op.optional and rng.random() < 0.3]
    in_order = iter(unknown)
    meaning: dict[str, str] = {}
    required, others = [], []
    for name in order:
        if name in unknown:
            parameter, name = f"array_{len(meaning)}", next(in_order)
        else:
            known = [
                word
                for word in SYNONYMS.get(name, "").split()
                if len(meant & {*MEANINGS[word], word}) == 1 and word not in op.outputs
                if word not in FORMS or op.params[name] in FORMS[word]
            ]
            parameter = str(rng.choice([name, name.upper(), *known]))
        if parameter in meaning:
            parameter = name
        meaning[parameter] = name
        optional = name in op.optional or name in op.params
        (others if optional and rng.random() < 0.7 else required).append(parameter)
    if rng.random() < 0.5:
        others.append("unheard_of")
    return ", ".join([*required, *(f"{parameter}=None" for parameter in others)]), meaning


def questions() -> Iterator[tuple[str, Direction]]:
    for name, op in registry.ops().items():
        for direction in op.directions:
            yield name, direction


@pytest.mark.parametrize(("name", "direction"), list(questions()))
def test_each_argument_goes_to_the_parameter_that_means_it(name: str, direction: Direction) -> None:
    op = registry.get(name)
    facts = facts_of(op, "kernel")
    rng = np.random.default_rng(seed_of(1))
    formed = {name for word in FORMS for name in (word, *MEANINGS.get(word, ()))}
    settings = {n: value if n in formed else object() for n, value in op.params.items()}
    for _ in range(10 * HUNT):
        signature, meaning = drawn(rng, op, direction)
        namespace: dict[str, Any] = {}
        exec(f"def kernel({signature}): return dict(locals())", namespace)
        given = [n for n in op.takes(direction) if n not in op.optional or rng.random() < 0.5]
        arrays = {name: np.zeros((2, 3, 4)) for name in given}
        received = kernel_adapter.call(namespace["kernel"], facts, direction, arrays, settings)
        assert received.pop("unheard_of", None) is None
        for parameter, value in received.items():
            right = {**settings, **arrays}.get(meaning[parameter])
            if forms := FORMS.get(parameter.lower()):
                right = forms.get(right, right)
            assert value is right, f"{parameter} of ({signature}) for {meaning[parameter]}"


def test_the_names_of_the_table_are_those_of_some_op() -> None:
    names = {name for op in registry.ops().values() for name in (*op.params, *op.takes("forward"))}
    assert SYNONYMS.keys() - names <= {"y", "dy"}
    assert all(word == word.lower() for word in MEANINGS)
