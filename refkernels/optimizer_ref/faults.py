"""Other definitions of the optimizers, and wrong ones, from present and past frameworks.

Each changes one keyword of a formula: its step, decay, correction or trust ratio. A kernel whose
state has another meaning (lr inside the momentum) gets its own kind of state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from refkernels.ops import Fault
from refkernels.ops.formula import Formula
from refkernels.optimizer_ref import formulas
from refkernels.optimizer_ref.formulas import coupled, decay_before, trust


def _without(formula: Formula, **absent: Any) -> Formula:
    """The formula with fixed params, whatever its arguments."""
    return lambda xp, **arguments: formula(xp, **{**arguments, **absent})


def _decoupled(formula: Formula) -> Formula:
    """Keras's decay: the formula's step from w - wd w lr, with a gradient that has no decay."""

    def step(xp: Any, param: Any, weight_decay: Any, **arguments: Any) -> Any:
        if weight_decay is not None:
            param = param - param * weight_decay * arguments["lr"]
        return formula(xp, param=param, weight_decay=None, **arguments)

    return step


def _decayed_first(formula: Formula, **details: Any) -> Fault:
    return Fault("decay_decoupled", _decoupled(formula), details=details)


def _in_float32(formula: Formula, names: str, kind: str = "betas") -> Formula:
    """The formula with these hyper-parameters in float32, and if lr is one of them also everything
    that is computed from them alone; `kind` as in `refkernels.optimizer_ref`."""
    listed = names.split()

    def rounded(xp: Any, float32: dict[str, dict[str, float]], **arguments: Any) -> Any:
        rounded_params = {
            name: xp.number(value)
            for name, value in float32[kind].items()
            if arguments.get(name) is not None
            if name in listed
        }
        if "lr" in listed:
            rounded_params |= {
                n: xp.number(x) for n, x in float32[kind].items() if n not in arguments
            }
        return formula(xp, **{**arguments, **rounded_params})

    return rounded


def _narrow(formula: Formula, names: str) -> Fault:
    named = {"names": names.replace(" ", ", ")}
    return Fault("float32_hyperparameters", _in_float32(formula, names), details=named)


def _too(names: str, fault: Fault, kind: str = "betas") -> Fault:
    """A fault in a kernel that also holds hyper-parameters in float32, as in most frameworks."""
    assert fault.forward is not None
    named = {"float32_hyperparameters": names.replace(" ", ", ")}
    details = {**(fault.details or {}), **named}
    return replace(fault, forward=_in_float32(fault.forward, names, kind), details=details)


def _both(names: str, fault: Fault, kind: str = "betas") -> tuple[Fault, Fault]:
    """A fault, and the same in such a kernel."""
    return fault, _too(names, fault, kind)


def _with(fault: Fault, cause: str) -> Fault:
    """A fault whose formula also has the difference of another cause."""
    return replace(fault, details={**(fault.details or {}), "with": cause})


def _of_param(cause: str, formula: Formula) -> Fault:
    """Another step from the same new state."""
    return Fault(cause, formula, outputs=("param",))


# --- adam and its kin --------------------------------------------------------------------------


def _hat(xp: Any, m: Any, v: Any, lr: Any, c1: Any, root: Any, eps: Any, **_: Any) -> Any:
    return lr * root / c1 * (m / (xp.sqrt(v) + eps))


def _inside(xp: Any, m: Any, v: Any, lr: Any, c1: Any, root: Any, eps: Any, **_: Any) -> Any:
    return lr / c1 * m / xp.sqrt(v / xp.square(root) + eps)


def _inside_hat(xp: Any, m: Any, v: Any, lr: Any, c1: Any, root: Any, eps: Any, **_: Any) -> Any:
    return lr * root / c1 * (m / xp.sqrt(v + eps))


def _after(xp: Any, param: Any, taken: Any, lr: Any, wd: Any, **_: Any) -> Any:
    moved = param - taken
    return moved - lr * wd * moved


def _decay_corrected(
    xp: Any, param: Any, taken: Any, lr: Any, wd: Any, c1: Any, root: Any, **_: Any
) -> Any:
    return param - taken - lr * root / c1 * wd * param


def _no_correction(xp: Any, *_: Any) -> Any:
    return xp.number(1), xp.number(1)


def _first_alone(xp: Any, beta1: Any, beta2: Any, step: int) -> Any:
    return formulas.corrections(xp, beta1, beta2, step)[0], xp.number(1)


def _second_alone(xp: Any, beta1: Any, beta2: Any, step: int) -> Any:
    return xp.number(1), formulas.corrections(xp, beta1, beta2, step)[1]


def _one_later(xp: Any, beta1: Any, beta2: Any, step: int) -> Any:
    return formulas.corrections(xp, beta1, beta2, step + 1)


_NAMES = "lr beta1 beta2 eps weight_decay"


def _of_moments(
    formula: Callable[..., Any], hat: Any, inside: Any, inside_hat: Any, name: str
) -> tuple[Fault, ...]:
    rescaled = _of_param("eps_hat", partial(formula, **{name: hat}))
    uncorrected = _of_param("no_bias_correction", partial(formula, corrected=_no_correction))
    return (
        _narrow(formula, _NAMES),
        *_both(_NAMES, rescaled, "powers"),
        *_both(_NAMES, uncorrected),
        _of_param("second_moment_uncorrected", partial(formula, corrected=_first_alone)),
        _of_param("first_moment_uncorrected", partial(formula, corrected=_second_alone)),
        _of_param("eps_inside_sqrt", partial(formula, **{name: inside})),
        _with(_of_param("eps_inside_sqrt", partial(formula, **{name: inside_hat})), "eps_hat"),
        _of_param("step_off_by_one", partial(formula, corrected=_one_later)),
        _too(_NAMES, _of_param("step_off_by_one", formula), "late"),
    )


_of_adam = partial(_of_moments, hat=_hat, inside=_inside, inside_hat=_inside_hat, name="update")


def _lazy(formula: Formula) -> Formula:
    """Rows without a gradient stay unchanged: sparse gradients do not hold such rows. Without such
    rows this is the definition, and another cause must be named."""

    def moved(xp: Any, param: Any, m: Any, v: Any, vmax: Any = None, **arguments: Any) -> Any:
        untouched, new = _with_rows(formula, xp, param=param, m=m, v=v, vmax=vmax, **arguments)
        return _joined(xp, untouched, (param, m, v, vmax), new)

    return moved


def _apart(formula: Formula, of_untouched: Formula) -> Formula:
    """Another formula for the rows without a gradient."""

    def moved(xp: Any, **arguments: Any) -> Any:
        untouched, new = _with_rows(formula, xp, **arguments)
        return _joined(xp, untouched, _with_rows(of_untouched, xp, **arguments)[1], new)

    return moved


def _with_rows(
    formula: Formula, xp: Any, untouched: Any, sparse: bool, **arguments: Any
) -> tuple[Any, Any]:
    """The untouched elements, and the formula's step; the definition's step where there are no such
    elements."""
    return untouched, (formula if sparse else formulas.adam)(xp, **arguments)


def _joined(xp: Any, untouched: Any, inside: Any, outside: Any) -> tuple[Any, ...]:
    pairs = zip(inside, outside, strict=True)
    return tuple(b if b is None else xp.where(untouched, a, b) for a, b in pairs)


def _powers(formula: Formula) -> Iterator[Fault]:
    for kind in ("powers", "rounded"):
        yield _too(_NAMES, _of_param("float32_powers", formula), kind)


_late = partial(_in_float32, names=_NAMES, kind="late")  # Paddle's sparse Adam on a CPU
_LATE = {"with": "step_off_by_one", "float32_hyperparameters": _NAMES.replace(" ", ", ")}
_RESCALED = partial(formulas.adam, update=_hat)
_UNDECAYED = _without(partial(formulas.adamw, corrected=_no_correction), weight_decay=None)
_SPARSE = (
    Fault("lazy_rows", _lazy(formulas.adam)),
    Fault("lazy_rows", _lazy(_RESCALED), details={"with": "eps_hat"}),
    Fault("lazy_rows", _lazy(_late(formulas.adam)), details=_LATE),
    Fault("eps_hat_in_untouched_rows", _apart(formulas.adam, _RESCALED)),
    Fault(
        "eps_hat_in_untouched_rows", _apart(_late(formulas.adam), _late(_RESCALED)), details=_LATE
    ),
)
ADAM = (
    *_of_adam(formulas.adam),
    *_powers(formulas.adam),
    _too(
        _NAMES,
        _with(Fault("decay_ignored", _without(_RESCALED, weight_decay=None)), "eps_hat"),
        "powers",
    ),
    *_both(_NAMES, Fault("decay_decoupled", partial(formulas.adam, decay=decay_before)), "powers"),
    _decayed_first(partial(formulas.adam, update=_hat), **{"with": "eps_hat"}),
    *_SPARSE,
)
ADAMW = (
    *_of_adam(formulas.adamw),
    *_powers(formulas.adamw),
    _too(_NAMES, _with(_of_param("decay_ignored", _UNDECAYED), "no_bias_correction")),
    Fault("decay_coupled", partial(formulas.adam)),
    _of_param("decay_after_step", partial(formulas.adam, decay=_after)),
    _of_param("decay_corrected", partial(formulas.adam, decay=_decay_corrected)),
)


# --- lamb --------------------------------------------------------------------------------------


def _hat_direction(xp: Any, m: Any, v: Any, c1: Any, root: Any, eps: Any, **_: Any) -> Any:
    return root / c1 * (m / (xp.sqrt(v) + eps))


def _inside_direction(xp: Any, m: Any, v: Any, c1: Any, root: Any, eps: Any, **_: Any) -> Any:
    return m / c1 / xp.sqrt(v / xp.square(root) + eps)


def _inside_hat_direction(xp: Any, m: Any, v: Any, c1: Any, root: Any, eps: Any, **_: Any) -> Any:
    return root / c1 * (m / xp.sqrt(v + eps))


def _coupled_decay(
    xp: Any, param: Any, grad: Any, weight_decay: Any = None, **arguments: Any
) -> Any:
    """Decay in the gradient, and the update without it, as OneFlow's adam_w_mode=False."""
    g = coupled(grad, param, weight_decay)
    return formulas.lamb(xp, param=param, grad=g, weight_decay=None, **arguments)


