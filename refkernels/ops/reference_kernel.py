"""oracle(): a reference kernel with certified answers, from a user's own formula.

def relu_squared(xp, x):
    return xp.square(xp.maximum(x, xp.number(0)))

kernel = refkernels.oracle(relu_squared, "x[...] -> y[...]")
kernel.forward(x), kernel.backward(dy, x)               certified values and gradients
kernel.forward_bound(x, format="bfloat16")              a bound on a right kernel's error
refkernels.testing.assert_kernel(kernel.op, {"x": x}, got)
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from refkernels.arguments import as_list, as_mapping, as_names, as_text
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.question import Certify
from refkernels.op import Direction, Op
from refkernels.ops.cases import of_signature
from refkernels.ops.domains import Domain
from refkernels.ops.formula import Fault, Formula
from refkernels.ops.formula_op import formula_op
from refkernels.ops.letters import Signature
from refkernels.ops.tree import leaves, tree
from refkernels.suggestion import did_you_mean, quoted


class Oracle:
    """An op as a reference kernel. Inputs are passed in the signature's order or by name; dotted
    names form a tree of mappings. A single output is returned bare, several as a NamedTuple. All
    methods raise TypeError for dtypes, and ValueError for shapes, names and params, that do not fit
    the signature.
    """

    def __init__(self, op: Op) -> None:
        self.op = op

    def forward(self, *arrays: Any, certify: Certify = "enclosure", **named: Any) -> Any:
        """The certified outputs: Enclosures, as sharp as `certify` asks."""
        return self._read("forward", "evaluate", arrays, named, certify=certify)

    def backward(self, *arrays: Any, certify: Certify = "enclosure", **named: Any) -> Any:
        """The certified gradients, from the cotangents and then the inputs."""
        return self._read("backward", "evaluate", arrays, named, certify=certify)

    def forward_bound(self, *arrays: Any, format: Format | str, **named: Any) -> Any:
        """The bound on the error of a kernel that computes one of the forms in the format (16 bits
        in binary32), with sums in any order."""
        return self._read("forward", "bound", arrays, named, format=format)

    def backward_bound(self, *arrays: Any, format: Format | str, **named: Any) -> Any:
        """The bound on the error of such a kernel's gradients."""
        return self._read("backward", "bound", arrays, named, format=format)

    def forward_condition(self, *arrays: Any, **named: Any) -> Any:
        """An upper bound on the condition number of every element (`contexts.amplification`)."""
        return self._read("forward", "condition", arrays, named)

    def backward_condition(self, *arrays: Any, **named: Any) -> Any:
        """An upper bound on the condition number of every element of the gradients."""
        return self._read("backward", "condition", arrays, named)

    def forward_plain(self, *arrays: Any, format: Format | str, **named: Any) -> Any:
        """The first form computed in the format, its sums in order."""
        return self._read("forward", "plain", arrays, named, format=format)

    def backward_plain(self, *arrays: Any, format: Format | str, **named: Any) -> Any:
        """The gradients by their first form, computed in the format, its sums in order."""
        return self._read("backward", "plain", arrays, named, format=format)

    def _read(
        self,
        direction: Direction,
        reading: str,
        arrays: Sequence[Any],
        named: Mapping[str, Any],
        **options: Any,
    ) -> Any:
        formulas = self.op.formulas
        assert formulas is not None
        takes = formulas.of(direction).signature.takes
        if len(arrays) > len(takes):
            raise TypeError(
                f"{self.op.name} {direction} takes {', '.join(takes)}, but {len(arrays)} arrays "
                "were given."
            )
        inputs = dict(zip(takes, arrays, strict=False))
        params = {name: value for name, value in named.items() if name in formulas.params}
        named = leaves({name: value for name, value in named.items() if name not in params})
        if twice := [name for name in named if name in inputs]:
            raise TypeError(f"{twice[0]} was given twice, by its place and by its name.")
        inputs.update(named)
        results = getattr(formulas, reading)(direction, inputs, params, **options)
        names = self.op.names(direction)
        return tree(direction.title(), {name: results.get(name) for name in names})


