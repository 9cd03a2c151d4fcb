"""Every public callable, and arguments that fit it.

Public names come from the package: `__all__` of `refkernels` and of every room that has one. For a
class, the constructor and the methods of an instance are called. A name that is not called has a
reason in `LEFT_OUT`.
"""

import functools
import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
from call_values import DTYPES, any_shape, floats, odd, their

import refkernels
from refkernels import (
    gallery,
    metrology,
    ops,
    registry,
    schedule_ref,
)
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis import casefile
from refkernels.diagnosis.explanation import Difference, Explanation
from refkernels.diagnosis.probe import Probe
from refkernels.diagnosis.summation import SummationTree
from refkernels.frameworks import catalog
from refkernels.op import DIRECTIONS, Direction, Op
from refkernels.op import DTYPES as NAMES
from refkernels.records import array_files
from refkernels.runs import measurement, sweeps

Generator = np.random.Generator
GIVEN = "holds what a function found, as it is handed: its methods are called on that"
LEFT_OUT = {
    "contexts": "the language of formulas, for this package's own; tests/contexts asks it",
    "reporting": "writes records' views; test_fuzz_records edits the records",
    "diagnosis.models.layernorm": "runs what explain() has read; explain() is called",
    "gallery.Entry": GIVEN,
    "ops.Fault": GIVEN,
    "ops.Oracle": "oracle() makes it, which is called",
    "ops.Prepared": GIVEN,
    "ops.Staged": GIVEN,
    "ops.formula_op": "what oracle() and this package's own ops are made by; oracle() is called",
    "ops.formulas_of": "what formula_op is made by",
    "layernorm_ref.Backward": GIVEN,
    "layernorm_ref.Forward": GIVEN,
    "layernorm_ref.Moments": GIVEN,
    "matmul_ref.Backward": GIVEN,
    "matmul_ref.LinearBackward": GIVEN,
    "runs.measurement.RunOutcome": GIVEN,
    "runs.measurement.Plan": "select() makes it, which is called",
    "runs.measurement.Progress": GIVEN,
    "metrology.Summary": GIVEN,
    "metrology.UlpError": GIVEN,
    "schedule_ref.Convention": GIVEN,
    "schedule_ref.Examination": GIVEN,
    "runs.sweeps.Crew": "an interface",
    "runs.sweeps.Dask": "joins a cluster",
    "runs.sweeps.Lent": "holds an executor, as it is handed",
    "diagnosis.summation.SummationTree": "of() makes it, which is called",
    "runs.sweeps.SweepPlan": "plan() makes it, which is called",
    "runs.sweeps.Processes": "starts processes",
    "runs.sweeps.Progress": GIVEN,
}
BESIDE: dict[str, Callable[..., Any]] = {  # what a user finds beside the rooms
    "registry.get": registry.get,
    "array_files.load_npy": array_files.load_npy,
    "array_files.load_npz": array_files.load_npz,
    "casefile.CaseFile": casefile.CaseFile,
    "casefile.load": casefile.load,
    "casefile.save": casefile.save,
    "catalog.get": catalog.get,
    "formats.get": formats.get,
}
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "matmul": {"a": (2, 3), "b": (3, 4), "dc": (2, 4)},
    "linear": {"x": (2, 3), "weight": (4, 3), "bias": (4,), "dy": (2, 4)},
    "layernorm": {"x": (2, 3), "weight": (3,), "bias": (3,), "dy": (2, 3)},
}
MORE = {"runs.sweeps.plan": "chunk"}  # what is handed in by a name of the caller's choice
CALLED = ("progress", "box", "cosine", "sine")  # functions of the caller's own
OPS = ("sin", "matmul", "layernorm", "gelu", "linear")
_PYTHONS = ("__init__", "__new__", "__post_init__", "__getattr__")


