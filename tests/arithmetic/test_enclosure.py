"""What an Enclosure says of its interval holds for every point in it."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from fallback_runs import both
from hypothesis import example, given
from hypothesis import strategies as st

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure, Relative
from refkernels.arithmetic.exact import from_fractions
from refkernels.metrology import summarise

INSIDE = 1 - Fraction(1, 2**3000)  # an interval is open: how near its ends a point may be
FORMATS = [formats.BINARY16, formats.BFLOAT16, formats.TF32, formats.BINARY32, formats.BINARY64]


def nearest(z: Fraction, format: formats.Format) -> float:
    """The correctly rounded value, through an exact ball of z (proven by test_exact)."""
    unit = Fraction(2) ** (max(floor_log2(z), format.emin) - format.p + 1) if z else Fraction(1)
    whole = round(z / unit) * unit
    if abs(whole) >= Fraction(2) ** (format.emax + 1):
        return math.inf if z > 0 else -math.inf
    return float(whole)


def floor_log2(z: Fraction) -> int:
    guess = abs(z).numerator.bit_length() - z.denominator.bit_length()
    return guess - (abs(z) < Fraction(2) ** guess)


@st.composite
def enclosures(draw: st.DrawFn) -> tuple[Enclosure, formats.Format, Fraction]:
    """One element near a boundary of the format, and a point of its interval."""
    format = draw(st.sampled_from(FORMATS))
    exponent = draw(st.integers(format.emin - format.p - 3, format.emax + 2))
    steps = draw(
        st.one_of(
            st.integers(2**format.p, 2 ** (format.p + 1)),
            st.sampled_from([2**format.p, 2 ** (format.p + 1) - 1, 2**format.p + 1]),
        )
    )
    power = exponent - format.p
    hi = float(steps)  # in half units: numbers and midpoints alike
    lo = draw(st.sampled_from([0.0, 0.5, -0.5, 0.25, -(2.0**-30)])) * math.ulp(hi)
    lo = lo if hi + lo == hi else 0.0
    radius = draw(
        st.one_of(
            st.just(0.0),
            st.floats(0.0, 4.0),
            st.floats(0.0, 1e-9),
            st.sampled_from([0.5, 1.0, 2.0**-60, abs(lo), hi, 2 * hi]),
        )
    )
    sign = draw(st.sampled_from([1.0, -1.0]))
    where = Fraction(draw(st.sampled_from([-1.0, 1.0, 0.0]) | st.floats(-1, 1))) * INSIDE
    middle = (Fraction(hi) + Fraction(lo)) * int(sign)
    point = (middle + where * Fraction(radius)) * Fraction(2) ** power
    enclosure = Enclosure(np.array([sign * hi]), np.array([sign * lo]), np.array([radius]), power)
    return enclosure, format, point


@given(enclosures())
def test_a_certified_rounding_is_that_of_every_point(
    case: tuple[Enclosure, formats.Format, Fraction],
) -> None:
    enclosure, format, point = case
    assert enclosure.contains((0,), point)
    value, certified = enclosure.round(format)
    assert certified[0] or enclosure.radius[0] > 0.0
    if certified[0]:
        assert float(value[0]) == nearest(point, format)
        if point != 0:
            assert np.signbit(value[0]) == (point < 0)


@given(enclosures())
def test_what_is_clear_is_certified(case: tuple[Enclosure, formats.Format, Fraction]) -> None:
    """Both ends on the same side of every boundary, with a little room: certified."""
    enclosure, format, _ = case
    lower, upper = enclosure.lower_upper((0,))
    room = abs(upper - lower) * Fraction(1, 2**40) + abs(lower) * Fraction(1, 2**100)
    low, high = lower - room, upper + room
    if low * high > 0 and nearest(low, format) == nearest(high, format):
        assert enclosure.round(format)[1][0]


def smallest_ulp(nearest_zero: Fraction, format: formats.Format) -> Fraction:
    """Of an interval whose end towards zero this is; not positive where it reaches zero."""
    floor = format.emin if nearest_zero <= 0 else max(floor_log2(nearest_zero), format.emin)
    return Fraction(2) ** (floor - format.p + 1)


@given(enclosures())
@example(
    (
        Enclosure(np.array([2048.0]), 0.0, np.array([2048.0 - 2.0**-2])),
        formats.BINARY16,
        Fraction(2048),
    )
)
def test_uncertainty_is_the_radius_in_the_smallest_ulp(
    case: tuple[Enclosure, formats.Format, Fraction],
) -> None:
    """The end towards zero is rounded outwards: by at most 2^-104 of hi and 2^-51 of the radius."""
    enclosure, format, _ = case
    power = Fraction(2) ** int(enclosure.scale[0])
    radius = Fraction(float(enclosure.radius[0])) * power
    hi, lo = Fraction(float(enclosure.hi[0])) * power, Fraction(float(enclosure.lo[0])) * power
    inner = abs(hi + lo) - radius
    room = abs(hi) / 2**104 + radius / 2**51
    uncertainty = float(enclosure.uncertainty(format)[0])
    least = radius / smallest_ulp(inner, format)
    most = radius / smallest_ulp(inner - room, format)
    underflow = Fraction(1, 2**1074)
    assert math.isinf(uncertainty) or Fraction(uncertainty) >= least - underflow
    if math.isinf(uncertainty):
        assert most >= Fraction(2) ** 1024
    else:
        assert Fraction(uncertainty) <= most + underflow


@given(st.sampled_from(FORMATS), st.integers(0, 2**53), st.integers(-40, 3), st.booleans())
def test_an_end_that_is_a_boundary_is_outside(
    format: formats.Format, steps: int, power: int, above: bool
) -> None:
    """From a number or a midpoint of the format outwards: certified, on that side of it."""
    hi = math.ldexp(float(2**format.p + steps % 2**format.p), -format.p)  # in half units
    side = math.ldexp(1.0 if above else -1.0, power - 60)
    if format.p == 53 or hi + side != hi:
        return
    enclosure = Enclosure(np.array([hi, -hi]), np.array([side, -side]), abs(side))
    value, certified = enclosure.round(format)
    beside = nearest(Fraction(hi) + Fraction(side), format)
    assert certified.all()
    assert value.tolist() == [beside, -beside]


def test_an_interval_with_zero_at_its_end_has_a_certified_sign() -> None:
    tiny, wider = 2.0**-1000, math.nextafter(2.0**-1000, 1.0)
    enclosure = Enclosure([tiny, -tiny, tiny, -tiny], 0.0, [tiny, tiny, wider, wider])
    values, certified = enclosure.round("float32")
    assert certified.tolist() == [True, True, False, False]
    assert np.signbit(values).tolist() == [False, True, False, True]
    assert enclosure.exact_zero.tolist() == [False] * 4
    assert not enclosure.contains(0, 0)


def test_a_value_beyond_every_scale_overflows_every_format() -> None:
    enclosure = Enclosure([np.inf, -np.inf], 0.0, np.inf)
    for format in FORMATS:
        values, certified = enclosure.round(format)
        assert certified.all()
        assert np.asarray(values, float).tolist() == [math.inf, -math.inf]
        assert (enclosure.uncertainty(format) == 0.0).all()


def test_special_values_pass_through() -> None:
    enclosure = Enclosure(np.array([np.nan, np.inf, -np.inf, -0.0]))
    value, certified = enclosure.round("float16")
    np.testing.assert_array_equal(value, np.array([np.nan, np.inf, -np.inf, 0.0], np.float16))
    assert np.signbit(value[3])
    assert certified.all()
    assert enclosure.exact_zero.tolist() == [False, False, False, True]
    assert (enclosure.uncertainty("float64") == 0).all()


def test_an_unknown_value_is_never_certified() -> None:
    enclosure = Enclosure(np.array([1.0, 0.0]), 0.0, np.array([np.inf, np.inf]))
    for format in FORMATS:
        assert not enclosure.round(format)[1].any()
        assert np.isinf(enclosure.uncertainty(format)).all()


NO_NUMBERS = [("lo", np.nan), ("lo", np.inf), ("lo", -np.inf), ("radius", np.nan)]
NO_NUMBERS += [("radius", -np.inf), ("scale", np.nan), ("scale", np.inf)]


@pytest.mark.parametrize(("part", "value"), NO_NUMBERS, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7, 3), (5000,)], ids=str)
def test_an_invalid_part_is_refused_at_any_element(
    part: str, value: float, shape: tuple[int, ...]
) -> None:
    places = np.unique(np.linspace(0, math.prod(shape) - 1, 5).astype(int))
    for place in places:
        array = np.zeros(shape)
        array.flat[place] = value
        for values in (array, value):
            with pytest.raises(ValueError, match=f"An Enclosure's {part}"):
                Enclosure(np.ones(shape), **{part: values})
    assert places.size


def test_a_radius_may_be_infinite() -> None:
    assert Enclosure(np.ones(3), radius=[0.0, np.inf, 1.0]).radius.tolist() == [0.0, np.inf, 1.0]


@given(st.integers(0, 2**32 - 1))
def test_an_array_of_any_format_is_the_value_rounded_once(seed: int) -> None:
    """hi alone, rounded again, would go astray where lo or the tail of hi breaks a tie."""
    rng = np.random.default_rng(seed)
    hi = (1.0 + rng.integers(0, 2**11, 40) * 2.0**-11) * np.ldexp(1.0, rng.integers(-20, 20, 40))
    hi = hi * (1.0 + np.ldexp(rng.choice([-1.0, 0.0, 1.0], 40), rng.integers(-52, -24, 40)))
    lo = np.ldexp(hi, -60) * rng.choice([-1.0, 0.0, 1.0], 40)
    enclosure = Enclosure(hi, lo)
    for format in (formats.BFLOAT16, formats.BINARY16, formats.BINARY32, formats.BINARY64):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(
                np.asarray(enclosure, format.dtype), enclosure.round(format)[0]
            )


def test_a_shape_that_does_not_broadcast_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        Enclosure(np.ones(2), np.zeros(3))


LOOKING = (
    "shape", "ndim", "size", "iscomplexobj", "isrealobj", "allclose", "isclose", "array_equal",
)  # fmt: skip


def test_no_function_of_numpy_loses_the_radius() -> None:
    """Every function and ufunc of NumPy's that dispatches, given Enclosures in several ways."""
    enclosure, tried = Enclosure(np.array([1.0, 2.0]), 0.0, 0.25), 0
    for name, function in sorted(vars(np).items()):
        dispatched = isinstance(function, np.ufunc) or hasattr(function, "_implementation")
        if not dispatched or name.startswith("save"):  # to a file, which comes first
            continue
        for arguments in (
            (enclosure,),
            (enclosure, enclosure),
            (enclosure, 1),
            (enclosure, [0, 1]),
        ):
            tried += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    answer = function(*arguments)
                except (TypeError, np.exceptions.AxisError):  # np.size knows one axis
                    continue
            assert name in LOOKING, (name, arguments, answer)
    assert tried > 1000
    for name in ("add", "dot", "append"):
        with pytest.raises(TypeError, match="does not know the radius"):
            getattr(np, name)(np.ones(2), enclosure)
    assert (np.shape(enclosure), np.ndim(enclosure), np.size(enclosure)) == ((2,), 1, 2)
    for lost in (np.concatenate, np.stack, np.mean, np.sum, np.sin):
        argument = [enclosure, enclosure] if lost in (np.concatenate, np.stack) else enclosure
        with pytest.raises(TypeError, match=f"np.{lost.__name__} does not know the radius"):
            lost(argument)
    with pytest.raises(TypeError, match="An operator does not know the radius"):
        _ = enclosure + 1


