"""The assertions: `assert_kernel`, `assert_rounding` and `assert_ulp`."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from refkernels import question
from refkernels.arguments import as_flag
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, spread, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.metrology import outputs as kernel_outputs
from refkernels.metrology.judgement import anywhere, violated
from refkernels.metrology.no_part import with_nan
from refkernels.metrology.ulp_errors import as_enclosure, ulp_error
from refkernels.op import Direction, Op
from refkernels.records.words import VERDICTS
from refkernels.testing import limits
from refkernels.testing.answer import Array, Bools, JudgedOutput, ulp_limit
from refkernels.testing.cause import FailedQuestion
from refkernels.testing.demands import Demands
from refkernels.testing.message import message
from refkernels.testing.recording import RECORDING
from refkernels.testing.tally import TALLY


@with_default_fenv
def assert_ulp(got: Any, reference: Any, max_ulp: float) -> None:
    """Assert |got - z| <= max_ulp * ulp(z) in every element, in ulp of got's format at the exact z.

    `reference`: an Enclosure, or an array that is taken as exact, of got's shape. An element fails
    only if it certainly does, whatever the enclosure's radius. At z = 0 the limit is max_ulp
    smallest subnormals; NaN and infinities must be matched; the sign of a zero is free.
    Raises AssertionError with the worst elements; ValueError for a negative or NaN max_ulp, and
    for a reference too wide to have an ulp (it reaches zero); TypeError for anything but a number.
    """
    __tracebackhide__ = True
    limit = limits.limit_of(max_ulp, "max_ulp")
    array, exact = _pair(got, reference)
    format = formats.of(array)
    error = ulp_error(array, exact, format)
    if np.isinf(error.uncertainty).any():
        raise ValueError(
            "The reference is too wide for an ULP error: some of its intervals reach zero; ask the "
            'oracle for certify=("ulp", format, uncertainty) or use assert_rounding.'
        )
    answer = JudgedOutput("got", array, exact, ulp_limit(exact, limit, format), format)
    summary = answer.summary
    at_zero = exact.exact_zero & ~(np.abs(array.astype(np.float64)) <= answer.bound)
    failing = (np.abs(error.value) - error.uncertainty > limit) | at_zero
    largest = math.inf if summary.max else 0.0
    TALLY.add("assert_ulp", summary.max / limit if limit else largest)
    if failing.any() or summary.counts["special_value_mismatches"]:
        wrong = int(failing.sum()) + summary.counts["special_value_mismatches"]
        head = f"{wrong} of {array.size} elements are more than {limit:g} ulp from the truth"
        raise AssertionError(message(head, answer, "max_ulp"))


@with_default_fenv
def assert_rounding(got: Any, reference: Any, bound: Any) -> None:
    """Assert |got - z| <= bound in every element.

    `reference`: an Enclosure, or an array that is taken as exact; `bound` >= 0 broadcasts to it.
    An element fails only if |got - z| - radius > bound. Where the bound is infinite (an overflow
    inside is allowed) NaN and infinities pass; elsewhere they must be matched.
    Raises AssertionError with the worst elements, ValueError for a bound that is NaN or negative,
    TypeError for a bound that is not an array of numbers.
    """
    __tracebackhide__ = True
    array, exact = _pair(got, reference)
    whole = isinstance(bound, int)  # as_float_array takes floats
    wide = as_float_array(limits.limit_of(bound, "bound") if whole else bound, "bound")
    limit = spread(to_float64(wide), array.shape, "bound")
    if np.any(~(limit >= 0.0) & np.isfinite(exact.hi)):
        raise ValueError("bound is NaN or negative where the reference is finite.")
    Demands().check(JudgedOutput("got", array, exact, limit, formats.of(array)))


@with_default_fenv
def assert_kernel(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Any,
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
    *,
    verdict: str = "rounding",
    max_ulp: float | None = None,
    max_over_plain: float | None = None,
    max_over_baseline: tuple[Any, float] | None = None,
    fail_on_avoidable: bool = False,
    allow_overflow: bool | None = None,
    dtype: Any = None,
) -> None:
    """Assert that a kernel's outputs are as accurate as the op's named forms on these inputs.

    op         a name that `refkernels.registry` knows ("layernorm", "matmul", "sin", ...)
    inputs     by name, the cotangent included when direction is "backward"
    outputs    by name; a tuple in the op's order; or only the first output. A kernel may have fewer
               outputs than the op; statistics may keep their reduced axes: (4, 1) for (4,). Or the
               kernel itself, a function that is called on `inputs` and `params` by the names of its
               parameters, as `refkernels measure` does; if they do not fit, the test is skipped
    dtype      the dtype of the first output; by default that of an input, or float32 if all inputs
               have 16 bits. The other outputs may have any dtype

    Each output is judged in its own format (`metrology.outputs`), by these demands:

    verdict            the worst that passes: "rounding", inside the op's bound in every element (an
                       elementwise op's declared limit), or "correctly_rounded"
    max_ulp            replaces the bound: every element within max_ulp ulp of the exact value (at
                       zero, max_ulp smallest subnormals), whether stricter or not. NaN and
                       infinities must still be matched
    max_over_plain     in addition, the RMS error of each output is at most this many times that of
                       the plain sequential algorithm, or of one rounding if that is larger
    max_over_baseline  (outputs, factor): in addition, the RMS error of each output that the
                       baseline has too is at most factor times the baseline's, or one rounding's
                       (a correctly rounded output passes)
    fail_on_avoidable  whether an output fails where an error is more than 8 ulp and more than 8
                       times the bound of another named form of the op; a form of a backward pass
                       that starts from what the forward pass saved is compared with its like

    allow_overflow     whether an element passes that is what a named form gives where an
                       intermediate result overflows or underflows. By default it passes with a
                       `RangeWarning` where all named forms do, and fails where one of them does not

    An element that is inside its bound, but off by more than an eighth of the larger of its exact
    value and the RMS of its output, proves neither rounding nor a fault, because on these inputs
    rounding alone may be as large: it issues an `IllConditionedWarning`.
    Unless max_ulp or max_over_plain is given, an RMS error of more than 4 times that of the plain
    algorithm (2 times in a format of 16 bits) issues an `UnusualErrorWarning`. For inputs of 16
    bits, a sum that a tensor core cuts is plain too. Elements whose exact value the oracle cannot
    enclose (a formula that divides by zero there) are not checked: they issue an
    `UncertifiedWarning`, and an output with only such elements fails.
    Raises AssertionError for an output that is wrong in value, shape or dtype, with the cause as
    far as `refkernels.explain` finds one; ValueError or TypeError for a call that makes no sense.
    """
    __tracebackhide__ = True
    if not isinstance(verdict, str) or verdict not in VERDICTS[-2:]:
        quoted = limits.quoted(verdict)
        raise ValueError(f"verdict is {quoted}: ask for 'rounding' or 'correctly_rounded'.")
    try:
        record, arrays, settings = question.read(op, inputs, params, direction)
        if callable(outputs):
            given = {name: inputs[name] for name in arrays}
            outputs = _returned(outputs, record, direction, given, settings)
        by_name = kernel_outputs.named(record, direction, outputs)
        baseline, factor = _baseline(record, direction, max_over_baseline, by_name)
        demands = Demands(
            verdict,
            None if max_ulp is None else limits.limit_of(max_ulp, "max_ulp"),
            None
            if max_over_plain is None
            else limits.limit_of(max_over_plain, "max_over_plain", "> 0"),
            factor,
            fail_on_avoidable=as_flag(fail_on_avoidable, "fail_on_avoidable"),
            allow_overflow=None
            if allow_overflow is None
            else as_flag(allow_overflow, "allow_overflow"),
        )
    except (TypeError, ValueError) as refusal:  # pytest shows the caller alone
        raise refusal.with_traceback(None) from refusal.__cause__
    limits.check_dtype(record, direction, arrays, by_name, dtype)
    arguments = (record, direction, arrays, settings)
    for answer, baseline_output in judged(*arguments, by_name, baseline, demands.max_ulp):
        demands.check(answer, baseline_output)


def _returned(
    kernel: Callable[..., Any],
    op: Op,
    direction: Direction,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
) -> Any:
    """What a kernel returns. Raises unittest.SkipTest, with the reason, if it cannot be asked."""
    from refkernels.frameworks.kernels import facts_of
    from refkernels.frameworks.remote.kernel_adapter import Unbound, call

    facts = facts_of(op, getattr(kernel, "__name__", type(kernel).__name__))
    try:
        return call(kernel, facts, direction, inputs, params)
    except Unbound as reason:
        from unittest import SkipTest  # pytest shows it as a skipped test

        raise SkipTest(f"unsupported: {reason}") from None


def judged(
    op: Op,
    direction: Direction,
    inputs: Mapping[str, Array],
    params: Mapping[str, Any],
    outputs: Mapping[str, Array],
    baseline: Mapping[str, Array],
    max_ulp: float | None = None,
) -> Iterator[tuple[JudgedOutput, Array | None]]:
    """Each output of a kernel with its truth, and the baseline's output; all are recorded first.

    Raises AssertionError for an output of the wrong shape, ValueError for one of the baseline's.
    """
    __tracebackhide__ = True
    formats_of = {name: formats.of(array) for name, array in outputs.items()}
    first_name = op.names(direction)[0]
    # The first output shows which axes are kept.
    formats_of.setdefault(first_name, next(iter(formats_of.values())))
    oracle = kernel_outputs.ask(op, direction, inputs, params, formats_of)
    got, baselines = _shaped(op, direction, oracle, outputs, baseline)
    RECORDING.add(op, direction, inputs, params, got, oracle.truths)
    for name in got:
        failed = FailedQuestion(op, direction, inputs, params, got, name, oracle)
        yield _answer(failed, oracle, max_ulp), baselines.get(name)


def _shaped(
    op: Op,
    direction: Direction,
    oracle: kernel_outputs.Asked,
    outputs: Mapping[str, Array],
    baseline: Mapping[str, Array],
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The kernel's and the baseline's outputs in the shapes of the truth."""
    __tracebackhide__ = True
    shapes = {name: exact.shape for name, exact in oracle.reference.items()}
    got = kernel_outputs.without_kept_axes(op, direction, outputs, shapes)
    for name, array in got.items():
        _check_shape(f"{op.name}'s {name}", array.shape, shapes[name])
    baselines = kernel_outputs.without_kept_axes(op, direction, baseline, shapes)
    for name, array in baselines.items():
        if array.shape != shapes[name]:
            raise ValueError(
                f"The baseline's {name} has shape {array.shape}, but {shapes[name]} is right."
            )
    return got, baselines