class InProcess(Executor):
    """Works where it is called, at once."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except BaseException as failure:
            future.set_exception(failure)
        return future


def rooms() -> Iterator[types.ModuleType]:
    """The packages that say what is public in them."""
    for module_info in pkgutil.walk_packages(refkernels.__path__, "refkernels."):
        if module_info.ispkg and ".remote" not in module_info.name:
            module = importlib.import_module(module_info.name)
            if hasattr(module, "__all__"):
                yield module


def public() -> dict[str, Any]:
    """Every public function and class, by one of its names; errors and warnings excepted."""
    names = {}
    for room in rooms():
        short = room.__name__.removeprefix("refkernels.")
        names.update({f"{short}.{name}": getattr(room, name) for name in room.__all__})
    beside = {name: getattr(refkernels, name) for name in refkernels.__all__}
    names.update({name: value for name, value in beside.items() if value not in names.values()})
    return {name: member for name, member in names.items() if _is_called(member)}


def _is_called(member: Any) -> bool:
    failure = inspect.isclass(member) and issubclass(member, BaseException)
    return (inspect.isroutine(member) or inspect.isclass(member)) and not failure


def left_out(name: str) -> bool:
    return name in LEFT_OUT or any(name.startswith(f"{room}.") for room in LEFT_OUT)


def enclosure(rng: Generator) -> Enclosure:
    shape = any_shape(rng)
    parts = (rng.standard_normal(shape), rng.standard_normal(shape) * 2.0**-60)
    return Enclosure(*parts, rng.random(shape) * 2.0**-100, rng.integers(-2000, 2000, shape))


@functools.cache
def _explanations() -> tuple[Explanation, ...]:
    """Of one kernel that is right, of one that is wrong, and of two."""
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    several = {"a": {"y": np.sin(x)}, "b": {"y": 2 * np.sin(x)}}
    outputs = ({"y": np.sin(x)}, {"y": np.cos(x)}, several)
    return tuple(refkernels.explain("sin", {"x": x}, answer) for answer in outputs)


def _explanation(rng: Generator) -> Explanation:
    explanations = _explanations()
    return explanations[rng.integers(len(explanations))]


def _probe(rng: Generator) -> Probe:
    x = floats(rng, (2, 3))
    answers = {"right": x, "other": x + np.ones_like(x)}
    return Probe("sin", "forward", {}, {"x": x}, "y", answers)


def _difference(rng: Generator) -> Difference:
    return next(iter(_explanations()[2].differences.values()))


def _tree(rng: Generator) -> SummationTree:
    return (
        SummationTree.of(1, ()),
        SummationTree.of(3, ((0, 1), (2, 3)), (2,)),
        SummationTree.of(4, ((0, 1, 2), (3, 4))),
    )[rng.integers(3)]


def _case(rng: Generator) -> casefile.CaseFile:
    asked = Asked(rng)
    kernels = {"a": asked.outputs}
    return casefile.CaseFile(asked.op.name, asked.direction, asked.inputs, kernels, asked.params)


def _examination(rng: Generator) -> schedule_ref.Examination:
    question: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1.0, "decay_steps": 4}
    return schedule_ref.examine(np.linspace(1, 0, 5), np.arange(5), **question)


def relu_squared(xp: Any, x: Any) -> Any:
    return xp.square(xp.maximum(x, xp.number(0)))


@functools.cache
def _oracle() -> ops.Oracle:
    return ops.oracle(relu_squared, "x[...] -> y[...]")


def _summary(rng: Generator) -> metrology.Summary:
    return metrology.summarise(floats(rng, (2, 3)), np.ones((2, 3)))


# Classes whose instances are asked, and how an instance is made.
INSTANCES: dict[type, Callable[[Generator], Any]] = {
    Enclosure: enclosure,
    Explanation: _explanation,
    Difference: _difference,
    Probe: _probe,
    SummationTree: _tree,
    casefile.CaseFile: _case,
    gallery.Entry: lambda rng: gallery.load("sine-at-pi"),
    schedule_ref.Examination: _examination,
    metrology.Summary: _summary,
    ops.Oracle: lambda rng: _oracle(),
}


def targets() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield from BESIDE.items()
    yield from ((name, function) for name, function in public().items() if not left_out(name))
    for kind in INSTANCES:
        for name, member in _members(kind).items():
            yield f"{kind.__name__}.{name}", member


def _members(kind: type) -> dict[str, Callable[..., Any]]:
    """Methods, properties and operators that are written in this package, each once."""
    methods: dict[str, Callable[..., Any]] = {}
    for home in reversed(kind.__mro__):
        for name, member in vars(home).items():
            function = getattr(member, "fget", getattr(member, "__func__", member))
            hidden = name in _PYTHONS or (name.startswith("_") and not name.endswith("_"))
            if inspect.isfunction(function) and not hidden and _is_ours(function):
                methods[name] = function
    return {
        name: method for method, name in {method: name for name, method in methods.items()}.items()
    }


def _is_ours(function: Any) -> bool:
    return Path(function.__code__.co_filename).is_relative_to(Path(refkernels.__file__).parent)


class Asked:
    """A question that fits itself: an op, its inputs and params, and what a kernel answered."""

    def __init__(self, rng: Generator) -> None:
        self.rng = rng
        self.op: Op = registry.get(OPS[rng.integers(len(OPS))])
        self.direction: Direction = DIRECTIONS[rng.integers(2)]
        self.params: dict[str, Any] = {"eps": 1e-5} if self.op.name == "layernorm" else {}
        self.dtype = DTYPES[rng.integers(len(DTYPES))]

    def _array(self, name: str) -> np.ndarray:
        array = floats(self.rng, SHAPES.get(self.op.name, {}).get(name, (2, 3)))
        with np.errstate(all="ignore"):
            return array if self.rng.random() < 0.2 else array.astype(self.dtype)

    @functools.cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        return {name: self._array(name) for name in self.op.takes(self.direction)}

    @functools.cached_property
    def outputs(self) -> dict[str, Any]:
        """The plain algorithm's, nearly."""
        question = (self.direction, self.inputs, self.params)
        answers = self.op.plain(*question, formats.get(self.dtype))
        with np.errstate(all="ignore"):
            return {
                name: array if self.rng.random() < 0.5 else array * array.dtype.type(1.01)
                for name, array in answers.items()
            }

    @functools.cached_property
    def reference(self) -> dict[str, Enclosure]:
        return self.op.evaluate(self.direction, self.inputs, self.params)

    @functools.cached_property
    def bound(self) -> dict[str, Any]:
        return self.op.bound(self.direction, self.inputs, self.params, formats.get(self.dtype))

    @property
    def output(self) -> str:
        return self.op.names(self.direction)[0]