@pytest.mark.parametrize("scale", [2**31, -(2**31), 2**40, -(2**62)])
def test_a_scale_beyond_the_kernels_exponents_is_refused(scale: int) -> None:
    with pytest.raises(ValueError, match="scale must be within"):
        Enclosure(np.ones(2), 0.0, 0.5, np.array([0, scale]))


@pytest.mark.parametrize("format", FORMATS)
def test_the_widest_scales_round_beyond_every_format(format: str) -> None:
    most = 2**31 - 2**12
    enclosure = Enclosure(np.array([1.0, -1.0]), 0.0, 0.5, np.array([most, -most]))
    values, certain = enclosure.round(format)
    assert certain.all()
    assert values.astype(float).tolist() == [np.inf, 0.0]
    assert np.signbit(values.astype(float)).tolist() == [False, True]


def test_it_behaves_like_an_array() -> None:
    enclosure = Enclosure(np.arange(6.0).reshape(2, 3), 0.0, 0.25)
    assert enclosure.shape == (2, 3)
    assert (enclosure.size, enclosure.ndim, len(enclosure)) == (6, 2, 2)
    np.testing.assert_array_equal(enclosure, np.arange(6.0).reshape(2, 3))
    assert np.asarray(enclosure, dtype=np.float32).dtype == np.float32
    assert enclosure[1, 2].shape == ()
    assert enclosure[:, 1:].shape == (2, 2)
    assert enclosure.reshape(3, 2).shape == enclosure.reshape((3, 2)).shape == (3, 2)
    replaced = enclosure.replace(np.array([0, 5]), Enclosure(np.array([7.0, 8.0]), 0.0, 0.5))
    assert np.asarray(replaced).ravel().tolist() == [7, 1, 2, 3, 4, 8]
    assert replaced.radius.ravel().tolist() == [0.5, 0.25, 0.25, 0.25, 0.25, 0.5]
    assert np.asarray(enclosure)[0, 0] == 0.0
    assert "shape=(2, 3)" in repr(enclosure)