def oracle(
    formula: Formula | Mapping[str, Formula],
    signature: str,
    coupled: str = "",
    *,
    name: str | None = None,
    backward: Mapping[str, Formula] | None = None,
    gradients: Sequence[str] | None = None,
    cotangents: Sequence[str] = (),
    faults: tuple[Fault, ...] = (),
    params: Mapping[str, Any] | None = None,
    domains: Mapping[str, Domain] | None = None,
) -> Oracle:
    """The reference kernel of a user's own formula.

    formula      f(xp, *arrays, **params) with the names of `contexts.Context` in xp; several stable
                 ways to compute the op by name, the definition first
    signature    "x[... n], weight[n]? -> y[... n]": `ops.letters`; coupled: its letters on which
                 every element of an output depends as a whole, "n" for a softmax
    name         for messages; the formula's by default
    backward     ways to compute the gradients; left out, they follow from the formula
    gradients    the inputs that get one, all of floating point by default; () for none
    cotangents   the outputs that have one, the first by default
    faults       wrong and unstable ways, which `explain` names
    params       defaults by name; a float is passed to the formula as an exact number of xp
    domains      the values that such a param may take, any number by default:
                 {"alpha": ops.Domain(0.0)} for 0 or more

    Raises ValueError for a malformed signature and for gradients or cotangents that it lacks,
    TypeError for a formula that does not take the signature's inputs and the params, and for
    arguments of another type.
    """
    forms = _formulas(formula, "formula")
    default_name = str(getattr(next(iter(forms.values())), "__name__", "formula"))
    parsed = Signature.parse(as_text(signature, "signature"), as_text(coupled, "coupled"))
    defaults = as_mapping(params, "params")
    for form in forms.values():
        _check_parameters(form, parsed.takes, defaults)
    several = as_list(faults, "faults")
    if strange := [fault for fault in several if not isinstance(fault, Fault)]:
        raise TypeError(f"faults holds a {type(strange[0]).__name__}, but it must hold Faults.")
    op = formula_op(
        default_name if name is None else as_text(name, "name"),
        signature,
        coupled,
        forms=forms,
        backward=None if backward is None else _formulas(backward, "backward"),
        gradients=None if gradients is None else _among(parsed.takes, gradients, "gradients"),
        cotangents=_among(parsed.gives, cotangents, "cotangents"),
        faults=tuple(several),
        params=defaults,
        domains=_domains(domains, defaults),
        cases=lambda: of_signature(op),
    )
    return Oracle(op)


def _formulas(formulas: Any, name: str) -> dict[str, Formula]:
    """Formulas by name; a single one is the definition."""
    forms = (
        as_mapping(formulas, name) if isinstance(formulas, Mapping) else {"definition": formulas}
    )
    if not forms or not all(callable(form) for form in forms.values()):
        raise TypeError(f"{name} must be a function f(xp, x, ...), or several of them by name.")
    return forms


def _check_parameters(form: Formula, inputs: Collection[str], params: Mapping[str, Any]) -> None:
    """Raise TypeError for a formula that cannot be called with xp, the inputs and the params."""
    if any("." in name for name in inputs):  # a tree arrives under its first name
        return
    try:
        called = inspect.signature(form)
    except (TypeError, ValueError):
        return
    try:
        called.bind(None, **dict.fromkeys((*inputs, *params)))
    except TypeError as error:
        name = getattr(form, "__name__", "formula")
        written = ", ".join(("xp", *inputs, *(("*", *params) if params else ())))
        raise TypeError(
            f"The formula {name}{called} does not take the signature's inputs and the params "
            f"({error}): write def {'formula' if name == '<lambda>' else name}({written})."
        ) from None


def _domains(domains: Any, defaults: Mapping[str, Any]) -> dict[str, Domain]:
    """The domains, checked to be those of params that are floats."""
    known = as_mapping(domains, "domains")
    for name, domain in known.items():
        if not isinstance(domain, Domain) or not isinstance(defaults.get(name), float):
            raise TypeError(
                f"domains has {quoted(name)}: it maps params that are floats to Domains."
            )
    return known


def _among(known: Collection[str], chosen: Any, name: str) -> tuple[str, ...]:
    """The chosen names, checked to be among the known ones."""
    for item in as_names(chosen, name):
        if item not in known:
            raise ValueError(f"{name} has {quoted(item)}: {did_you_mean(item, known)}.")
    return as_names(chosen, name)
