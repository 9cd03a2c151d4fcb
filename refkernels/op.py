"""Op and Case: the record of an op, read by all code that iterates over ops.

An `Op` names the functions of its oracle. Tests, measurement, the command line and the reports need
nothing else, so a new op takes no more than a new oracle module on the host's side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import LOW, Kind, as_array_of, as_float_array, as_operand
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.protocols import read
from refkernels.arithmetic.question import Certify
from refkernels.records.words import DIRECTIONS, DTYPES, Direction

if TYPE_CHECKING:
    from refkernels.elementwise.function import Function
    from refkernels.ops.formulas import Formulas

Arrays = Mapping[str, npt.NDArray[Any]]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Invariant:
    """A property that every answer has, however it is rounded: |cos| <= 1, rstd > 0.

    `between`: it compares elements with each other, so one element alone cannot violate it.
    """

    name: str
    statement: str
    direction: Direction
    output: str
    violated: Callable[[npt.NDArray[Any], Arrays, Mapping[str, Any]], npt.NDArray[np.bool_]]
    between: bool = False


@dataclass(frozen=True)
class Case:
    """Named, seeded inputs. `build(dtype)` always returns the same (inputs with the cotangent,
    params); `parameters` are the values for a plot's axis."""

    name: str
    op: str
    regime: str
    parameters: Mapping[str, int | float | str]
    seed: int
    build: Callable[[str], tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]]
    dtypes: tuple[str, ...] = DTYPES
    directions: tuple[Direction, ...] = DIRECTIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "build", with_default_fenv(self.build))


@dataclass(frozen=True)
class Sum:
    """An output that is a sum of products. `letters` index its last axes; `terms` maps each input,
    a factor or an addend, to its index letters, in the order in which they are shown.

        Sum("io", {"x": "ik", "weight": "ok", "bias": "o"})        y = x weight^T + bias

    Factors that the op takes row by row (`Op.row_inputs`, the cotangent) may have leading axes.
    `rows`: the letter for all leading axes together, if there are any.
    """

    letters: str
    terms: Mapping[str, str]
    rows: str = ""


class Solution(Protocol):
    """A certified answer, and what can be derived from it without running the oracle again."""

    @property
    def answer(self) -> Any:
        """The Enclosure, or a NamedTuple or mapping of them by output name."""
        ...

    def bound(self, format: Format) -> Any:
        """What `forward_bound` or `backward_bound` returns, in the same form."""
        ...

    def condition(self) -> Any:
        """What `forward_condition` or `backward_condition` returns, in the same form."""
        ...