def test_copies_do_not_alias() -> None:
    source = np.ones(3)
    copy = np.array(Enclosure(source))
    copy[0] = 5
    assert source[0] == 1


def test_a_scaled_enclosure_becomes_an_array_by_rounding() -> None:
    enclosure = from_fractions([Fraction(2) ** 2000, Fraction(3) * Fraction(2) ** -1075], (2,))
    assert np.asarray(enclosure).tolist() == [math.inf, 2 * 5e-324]


@pytest.mark.parametrize("power", [-120, -400, -1000])
@pytest.mark.parametrize("sign", [1, -1])
def test_beside_a_float64_midpoint_the_interval_ends_there(power: int, sign: int) -> None:
    """1 + 2^-53 ± 2^power: hi and lo have no bits for the last term, but the end is open."""
    above = Fraction(1) + Fraction(1, 2**53) + Fraction(2) ** power
    below = Fraction(1) + Fraction(1, 2**53) - Fraction(2) ** power
    enclosure = from_fractions([sign * above, sign * below], (2,))
    value, certified = enclosure.round("float64")
    assert value.tolist() == [sign * (1 + 2.0**-52), sign * 1.0]
    assert certified.all()
    assert enclosure.round("float32")[1].all()
    assert enclosure.contains(0, sign * above)
    assert enclosure.contains(1, sign * below)