def _clamped(low: str, high: str) -> Fault:
    """The trust ratio, clamped to [low, high]."""

    def ratio(xp: Any, param: Any, r: Any, u: Any) -> Any:
        return xp.clip(trust(xp, xp.norm(param), xp.norm(u)), xp.number(float(low)), int(high))

    ends = {"low": low, "high": high}
    return replace(_ratio("trust_ratio_clamped", ratio), details=ends)


def _norm_clamped(xp: Any, param: Any, r: Any, u: Any) -> Any:
    return trust(xp, xp.minimum(xp.norm(param), xp.number(10)), xp.norm(u))


def _needs_decay(xp: Any, weight_decay: Any = None, **arguments: Any) -> Any:
    ratio = None if weight_decay is not None else lambda xp, *_: xp.number(1)
    return formulas.lamb(xp, weight_decay=weight_decay, **arguments, ratio=ratio)


def _ratio(cause: str, ratio: Callable[..., Any]) -> Fault:
    return _of_param(cause, partial(formulas.lamb, ratio=ratio))


def _bare_ratio(xp: Any, param: Any, r: Any, u: Any) -> Any:
    return trust(xp, xp.norm(param), xp.norm(r))


def _bare(**others: Any) -> Fault:
    bare = partial(formulas.lamb, ratio=_bare_ratio, **others)
    return _of_param("norm_without_decay", bare)