@dataclass(frozen=True)
class Op:
    """One op: its signature, its oracle, its bound, its condition number and its cases.

    Every callable takes the inputs and params by name (backward: also the cotangent); `*_bound`
    and `*_plain` also take `format=`. Each returns one array or Enclosure if the op has one output,
    and a NamedTuple of them, by output name, if it has several.

    `define` returns the formulas of the op (`refkernels.ops`): its index letters, the inputs that
    an element depends on, and the values that tests compare the oracle with. If the op has no
    hand-written oracle, these formulas are the oracle: they are also its `formulas`.

    `solvers`, by direction, compute an answer together with what can be derived from it. They take
    the arguments of `forward` and `backward` and return a Solution. Without a solver, every part is
    computed separately. `refkernels.truth` calls them.

    A bound is proven for the op's named forms, with sums in any order. If there are several forms,
    `form_bounds(*arrays, format=)` returns the bound of each by name, sharpest first. If `limit` is
    given, `forward_bound` is that many ulp of the exact value: a library limit, or IEEE 754's half
    ulp; `limit_source` names its source.

    `kinds` lists the inputs of integers ("int"), booleans ("bool") or numbers of any format
    ("low"). They have no gradient; nor have the float inputs that `gradients` omits. `low_outputs`:
    those in any format, which the kernel chooses.

    `row_inputs`: the inputs whose first axis counts rows that the op treats independently; the
    cotangent's first axis counts them too. `row_gradients`: the gradients with such rows.

    `sums`: the outputs that are sums of products, by name, for both directions. `means`: the
    outputs that are plain means of the first input over its last axis. `factors`: the inputs that
    are multiplied in sums of products without such letters. `scatter`: the table and its indices,
    if the table's gradient is the sum of the cotangent's rows with one index. `total`: whether the
    op is the sum, or the mean, of x along its axes. `real_function`: the function of one number
    that the op computes, if the op is not a formula.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cotangent: str
    gradients: tuple[str, ...]
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    forward_bound: Callable[..., Any]
    backward_bound: Callable[..., Any]
    forward_condition: Callable[..., Any]
    backward_condition: Callable[..., Any]
    forward_plain: Callable[..., Any]
    backward_plain: Callable[..., Any]
    cases: Callable[[], list[Case]]
    solvers: Mapping[Direction, Callable[..., Solution]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    low_outputs: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    invariants: tuple[Invariant, ...] = ()
    elementwise: bool = False
    row_inputs: tuple[str, ...] = ()
    row_gradients: tuple[str, ...] = ()
    sums: Mapping[str, Sum] = field(default_factory=dict)
    factors: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    scatter: tuple[str, str] | None = None
    total: Literal["", "sum", "mean"] = ""
    limit: float | None = None
    limit_source: str = ""
    fast: Fast | None = None
    define: Callable[[], Formulas] | None = None
    formulas: Formulas | None = None
    form_bounds: Callable[..., Any] | None = None
    real_function: Function | None = None
    whole: str = "float32"

    @property
    def definition(self) -> Formulas | None:
        """The formulas of the op, None if it has none."""
        return None if self.define is None else self.define()

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Forward, and backward if the op has gradients."""
        return DIRECTIONS if self.gradients else DIRECTIONS[:1]

    @property
    def function(self) -> bool:
        """Whether the op is a function of one number, x."""
        return self.elementwise and self.inputs == ("x",)

    @property
    def function_of_two(self) -> bool:
        """Whether the op is a function of two numbers: pow, atan2, hypot."""
        two = len(self.inputs) == 2 and len(self.outputs) == 1 and not self.optional
        return self.elementwise and self.of_one_format and two

    def names(self, direction: Direction) -> tuple[str, ...]:
        """The outputs of the direction: ("y",) or ("dx", "dweight", "dbias")."""
        return self.outputs if direction == "forward" else self.gradients

    def takes(self, direction: Direction) -> tuple[str, ...]:
        """The arrays that the direction takes, the cotangent first."""
        return self.inputs if direction == "forward" else (self.cotangent, *self.inputs)

    def array(self, name: str, value: Any) -> npt.NDArray[Any]:
        """An input as an array of its kind. Raises TypeError and ValueError like
        `as_float_array`."""
        return as_array_of(self.kinds.get(name, "float"), value, name)

    def output(self, name: str, value: Any) -> npt.NDArray[Any]:
        """An output as an array of floats. Where its format is the kernel's to choose, numbers of 8
        bits, whole ones and truth values get the first format that holds them."""
        if name not in self.low_outputs:
            return as_float_array(value, name)
        array = read(value)
        if array is None or array.dtype.kind not in "iub" or isinstance(value, np.ma.MaskedArray):
            array = as_operand(value, name)
            return array.astype(np.float32) if array.dtype in LOW else array
        for format in (self.whole, "float32", "float64"):
            wide = array.astype(formats.get(format).dtype)
            if np.array_equal(wide.astype(array.dtype), array):
                break
        return wide

    def widened(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """A kernel's outputs, as floats where their format is the kernel's to choose."""
        return {
            name: self.output(name, value)
            if name in self.low_outputs and isinstance(value, np.ndarray | np.generic)
            else value
            for name, value in outputs.items()
        }

    @property
    def of_one_format(self) -> bool:
        """Whether all arrays are floats of a format that the inputs have."""
        return not (self.kinds or self.low_outputs)

    @property
    def any_format(self) -> bool:
        """Whether the format of the inputs says nothing about that of the outputs."""
        return bool(self.low_outputs) or "low" in self.kinds.values()

    @property
    def differentiated(self) -> tuple[str, ...]:
        """The inputs that get a gradient."""
        return tuple(gradient[1:] for gradient in self.gradients)

    def evaluate(
        self, direction: Direction, inputs: Arrays, params: Params, certify: Certify = "enclosure"
    ) -> dict[str, Enclosure]:
        """The certified answer, by output name."""
        return self._call(self._pick("", direction), direction, inputs, params, certify=certify)

    def ask(self, arguments: Mapping[str, Any]) -> Any:
        """The certified answer to the arguments of a public function, `locals()`: the op's arrays,
        of which an optional one may be None, its params and `certify`. With the cotangent among
        them, the gradients. Several outputs come by name, None where there is none."""
        direction: Direction = "backward" if self.cotangent in arguments else "forward"
        takes, names = self.takes(direction), self.names(direction)
        absent = {name for name in self.optional if arguments.get(name) is None}
        inputs = {name: arguments[name] for name in takes if name not in absent}
        others = {*takes, "certify"}
        params = {name: value for name, value in arguments.items() if name not in others}
        outputs = self.evaluate(direction, inputs, params, arguments["certify"])
        return outputs[names[0]] if len(names) == 1 else {name: outputs.get(name) for name in names}

    def bound(
        self, direction: Direction, inputs: Arrays, params: Params, format: Format
    ) -> dict[str, npt.NDArray[np.float64]]:
        """The error bound of the op's named forms in that format, or the limit, by output name."""
        return self._call(self._pick("_bound", direction), direction, inputs, params, format=format)

    def forms(
        self, direction: Direction, inputs: Arrays, params: Params, format: Format
    ) -> dict[str, dict[str, npt.NDArray[np.float64]]]:
        """The bound of each named form, sharpest first, by output; empty for a library function and
        for an op that does not distinguish forms. The op's bound is their maximum."""
        if self.formulas is not None:
            settings = {**self.params, **params}
            return self.formulas.form_bounds(direction, inputs, settings, format)
        if self.form_bounds is None:
            return {}
        arrays = [inputs[name] for name in self.takes(direction)]
        (output,) = self.names(direction)
        bounds = self.form_bounds(*arrays, format=format)
        return {form: {output: bound} for form, bound in bounds.items()}

    def attainable(
        self, direction: Direction, inputs: Arrays, params: Params, format: Format
    ) -> tuple[dict[str, dict[str, npt.NDArray[np.float64]]], ...]:
        """The bounds that a form can keep to (`Formulas.attainable`); none where there is no choice
        of forms."""
        definition = self.definition
        if definition is None:
            forms = self.forms(direction, inputs, params, format)
            return (forms if len(forms) > 1 else {},)
        if len(definition.of(direction).forms) < 2:
            return ()
        return definition.attainable(direction, inputs, {**self.params, **params}, format)

    def condition(
        self, direction: Direction, inputs: Arrays, params: Params
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Condition numbers, by output name."""
        return self._call(self._pick("_condition", direction), direction, inputs, params)

    def plain(
        self, direction: Direction, inputs: Arrays, params: Params, format: Format
    ) -> dict[str, npt.NDArray[Any]]:
        """The plain sequential algorithm's answer in that format, by output name."""
        return self._call(self._pick("_plain", direction), direction, inputs, params, format=format)

    def solve(
        self, direction: Direction, inputs: Arrays, params: Params, certify: Certify = "enclosure"
    ) -> Solution:
        """The certified answer, with what can be derived from it."""
        solver = self.solvers.get(direction)
        if solver is None:
            return _PartByPart(self, direction, inputs, params, certify)
        solution: Solution = solver(**self._arguments(direction, inputs, params), certify=certify)
        return solution

    def by_name(self, direction: Direction, result: Any) -> dict[str, Any]:
        """What a callable of the op returns, by output name."""
        if isinstance(result, Mapping):
            return dict(result)
        if hasattr(result, "_asdict"):
            return dict(result._asdict())
        return {self.names(direction)[0]: result}

    def _pick(self, suffix: str, direction: Direction) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self, direction + suffix)
        return function

    def _call(
        self,
        function: Callable[..., Any],
        direction: Direction,
        inputs: Arrays,
        params: Params,
        **question: Any,
    ) -> dict[str, Any]:
        result = function(**self._arguments(direction, inputs, params), **question)
        return self.by_name(direction, result)

    def _arguments(self, direction: Direction, inputs: Arrays, params: Params) -> dict[str, Any]:
        arrays = {name: inputs[name] for name in self.takes(direction) if name in inputs}
        return {**arrays, **self.params, **params}


class _PartByPart:
    """A Solution whose parts are computed one by one."""

    def __init__(
        self, op: Op, direction: Direction, inputs: Arrays, params: Params, certify: Certify
    ) -> None:
        self._op, self._question = op, (direction, inputs, params)
        self.answer = op.evaluate(*self._question, certify)

    def bound(self, format: Format) -> Any:
        return self._op.bound(*self._question, format)

    def condition(self) -> Any:
        return self._op.condition(*self._question)


def core(cases: Sequence[Case], dtype: str) -> list[Case]:
    """Cases that show most of what all cases show, in a third of the time: the first, middle and
    last of each regime in float32, the first in other formats, and every case of a published
    thread (`seed_`)."""
    regimes: dict[str, list[Case]] = {}
    for case in cases:
        regimes.setdefault(case.regime, []).append(case)
    chosen: list[Case] = []
    for regime, members in regimes.items():
        places = (0, (len(members) - 1) // 2, -1) if dtype == "float32" else (0,)
        chosen += members if regime.startswith("seed_") else (members[i] for i in places)
    return [case for case in cases if case in chosen]
