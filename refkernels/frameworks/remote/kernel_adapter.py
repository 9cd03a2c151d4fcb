"""The adapter of a user's kernel: one function in a file, from arrays to arrays.

The host adds a last line, `begin({...})`, with what `frameworks.kernels` knows about the function.
Arguments are passed by keyword if the function's parameters have the op's names, otherwise by
position in the op's order, unless an array would then take the place of another. A param that the
function takes and the case does not give has the op's default, and is left out where this is None.
A param that the function does not take is left out if its value is the op's default, or if no
definition depends on it; otherwise the case is unsupported.
"""

import ctypes
import importlib.util
import inspect
import itertools
import os
import re
import sys
import types

import numpy as np

OPS = {}  # begin() adds the kernel's op
FLAGS = {  # `frameworks.kernels` has read the seat's settings; nothing is left to set here
    "op": (None, lambda value: None),
    "abi": (None, lambda value: None),
    "arrays": (None, lambda value: None),
    "python": (None, lambda value: None),
}
KERNEL = {}
CALLS = {}  # the function of each direction
WITHOUT_EFFECT = ("name",)  # of an optimizer's parameter
LIBRARIES = ("torch", "jax", "cupy")
BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
ARGUMENT = re.compile(r"(\w+)\s*(\*?)\s*(\w+)\s*(?:\[([\w\s]*)\])?")
SCALARS = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


def begin(kernel):
    """Load the file and find the function; an exception says what is wrong with either."""
    KERNEL.update(kernel)
    OPS[kernel["op"]] = (kernel["outputs"]["forward"][0], None)
    if kernel["abi"]:
        function = getattr(ctypes.CDLL(kernel["file"]), kernel["function"])
        function.restype = None
        KERNEL["arguments"] = arguments(kernel["abi"])
        CALLS[kernel["direction"]] = function
        KERNEL["arrays"] = "numpy"
        return
    module = loaded(kernel["file"])
    CALLS[kernel["direction"]] = function_of(module, kernel["function"])
    beside = kernel["function"] + "_backward"
    if kernel["direction"] == "forward" and callable(getattr(module, beside, None)):
        CALLS["backward"] = getattr(module, beside)
    KERNEL["arrays"] = kernel["arrays"] or library_of(module)


def loaded(path):
    """The module of a file, which may import its neighbours."""
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and Triton look their module up
    spec.loader.exec_module(module)
    return module


def function_of(module, name):
    function = getattr(module, name, None)
    if not callable(function):
        own = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise AttributeError("the file has no function %s: it has %s" % (name, ", ".join(own)))
    return function


def library_of(module):
    """The library whose arrays a module's functions take: the one that it imports."""
    imported = {
        value.__name__.split(".")[0]
        for value in vars(module).values()
        if isinstance(value, types.ModuleType)
    }
    return next((name for name in LIBRARIES if name in imported), "numpy")


def version():
    return KERNEL["version"]


def devices():
    if KERNEL["arrays"] == "torch":
        torch = sys.modules["torch"]
        number = torch.cuda.device_count() if torch.cuda.is_available() else 0
        listed = [("cuda:%d" % i, torch.cuda.get_device_name(i)) for i in range(number)]
        return [("cpu", ""), *listed]
    if KERNEL["arrays"] == "cupy":
        return [("cuda:0", "")]
    if KERNEL["arrays"] == "jax":
        first = sys.modules["jax"].devices()[0]
        return [("cpu" if first.platform == "cpu" else "%s:0" % first.platform, str(first))]
    return [("cpu", "")]


def information():
    library = sys.modules.get(KERNEL["arrays"])
    return {"arrays": "%s %s" % (KERNEL["arrays"], getattr(library, "__version__", ""))}


def unsupported(op, direction, dtype, device):
    if direction in CALLS:
        return None
    if KERNEL["arrays"] == "torch" and direction == "backward":
        return None  # by autograd
    return "%s computes %s %s only" % (KERNEL["function"], op, " and ".join(CALLS))


def tensor(array, dtype, device):
    kind = KERNEL["arrays"]
    if kind == "torch":
        torch = sys.modules["torch"]
        if dtype not in BITS:
            return torch.from_numpy(array).to(device)
        signed = array.view(BITS[dtype].lstrip("u"))
        return torch.from_numpy(signed).view(getattr(torch, dtype)).to(device)
    if dtype in BITS and KERNEL["abi"]:
        return array
    if dtype in BITS:
        try:
            import ml_dtypes
        except ImportError:
            raise NotImplementedError("NumPy has no %s without ml_dtypes" % dtype) from None
        array = array.view(getattr(ml_dtypes, dtype))
    if kind == "jax":
        jax = sys.modules["jax"]
        jax.config.update("jax_enable_x64", True)  # else float64 is made float32
        return jax.numpy.asarray(array)
    return sys.modules["cupy"].asarray(array) if kind == "cupy" else array