TARGETS = dict(targets())


def write_files() -> None:
    """What is there to be read."""
    rng = np.random.default_rng(0)
    np.save("given.npy", np.ones((2, 3)))
    np.savez("given.npz", x=np.ones((2, 3)))
    casefile.save("case.npz", _case(rng))


def arguments(rng: Generator, target: str) -> tuple[list[Any], dict[str, Any]]:
    """Most fit, some do not; what is optional is left out now and then."""
    strange = rng.choice([0.0, 0.15, 0.4])
    asked = Asked(rng)
    first, named = [], {}
    for parameter in inspect.signature(TARGETS[target]).parameters.values():
        if parameter.default is not parameter.empty and rng.random() < 0.6:
            continue
        name = parameter.name
        own = name == "self"
        value = odd(rng) if rng.random() < strange and not own else _fitting(asked, target, name)
        if name in CALLED and callable(value):
            value = their(value)
        if own or parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            first.append(value)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            named[name] = value
        elif rng.random() < 0.5:
            named[MORE.get(target, "x")] = value
    return first, named


def _fitting(asked: Asked, target: str, parameter: str) -> Any:
    """A value as the parameter wants it."""
    rng, room = asked.rng, target.split(".")[0]
    if parameter == "self":
        return next(make(rng) for kind, make in INSTANCES.items() if kind.__name__ == room)
    for of, choices in ((target, SPECIAL), (room, SPECIAL), ("", SPECIAL)):
        made = choices.get(of, {}).get(parameter)
        if made is not None:
            values = made(asked)
            return values[rng.integers(len(values))]
    shape = _shapes_of(target).get(parameter, (2, 3))
    return floats(rng, any_shape(rng) if rng.random() < 0.15 else shape)


def _shapes_of(target: str) -> dict[str, tuple[int, ...]]:
    if target.startswith("matmul_ref"):
        return SHAPES["linear" if "linear" in target else "matmul"]
    return SHAPES["layernorm"] if target.startswith("layernorm_ref") else {}


def _several(asked: Asked) -> tuple[Any, ...]:
    """One kernel's outputs in the ways they may be handed in, and two kernels'."""
    outputs = asked.outputs
    first = outputs[asked.output]
    return outputs, tuple(outputs.values()), first, {"a": outputs, "b": {asked.output: first}}


def _one_kernel(asked: Asked) -> tuple[Any, ...]:
    return _several(asked)[:3]


def _plan(asked: Asked) -> tuple[Any, ...]:
    ranges = ("0x0:0xf", "1:1", "-1e-7:0")
    chosen = ranges[asked.rng.integers(3)]
    return (sweeps.plan(["sin"], ["numpy"], ["float16"], range=chosen),)


def _sum(values: Any) -> float:
    return float(np.sum(values))