LAMB = (
    *_of_moments(
        formulas.lamb, _hat_direction, _inside_direction, _inside_hat_direction, "direction"
    ),
    Fault("decay_decoupled", _decoupled(formulas.lamb), outputs=("param",)),
    *_both(_NAMES, _bare()),
    _with(_bare(direction=_inside_direction), "eps_inside_sqrt"),  # OneFlow's old one
    _with(_bare(corrected=_no_correction), "no_bias_correction"),
    Fault("decay_coupled", _coupled_decay),
    *_both(_NAMES, _of_param("trust_ratio_needs_decay", _needs_decay), "powers"),
    _ratio("no_trust_ratio", lambda xp, p, r, u: xp.number(1)),
    _ratio("weight_norm_clamped", _norm_clamped),
    _clamped("0.01", "10"),  # DeepSpeed's
)


# --- the others --------------------------------------------------------------------------------


def _momentum(formula: str) -> Formula:
    """Another b' of g', and the step from it."""

    def step(xp: Any, param: Any, grad: Any, buf: Any = None, **arguments: Any) -> Any:
        g = coupled(grad, param, arguments["weight_decay"])
        if buf is None:
            return formulas.sgd(xp, param, grad, **arguments)
        lr, mu = arguments["lr"], arguments["momentum"]
        if formula == "lr_in_momentum":
            moved = mu * buf - lr * g
            return param + (mu * moved - lr * g if arguments["nesterov"] else moved), moved
        if formula == "lr_in_momentum_subtracted":
            moved = mu * buf + lr * g
            return param - (mu * moved + lr * g if arguments["nesterov"] else moved), moved
        new = {
            "dampened_first_step": lambda: mu * buf + (1 - arguments["dampening"]) * g,
            "averaged_momentum": lambda: mu * buf + (1 - mu) * g,
        }[formula]()
        return param - lr * (g + mu * new if arguments["nesterov"] else new), new

    return step