@pytest.mark.parametrize("format", ["float16", "bfloat16", "tf32", "float32"])
@pytest.mark.parametrize("power", [-60, -310, -700, -1100, -1900])
def test_beside_a_narrower_midpoint_lo_decides(format: str, power: int) -> None:
    target = formats.get(format)
    middle = Fraction(1) + Fraction(1, 2**target.p)
    points = [middle + Fraction(2) ** power, middle - Fraction(2) ** power, middle]
    enclosure = from_fractions(points, (3,))
    value, certified = enclosure.round(target)
    assert value.tolist() == [1 + 2.0 ** (1 - target.p), 1.0, 1.0]
    assert certified.all()
    for index, point in enumerate(points):
        assert enclosure.contains(index, point)


def test_replace_takes_effect_whatever_the_memory_order() -> None:
    turned = Enclosure(np.arange(6.0).reshape(2, 3).T, radius=np.ones((2, 3)).T)
    replaced = turned.replace(np.array([1, 4]), Enclosure(np.array([90.0, 91.0]), radius=0.5))
    assert replaced.hi.tolist() == [[0.0, 90.0], [1.0, 4.0], [91.0, 5.0]]
    assert replaced.radius.tolist() == [[1.0, 0.5], [1.0, 1.0], [0.5, 1.0]]


def test_a_relative_radius_is_an_array_when_it_is_asked_for() -> None:
    values = np.array([[1.0, -3.0, 0.0], [np.inf, np.nan, 2.0**300]])
    relative = Enclosure(values, radius=Relative(2.0**-40))
    widths = np.where(np.isfinite(values), np.abs(values) * 2.0**-40, 0.0)
    assert np.array_equal(relative.radius, widths)
    for same, part in (
        (relative.reshape(-1), ...),
        (relative[0], 0),
        (relative[:, 1:], np.s_[:, 1:]),
    ):
        assert np.array_equal(same.radius, widths[part].reshape(same.shape))
    fresh = Enclosure(values, radius=Relative(2.0**-40))
    assert np.array_equal(
        fresh.undecided("float32"), Enclosure(values, radius=widths).undecided("float32")
    )
    assert np.array_equal(fresh.replace(np.array([1]), Enclosure([7.0])).hi[0], [1.0, 7.0, 0.0])
    with pytest.raises(ValueError, match="radius must be a number"):
        Enclosure(values, radius=Relative(-1.0))


def test_one_number_in_many_places_is_read_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view of one number has more elements than the copies of a constant that kernels read."""

    def judged() -> None:
        value = np.broadcast_to(1.1, (64, 50))
        enclosure = Enclosure(value, radius=Relative(2.0**-40))
        rounded, certified = enclosure.round("float32")
        assert np.all(rounded == np.float32(1.1))
        assert certified.all()
        assert np.unique(enclosure.radius).size == 1
        assert summarise(rounded, enclosure).counts["not_correctly_rounded"] == 0

    both(monkeypatch, judged)