Makers = dict[str, Callable[[Asked], tuple[Any, ...]]]
# By target, by room, and for all: what fits the parameters of that name.
SPECIAL: dict[str, Makers] = {
    "": {
        "format": lambda asked: ("float32", "bfloat16", "tf32", *DTYPES),
        "certify": lambda asked: ("enclosure", ("rounding", "float32"), ("ulp", "float64", 1e-3)),
        "eps": lambda asked: (1e-5, 0.0, 1, np.float32(1e-12)),
        "normalized_shape": lambda asked: (None, 3, (3,), [2, 3], (2, 3)),
        "algorithm": lambda asked: ("naive", "welford", "chunked_welford", "pairwise"),
        "form": lambda asked: ("centred", "folded", "divided"),
        "lanes": lambda asked: (1, 4),
        "chunk": lambda asked: (1, 16),
        "clamp": lambda asked: (True, False),
        "limit": lambda asked: (4.0, 1),
        "step": lambda asked: (3, np.arange(5), [1, 2, 10]),
        "min_lr": lambda asked: (0.0, 1e-4),
        "max_lr": lambda asked: (1e-3, 1),
        "decay_steps": lambda asked: (10, 7),
        "cosine_error": lambda asked: (0.0, 1e-7),
        "cosine": lambda asked: (np.cos,),
        "sine": lambda asked: (np.sin,),
        "lr": lambda asked: (np.linspace(1, 0, 5), np.ones(5, np.float32)),
        "op": lambda asked: (asked.op.name,),
        "direction": lambda asked: (asked.direction,),
        "output": lambda asked: (asked.output,),
        "params": lambda asked: (asked.params,),
        "inputs": lambda asked: (asked.inputs,),
        "outputs": _several,
        "dtype": lambda asked: (None, "f4"),
        "seed": lambda asked: (0, 7),
        "lang": lambda asked: ("en", "zh"),
        "path": lambda asked: (Path("x.npz"), "x.npy", "out/case.npz"),
        "name": lambda asked: ("sine-at-pi",),
        "case": lambda asked: (_case(asked.rng),),
        "spec": lambda asked: ("numpy", "torch==2.6.0", catalog.get("numpy")),
        "progress": lambda asked: (lambda message: None,),
        "timeout": lambda asked: (1.0, 5),
        "resume": lambda asked: (False, True),
        "directory": lambda asked: (Path("out"), "out2"),
        "settings": lambda asked: (None, {}, {"OMP_NUM_THREADS": "1"}),
        "elementwise": lambda asked: (True, False),
        "distribution": lambda asked: (True, False),
        "forms": lambda asked: (None, {}, {"first": asked.bound[asked.output]}),
    },
    "trig_ref": {"name": lambda asked: ("sin", "atan", "cospi")},
    "elementary_ref": {"name": lambda asked: ("exp", "gelu", "log2")},
    "registry": {"name": lambda asked: OPS},
    "metrology": {
        "op": lambda asked: (asked.op,),
        "got": lambda asked: (asked.outputs[asked.output], floats(asked.rng, (2, 3))),
        "reference": lambda asked: (asked.reference[asked.output], floats(asked.rng, (2, 3))),
        "bound": lambda asked: (asked.bound[asked.output], np.ones((2, 3)), 1.0),
        "condition": lambda asked: (1.0, None),
        "plain": lambda asked: (None, asked.outputs[asked.output]),
    },
    "testing": {
        "op": lambda asked: (asked.op.name, asked.op),
        "outputs": _one_kernel,
        "got": lambda asked: (asked.outputs[asked.output], floats(asked.rng, (2, 3))),
        "reference": lambda asked: (asked.reference[asked.output], floats(asked.rng, (2, 3))),
        "bound": lambda asked: (asked.bound[asked.output], np.ones((2, 3)), 1.0),
        "verdict": lambda asked: ("rounding", "correctly_rounded"),
        "max_ulp": lambda asked: (4.0, 0, 1e9),
        "max_over_plain": lambda asked: (2.0, 1e9),
        "max_over_baseline": lambda asked: ((asked.outputs, 2.0), (asked.outputs, 1e9)),
        "dtype": lambda asked: (None, *NAMES, *DTYPES),
    },
    "probe": {"outputs": _one_kernel},
    "casefile": {
        "op": lambda asked: (asked.op.name,),
        "outputs": lambda asked: ({"a": asked.outputs},),
        "environment": lambda asked: ({}, {"a": {"version": "1", "settings": {"A": "1"}}}),
        "reported": lambda asked: (None, {"a": "0.5"}, "3 ulp"),
        "source": lambda asked: (None, "https://example.org/1"),
    },
    "Oracle": {
        "arrays": lambda asked: (floats(asked.rng, (2, 3)),),
        "given": lambda asked: (floats(asked.rng, (2, 3)),),
    },
    "ops.oracle": {
        "formula": lambda asked: (relu_squared, {"definition": relu_squared}),
        "signature": lambda asked: ("x[...] -> y[...]", "x[... n], weight[n]? -> y[... n]"),
        "coupled": lambda asked: ("", "n"),
        "name": lambda asked: (None, "mine"),
        "backward": lambda asked: (None,),
        "gradients": lambda asked: (None, (), ["x"]),
        "cotangents": lambda asked: ((), ["y"]),
        "faults": lambda asked: ((),),
        "params": lambda asked: (None, {}, {"scale": 0.5}),
    },
    "array_files.load_npy": {"path": lambda asked: ("given.npy",)},
    "array_files.load_npz": {"path": lambda asked: ("given.npz",)},
    "casefile.load": {"path": lambda asked: ("case.npz",)},
    "Enclosure": {
        "hi": lambda asked: (1.0, np.ones(3)),
        "lo": lambda asked: (0.0,),
        "radius": lambda asked: (0.0, 1e-9),
        "scale": lambda asked: (0, 3),
        "copy": lambda asked: (None, True),
        "other": lambda asked: (1.0, None, enclosure(asked.rng)),
        "others": lambda asked: (1.0, np.ones(3), enclosure(asked.rng)),
        "shape": lambda asked: (-1, (1, -1), ()),
        "index": lambda asked: ((), 0, ..., slice(None), -1, (0, 0), np.array([0])),
        "value": lambda asked: (0, 1),
        "flat_indices": lambda asked: (np.array([0]), np.array([], int), [0]),
        "ufunc": lambda asked: (np.sin, np.add),
        "method": lambda asked: ("__call__",),
        "inputs": lambda asked: (np.ones(3),),
    },
    "Enclosure.replace": {
        "flat_indices": lambda asked: (np.array([0]), [0]),
        "other": lambda asked: (Enclosure([1.0], radius=0.5),),
    },
    "SummationTree": {
        "format": lambda asked: (formats.BINARY32,),
        "leaves": lambda asked: ([], [0], (0, 1)),
    },
    "SummationTree.of": {
        "leaves": lambda asked: (1, 3, 4),
        "nodes": lambda asked: ((), ((0, 1), (2, 3)), ((0, 1, 2), (3, 4))),
        "fused": lambda asked: ((), (2,)),
    },
    "diagnosis.summation.reveal": {
        "box": lambda asked: (_sum,),
        "n": lambda asked: (1, 3, 8, np.int64(5)),
        "unit": lambda asked: (1.0,),
        "mask": lambda asked: (2.0**100,),
    },
    "diagnosis.summation.reveal_fused": {
        "tree": lambda asked: (_tree(asked.rng),),
        "box": lambda asked: (lambda a, b: float(a @ b),),
        "p": lambda asked: (24, 53),
    },
    "diagnosis.summation.replay": {
        "tree": lambda asked: (_tree(asked.rng),),
        "a": lambda asked: (np.ones((2, 3)), np.ones((2, 1), "f4")),
        "b": lambda asked: (None, np.ones((3, 2)), np.ones((1, 2), "f4")),
    },
    "runs.measurement.measure": {
        "plan": lambda asked: (_units(),),
        "frameworks": lambda asked: ((), ["numpy"], ("torch==2.6.0",)),
        "devices": lambda asked: ((), ["cpu"]),
    },
    "runs.measurement.select": {
        "ops": lambda asked: ((), ["sin"], OPS),
        "dtypes": lambda asked: ((), ["float32"], NAMES),
        "cases": lambda asked: ((), ["sin"], ["layernorm/*"]),
        "invariance": lambda asked: (True, False),
    },
    "runs.sweeps.plan": {
        "ops": lambda asked: (["sin"], ("exp", "cos")),
        "frameworks": lambda asked: (["numpy"], ["torch==2.6.0", "libm"]),
        "dtypes": lambda asked: (["float16"], NAMES),
        "others": lambda asked: (1 << 20, 1),
        "range": lambda asked: (None, "0x0:0xf", "-1:1"),
    },
    "runs.sweeps.sweep": {
        "plan": _plan,
        "crew": lambda asked: (None, sweeps.Lent(InProcess(), 1)),
    },
}


@functools.cache
def _units() -> measurement.Plan:
    chosen = measurement.select(["sin"], ["float32"])
    return measurement.Plan(chosen.ops, chosen.dtypes, chosen.units[:2])