def _decayed_beside(xp: Any, param: Any, weight_decay: Any, **arguments: Any) -> Any:
    moved = formulas.sgd(xp, param, weight_decay=None, **arguments)
    if weight_decay is None:
        return moved
    return moved[0] - arguments["lr"] * weight_decay * param, *moved[1:]


MOMENTUM = (
    Fault("averaged_momentum", _momentum("averaged_momentum")),
    Fault("lr_in_momentum", _momentum("lr_in_momentum")),
    Fault("lr_in_momentum", _momentum("lr_in_momentum_subtracted")),
    Fault("nesterov_ignored", _without(formulas.sgd, nesterov=False)),
    Fault("nesterov_unasked", _without(formulas.sgd, nesterov=True)),
    Fault("decay_decoupled", _decayed_beside),
    _decayed_first(formulas.sgd),
    _narrow(formulas.sgd, "lr momentum dampening weight_decay"),
    _narrow(formulas.sgd, "momentum weight_decay"),
)
SGD = (*MOMENTUM, Fault("dampened_first_step", _momentum("dampened_first_step")))


def _eps_inside(xp: Any, square: Any, eps: Any, **_: Any) -> Any:
    return xp.sqrt(square + eps)


def _inside_in_the_tail(xp: Any, square: Any, eps: Any, tail: Any, **_: Any) -> Any:
    return xp.where(tail, xp.sqrt(square + eps), xp.sqrt(square) + eps)


def _of_squares(formula: Callable[..., Any], names: str) -> tuple[Fault, ...]:
    inside = _of_step("eps_inside_sqrt", partial(formula, root=_eps_inside))
    return (
        _narrow(formula, names),
        _narrow(formula, names.removeprefix("lr ")),
        *_both(names, inside),
    )


def _of_step(cause: str, formula: Formula) -> Fault:
    """Another step from the same new sums of squares."""
    return Fault(cause, formula, outputs=("param", "buf"))


def _lr_in_momentum(xp: Any, **arguments: Any) -> Any:
    """buf' = mu buf + lr g / d, as in TensorFlow."""
    if arguments.get("buf") is None:
        return formulas.rmsprop(xp, **{**arguments, "root": formulas.outside})
    alone = {"lr": xp.number(1), "momentum": xp.number(0)}
    _moved, accum, mean, step = formulas.rmsprop(xp, **{**arguments, **alone})
    buf = arguments["momentum"] * arguments["buf"] + arguments["lr"] * step
    return arguments["param"] - buf, accum, mean, buf


def _small_eps_inside(xp: Any, **arguments: Any) -> Any:
    """MindSpore's Adagrad takes no eps: it uses this one."""
    return formulas.adagrad(xp, **{**arguments, "eps": xp.number(1e-8), "root": _eps_inside})


_RMSPROP = "lr rho eps momentum weight_decay"
_ADAGRAD = "lr lr_decay eps weight_decay"
_TAIL = _of_step("eps_inside_in_tail", partial(formulas.rmsprop, root=_inside_in_the_tail))
_RATE_FIRST = _of_step("lr_in_momentum", _lr_in_momentum)
_TENSORFLOW = _of_step("lr_in_momentum", partial(_lr_in_momentum, root=_eps_inside))
ADAGRAD = (
    *_of_squares(formulas.adagrad, _ADAGRAD),
    replace(_of_step("eps_inside_sqrt", _small_eps_inside), details={"eps": 1e-8}),
    _decayed_first(formulas.adagrad),
    _decayed_first(partial(formulas.adagrad, root=_eps_inside), **{"with": "eps_inside_sqrt"}),
)
RMSPROP = (
    *_of_squares(formulas.rmsprop, _RMSPROP),
    _decayed_first(formulas.rmsprop),
    _decayed_first(partial(formulas.rmsprop, root=_eps_inside), **{"with": "eps_inside_sqrt"}),
    *_both(_RMSPROP, _TAIL),
    *_both(_RMSPROP, _RATE_FIRST),
    *_both(_RMSPROP, _TENSORFLOW),
)


def _exchanged(xp: Any, beta1: Any, beta2: Any, **arguments: Any) -> Any:
    return formulas.lion(xp, beta1=beta2, beta2=beta1, **arguments)


def _lion_coupled(xp: Any, grad: Any, weight_decay: Any, **arguments: Any) -> Any:
    g = coupled(grad, arguments["param"], weight_decay)
    return formulas.lion(xp, grad=g, weight_decay=None, **arguments)


LION = (
    Fault("betas_exchanged", _exchanged),
    Fault("decay_coupled", _lion_coupled),
    _narrow(formulas.lion, "lr beta1 beta2 weight_decay"),
)