def array(tensor):
    if KERNEL["arrays"] == "torch":
        tensor = tensor.detach().cpu()
        dtype = str(tensor.dtype).replace("torch.", "")
        if dtype in BITS:
            torch = sys.modules["torch"]
            signed = BITS[dtype].lstrip("u")
            return dtype, tensor.view(getattr(torch, signed)).numpy().view(BITS[dtype])
        return dtype, tensor.numpy()
    values = tensor.get() if KERNEL["arrays"] == "cupy" else np.asarray(tensor)
    dtype = str(values.dtype)
    return dtype, values.view(BITS[dtype]) if dtype in BITS else values


def forward(op, inputs, params):
    return called("forward", inputs, params)


def backward(op, inputs, cotangent, params):
    """By the function's own backward kernel where the file has one, else by torch's autograd."""
    name = "d" + OPS[op][0]
    if "backward" in CALLS:
        return called("backward", {name: cotangent, **inputs}, params)
    torch = sys.modules["torch"]
    leaves = {key: value.detach().requires_grad_() for key, value in inputs.items()}
    y = called("forward", {**leaves, **tensors_of(params)}, plain(params))[OPS[op][0]]
    if not y.requires_grad:
        raise NotImplementedError("autograd does not go through %s" % KERNEL["function"])
    gradients = torch.autograd.grad(y, list(leaves.values()), cotangent)
    return dict(zip(["d" + key for key in leaves], gradients))


def tensors_of(params):
    """The inputs without a gradient, which the worker passes like params."""
    return {key: value for key, value in params.items() if key in KERNEL["inputs"]["forward"]}


def plain(params):
    return {key: value for key, value in params.items() if key not in KERNEL["inputs"]["forward"]}


def called(direction, inputs, params):
    """The function's answer, by output name."""
    available = {**inputs, **tensors_of(params)}
    arrays = {name: available[name] for name in KERNEL["inputs"][direction] if name in available}
    if KERNEL["abi"]:
        return in_c(CALLS[direction], arrays, plain(params))
    positional, named = call_of(CALLS[direction], arrays, plain(params))
    with np.errstate(all="ignore"):
        return by_name(direction, CALLS[direction](*positional, **named))


def call_of(function, arrays, params):
    """The function's positional and its keyword arguments."""
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters
    except (TypeError, ValueError):  # a built-in or compiled function has no signature
        parameters = {}
    kinds = [parameter.kind for parameter in parameters.values()]
    anything = inspect.Parameter.VAR_KEYWORD in kinds or not parameters
    unlike = {} if anything else unlike_default(params, parameters, arrays)
    if unlike:
        raise NotImplementedError(
            "%s takes no %s, and this case has %s"
            % (
                KERNEL["function"],
                ", ".join(unlike),
                ", ".join("%s=%r" % p for p in unlike.items()),
            )
        )
    defaults = KERNEL["params"]
    settings = {**defaults, **params}  # the function's own defaults may be others
    absent = {name for name, value in settings.items() if value is None is defaults.get(name)}
    named = {
        name: value
        for name, value in settings.items()
        if (name in parameters and name not in absent) or (anything and name in params)
    }
    if set(arrays) <= set(parameters):
        given = {**arrays, **named}
        is_ufunc = hasattr(function, "nin")  # Numba's have py_func's signature, and take no names
        only = [n for n, p in parameters.items() if is_ufunc or p.kind is p.POSITIONAL_ONLY]
        first = itertools.takewhile(given.__contains__, only)
        return tuple([given.pop(name) for name in list(first)]), given
    places = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    places = [name for name in places if name not in named]
    if parameters and inspect.Parameter.VAR_POSITIONAL not in kinds and len(places) < len(arrays):
        raise NotImplementedError(
            "%s takes %d arrays, and this case has %s"
            % (KERNEL["function"], len(places), ", ".join(arrays))
        )
    own = {name for names in KERNEL["inputs"].values() for name in names}
    for place, name in zip(places, arrays):
        if place in own and place != name:
            raise NotImplementedError(
                "%s takes %s where this case has %s" % (KERNEL["function"], place, name)
            )
    return tuple(arrays.values()), named


def unlike_default(params, parameters, arrays):
    """The params that the function does not take and whose values are not the op's defaults."""
    shape = arrays[KERNEL["inputs"]["forward"][0]].shape
    defaults = KERNEL["params"]
    return {
        name: value
        for name, value in params.items()
        if name not in (*parameters, *WITHOUT_EFFECT)
        and not (
            name in defaults and meaning(name, value, shape) == meaning(name, defaults[name], shape)
        )
    }