def _answer(
    kernel: FailedQuestion, oracle: kernel_outputs.Asked, max_ulp: float | None
) -> JudgedOutput:
    """One output of a kernel with its truth, its bound and the plain algorithm's answer."""
    op, direction, inputs, params = kernel.op, kernel.direction, kernel.inputs, kernel.params
    name, got = kernel.output, kernel.outputs[kernel.output]
    exact, format = oracle.reference[name], formats.of(got)
    got = with_nan(op, direction, name, got, exact, inputs, params)
    bound = oracle.bound[name] if max_ulp is None else ulp_limit(exact, max_ulp, format)
    limits = oracle.truths[name].range_limits() if max_ulp is None else None

    def breaks(array: Array, except_there: Bools) -> tuple[tuple[str, ...], Bools]:
        broken = violated(op, direction, name, array, exact, inputs, params, except_there)
        return tuple(invariant.statement for invariant in broken), anywhere(broken, array.shape)

    return JudgedOutput(
        name,
        got,
        exact,
        np.broadcast_to(bound, got.shape),
        format,
        op=op.name,
        product=op.sums.get(name),
        elementwise=op.elementwise,
        declared=op.limit if direction == "forward" else None,
        right=partial(oracle.right, name),
        attainable=partial(oracle.attainable, name),
        inputs=inputs,
        limits=limits,
        breaks=breaks,
        cause=kernel.cause,
        conditions=lambda: oracle.condition,
    )


def _baseline(
    op: Op, direction: Direction, demand: Any, outputs: Mapping[str, Array]
) -> tuple[dict[str, Array], float | None]:
    """The baseline's arrays for the outputs that the kernel has, and the factor."""
    if demand is None:
        return {}, None
    if not isinstance(demand, tuple | list) or len(demand) != 2:
        raise TypeError("max_over_baseline is (outputs, factor): the baseline's outputs, a number.")
    factor = limits.limit_of(demand[1], "max_over_baseline's factor", "> 0")
    baseline = kernel_outputs.named(op, direction, demand[0])
    shared = {name: array for name, array in baseline.items() if name in outputs}
    if not shared:
        raise ValueError(
            f"The baseline has {', '.join(baseline)}, and the kernel {', '.join(outputs)}: there "
            "is nothing to compare."
        )
    return shared, factor


def _pair(got: Any, reference: Any) -> tuple[Array, Enclosure]:
    __tracebackhide__ = True
    array = as_float_array(got, "got")
    exact = as_enclosure(reference)
    _check_shape("got", array.shape, exact.shape)
    return array, exact


def _check_shape(name: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    __tracebackhide__ = True
    if got != wanted:
        raise AssertionError(f"{name} has shape {got}, but {wanted} is right.")