def meaning(name, value, shape):
    """A param's value in one spelling: no negative axis, and the default shape written out."""
    if name == "axis" and isinstance(value, int) and value < 0:
        return value + len(shape)
    if name == "normalized_shape" and value is None:
        return tuple(shape[-1:])
    return tuple(value) if isinstance(value, list) else value


def by_name(direction, answer):
    """Outputs by name: of a dict, of a tuple in the op's order, of one array."""
    names = KERNEL["outputs"][direction]
    if isinstance(answer, dict):
        return answer
    if hasattr(answer, "_asdict"):
        return dict(answer._asdict())
    if not isinstance(answer, (tuple, list)):
        answer = (answer,)
    if len(answer) > len(names):
        raise ValueError(
            "%s returns %d arrays, and the op has %s"
            % (KERNEL["function"], len(answer), ", ".join(names))
        )
    return {name: value for name, value in zip(names, answer) if value is not None}


def arguments(abi):
    """[(type, is a pointer, name, lengths)] of "float32* x, float32* y, int64 n"."""
    parsed = []
    for part in abi.split(","):
        match = ARGUMENT.fullmatch(part.strip())
        if match is None or not (match[2] or match[1] in SCALARS):
            raise ValueError(
                "%r is not an argument: write TYPE* NAME for an array and int64 NAME for a number"
                % part.strip()
            )
        parsed.append((match[1], bool(match[2]), match[3], match[4]))
    return parsed


def allocate(shape, dtype):
    """An output of a C function; a kernel's cell allocates in its own way."""
    return np.empty(shape, dtype)


def in_c(function, arrays, params):
    """Call a C function: arrays by pointer, lengths and params by value."""
    first = next(iter(arrays.values()))
    numbers = lengths(arrays)
    outputs, passed = {}, []
    for dtype, pointer, name, shape in KERNEL["arguments"]:
        if pointer:
            if name in arrays:
                if BITS.get(dtype, dtype) != str(arrays[name].dtype):
                    raise NotImplementedError(
                        "%s takes %s as %s" % (function.__name__, name, dtype)
                    )
                array = arrays[name]
            else:
                sizes = like(name, arrays, first)
                if shape is not None:
                    sizes = declared(shape, arrays, numbers)
                array = outputs[name] = allocate(sizes, BITS.get(dtype, dtype))
            passed.append(ctypes.c_void_p(array.ctypes.data))
            continue
        value = params.get(name, numbers.get(name, KERNEL["params"].get(name)))
        if value is None:
            raise NotImplementedError(
                "%s needs %s, which this case does not have: lengths are %s"
                % (function.__name__, name, ", ".join(numbers))
            )
        passed.append(SCALARS[dtype](value))
    named = {name for _, _, name, _ in KERNEL["arguments"]}
    absent = [name for name in arrays if name not in named]
    unlike = unlike_default(params, named, arrays)
    if absent or unlike:
        raise NotImplementedError(
            "%s takes no %s" % (function.__name__, ", ".join([*absent, *unlike]))
        )
    function(*passed)
    return outputs


def lengths(arrays):
    """n, the elements of the first array; and of each NAME its size, rows, last axis and axes."""
    first = next(iter(arrays.values()))
    numbers = {"n": first.size}
    for name, array in arrays.items():
        last = array.shape[-1] if array.ndim else 1
        numbers["%s_size" % name] = array.size
        numbers["%s_last" % name] = last
        numbers["%s_rows" % name] = int(np.prod(array.shape[:-1]))
        numbers.update(("%s_%d" % (name, axis), n) for axis, n in enumerate(array.shape))
    return numbers


def declared(shape, arrays, numbers):
    """The shape in an output's brackets; NAME_rows is all axes of an input but its last."""
    sizes = ()
    for length in shape.split():
        name = length[: -len("_rows")]
        leading = length.endswith("_rows") and name in arrays
        sizes += tuple(arrays[name].shape[:-1]) if leading else (numbers[length],)
    return sizes


def like(name, arrays, first):
    """An output's shape where the ABI does not say: a gradient's is its input's."""
    return arrays[name[1:]].shape if name[0] == "d" and name[1:] in arrays else first.shape


def synchronize(device):
    if device.startswith("cuda"):
        library = sys.modules[KERNEL["arrays"]]
        if KERNEL["arrays"] == "torch":
            library.cuda.synchronize(device)
        elif KERNEL["arrays"] == "cupy":
            library.cuda.Stream.null.synchronize()
