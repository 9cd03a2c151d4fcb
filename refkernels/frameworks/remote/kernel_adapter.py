"""The adapter of a user's kernel: one function in a file, from arrays to arrays.

The host adds a last line, `begin({...})`, with what `frameworks.kernels` knows about the function.

`bound` decides which argument each of the function's parameters receives. A parameter is known by
the op's name of an input or param, or by another usual one (`frameworks.synonyms`). Parameters that
have no known name and no default receive the inputs that the op requires, in the op's order, never
an optional one. A param that the function takes and the case does not give has the op's default; in
the form of the parameter's default (`spelt`). A param that the function does not take is left out
if its value is the op's default, or if no definition depends on it. Whatever else cannot be bound
makes the case unsupported.
"""

import ctypes
import importlib.util
import inspect
import os
import sys
import types

import numpy as np

OPS = {}  # begin() adds the kernel's op
FLAGS = {  # `frameworks.kernels` has read the target's settings; nothing is left to set here
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
SCALARS = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
CAUSAL = {"none": False, "top_left": True, "bottom_right": True}
FORMS = {  # parameters that take a value of the op in another form
    "causal": CAUSAL,
    "is_causal": CAUSAL,
    "interleaved": {"half": False, "interleaved": True},
    "unbiased": {0: False, 1: True},
    "padding": {"valid": 0},
}
ONE_CORNER = {  # what these say only where there are as many queries as keys
    "causal": ("top_left", "bottom_right"),
    "is_causal": ("bottom_right",),
}
OF_SHAPES = {  # what an input's shape says: a param that is None, or a parameter of no op's param
    "scale": ("q", lambda shape: max(shape[-1], 1) ** -0.5),
    "normalized_shape": ("x", lambda shape: tuple(shape[-1:])),
    "dim": ("x", lambda shape: shape[-1]),
    "num_channels": ("x", lambda shape: shape[1]),
}


def begin(kernel):
    """Load the file and find the function; an exception says what is wrong with either."""
    KERNEL.update(kernel)
    OPS[kernel["op"]] = (kernel["outputs"]["forward"][0], None)
    if kernel["abi"]:
        function = getattr(ctypes.CDLL(kernel["file"]), kernel["function"])
        function.restype = None
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
    by_autograd = KERNEL["arrays"] == "torch" and direction == "backward"
    if direction in CALLS or by_autograd:
        return None
    return "%s computes %s %s only" % (KERNEL["function"], op, " and ".join(CALLS))


def tensor(array, dtype, device):
    kind = KERNEL["arrays"]
    if kind == "torch":
        torch = sys.modules["torch"]
        if dtype not in BITS:
            return torch.from_numpy(array).to(device)
        signed = torch.from_numpy(array.view(BITS[dtype].lstrip("u")))
        return signed.view(getattr(torch, dtype)).to(device)
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
    if hasattr(tensor, "detach"):  # whatever the function takes
        tensor = tensor.detach().cpu()
        dtype = str(tensor.dtype).replace("torch.", "")
        if dtype in BITS:
            torch = sys.modules["torch"]
            signed = BITS[dtype].lstrip("u")
            return dtype, tensor.view(getattr(torch, signed)).numpy().view(BITS[dtype])
        return dtype, tensor.numpy()
    values = tensor.get() if hasattr(tensor, "get") else np.asarray(tensor)
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
    y = called("forward", leaves, params)[OPS[op][0]]
    if not y.requires_grad:
        raise NotImplementedError("autograd does not go through %s" % KERNEL["function"])
    gradients = torch.autograd.grad(y, list(leaves.values()), cotangent)
    return dict(zip(["d" + key for key in leaves], gradients))


def called(direction, inputs, params):
    """The function's answer, by output name. The worker passes inputs without a gradient like
    params."""
    takes, given = KERNEL["inputs"][direction], {**params, **inputs}
    arrays = {name: given[name] for name in takes if name in given}
    params = {name: value for name, value in params.items() if name not in takes}
    if KERNEL["abi"]:
        return in_c(CALLS[direction], arrays, params)
    with np.errstate(all="ignore"):
        answer = call(CALLS[direction], KERNEL, direction, arrays, params)
    return by_name(direction, answer)


class Unbound(NotImplementedError):
    """An argument of the case has no parameter, or a parameter no argument."""


def call(function, kernel, direction, arrays, params):
    """What the function returns for arrays and params by the op's names. `kernel` has the
    function's name and its op's facts (`frameworks.kernels`). Raises Unbound."""
    positional, named, doubtful = bound(function, kernel, direction, arrays, params)
    poisoned()
    try:
        answer = function(*positional, **named)
        if doubtful and undefined(answer) and not undefined([a * 0 for a in arrays.values()]):
            raise ValueError("it returns NaN")
        return answer
    except Exception as error:
        if not doubtful:
            raise
        said = kernel["function"], ", ".join(doubtful), type(error).__name__, error
        raise Unbound("%s cannot be called with %s as in this case (%s: %s)" % said) from error


def undefined(answer):
    """Whether some array of an answer holds NaN."""
    several = answer.values() if isinstance(answer, dict) else answer
    parts = several if isinstance(answer, (dict, tuple, list)) else [answer]
    return any(bool((part != part).any()) for part in parts if hasattr(part, "any"))


def bound(function, kernel, direction, arrays, params):
    """The positional and the keyword arguments, and those that may not be what the function takes:
    None for an absent input, and names given to a function without a signature. Raises Unbound."""
    try:
        signature = inspect.signature(getattr(function, "py_func", function)).parameters
    except (TypeError, ValueError):  # a built-in or compiled function has none
        signature = None
    parameters = list((signature or {}).values())
    kinds = {parameter.kind for parameter in parameters}
    rest, anything = (signature is None or kind in kinds for kind in VARIABLE)
    parameters = [parameter for parameter in parameters if parameter.kind not in VARIABLE]
    takes = kernel["inputs"][direction]
    settings = {**dict.fromkeys(OF_SHAPES), **kernel["params"], **params}
    meaning, further = matched(parameters, kernel, direction)
    if further and not (rest or anything):
        raise Unbound("%s takes no %s" % (kernel["function"], ", ".join(further)))
    values, doubtful = {}, []
    for parameter in parameters:
        key, default, name = parameter.name, parameter.default, meaning.get(parameter.name)
        if name in arrays:
            values[key] = arrays[name]
        elif name in takes and default is parameter.empty:
            values[key] = None
            doubtful.append("%s=None" % key)
        elif name in settings and not settings[name] is default is None:
            value = spelt(kernel, parameter, name, settings[name], arrays)
            none = value is None is kernel["params"].get(name, 0)
            absent = none and default is not parameter.empty
            if absent and says_none(default):
                continue
            values[key] = value
            doubtful += ["%s=None" % key] if absent else []
    placed = {*meaning.values(), *further}
    others = {name: array for name, array in arrays.items() if name not in placed}
    unlike = unlike_default(kernel, params, placed, arrays)
    if anything:
        others.update((name, value) for name, value in params.items() if name not in placed)
        doubtful += others if signature is None else []
    elif others or unlike:
        said = [*others, *("%s=%r" % pair for pair in unlike.items())]
        names = kernel["function"], ", ".join([*others, *unlike]), ", ".join(said)
        raise Unbound("%s takes no %s, and this case has %s" % names)
    by_place = rest or hasattr(function, "nin")  # Numba's ufuncs have the signature of py_func
    first = [p for p in parameters if p.kind in PLACES[: 2 if by_place else 1]]
    while first and first[-1].name not in values and not (rest and further):
        first.pop()
    positional = [values.pop(p.name, p.default) for p in first]
    unnamed = {name: arrays[name] for name in further}
    if rest:
        return (*positional, *unnamed.values()), {**values, **others}, doubtful
    return positional, {**values, **others, **unnamed}, doubtful


def matched(parameters, kernel, direction):
    """The op's name for each parameter that has one, and the required inputs that are left. The
    parameter that can mean the least chooses first: beside `bias`, an attention's `mask` is a
    bool."""
    takes, params = kernel["inputs"][direction], kernel["params"]
    known = {name: name for name in (*takes, *params)}
    if direction == "backward":
        known.setdefault("dy", takes[0])
    words, possible, meaning = {}, {}, {}
    for parameter in parameters:
        key, word = parameter.name, parameter.name.lower().strip("_")
        one = word.rstrip("s")  # of a list's name
        meanings = [name for w in (word, one) for name in kernel["meanings"].get(w, ())]
        words[key] = [key, word, *meanings, one]
        names = dict.fromkeys(known[name] for name in words[key] if name in known)
        if isinstance(parameter.default, (int, float)):  # an array may have it under its own name
            names = [name for name in names if name in (*params, word)]
        possible[key] = list(names)
    for key in sorted(possible, key=lambda key: (len(possible[key]), key not in possible[key])):
        free = [name for name in possible[key] if name not in meaning.values()]
        meaning.update(zip([key], free))
    further = [n for n in takes if n not in (*kernel["optional"], *meaning.values())]
    for parameter in parameters:
        key, why = parameter.name, "no input and no param"
        if key in meaning or parameter.default is not parameter.empty:
            continue
        if direction == "backward" and {*words[key]} & {*kernel["outputs"]["forward"]}:
            why = "an output, and no input,"
        elif key not in kernel["meanings"] and OF_SHAPES.get(key, ("",))[0] in takes:
            meaning[key] = key
            continue
        elif further and parameter.kind in PLACES:
            meaning[key] = further.pop(0)
            continue
        names = kernel["function"], key, why, kernel["op"], direction
        raise Unbound("%s needs %s, which is %s of %s %s" % names)
    return meaning, further


def says_none(default):
    """Whether a parameter's default means that there is none: softcap=0.0, window_size=(-1, -1)."""
    parts = default if isinstance(default, (tuple, list)) else [default]
    kinds = {type(part) for part in parts if part is not None}
    numbers = kinds <= {int, float, bool}
    return numbers and all(n is None or n < 0 or (n == 0 and type(n) is not int) for n in parts)


def spelt(kernel, parameter, name, value, arrays):
    """A param's value in the form that the parameter takes. Raises Unbound where it has none."""
    word, default = parameter.name.lower(), parameter.default
    if isinstance(value, list) or (value is None and default is not None):
        value = meaning_of(name, value, arrays)
    if isinstance(default, str) or parameter.annotation in (str, "str"):
        return value
    forms = FORMS.get(word, {})
    form = forms.get(value, value) if isinstance(value, (str, int)) else value
    if value in ONE_CORNER.get(word, ()) and arrays["q"].shape[-2] != arrays["k"].shape[-2]:
        form = None
    if isinstance(default, (tuple, list)) and isinstance(form, int):
        return type(default)([form] * len(default))
    kind = bool if True in forms.values() else type(default)
    several = isinstance(form, (tuple, list)) and default is not parameter.empty
    unfit = several and word != name and kind not in (tuple, list)  # it may mean one number
    unfit = unfit or (isinstance(form, str) and kind in (int, float))
    if unfit or (kind is bool and not isinstance(form, bool)):
        said = kernel["function"], parameter.name, kind.__name__, name, value
        raise Unbound("%s takes %s as a %s, which cannot say %s=%r here" % said)
    return form


def unlike_default(kernel, params, taken, arrays):
    """The params that the function does not take and whose values are not the op's defaults."""
    known = {name: meaning_of(name, value, arrays) for name, value in kernel["params"].items()}
    others = {n: value for n, value in params.items() if n not in (*taken, *WITHOUT_EFFECT)}
    return {
        n: v for n, v in others.items() if n not in known or meaning_of(n, v, arrays) != known[n]
    }


def meaning_of(name, value, arrays):
    """A param's value in one spelling: no negative axis, and what None means written out."""
    source, of_shape = OF_SHAPES.get(name, ("", None))
    if value is None and source in arrays:
        return of_shape(arrays[source].shape)
    if name == "axis" and isinstance(value, int) and value < 0:
        return value + len(next(iter(arrays.values())).shape)
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
        said = KERNEL["function"], len(answer), ", ".join(names)
        raise ValueError("%s returns %d arrays, and the op has %s" % said)
    return {name: value for name, value in zip(names, answer) if value is not None}


def poisoned():
    """A kernel's cell fills free memory here, where nothing is allocated before the kernel runs."""


def allocate(shape, dtype):
    """An output of a C function; a kernel's cell allocates in its own way."""
    return np.empty(shape, dtype)


def in_c(function, arrays, params):
    """Call a C function: arrays by pointer, lengths and params by value."""
    numbers = lengths(arrays)
    outputs, passed = {}, []
    for dtype, pointer, name, shape in KERNEL["abi"]:
        if pointer:
            array, held = arrays.get(name), BITS.get(dtype, dtype)
            if array is None:
                array = outputs[name] = allocate(declared(shape, name, arrays, numbers), held)
            elif held != str(array.dtype):
                raise NotImplementedError("%s takes %s as %s" % (function.__name__, name, dtype))
            passed.append(ctypes.c_void_p(array.ctypes.data))
            continue
        value = meaning_of(name, {**KERNEL["params"], **numbers, **params}.get(name), arrays)
        if value is None:
            said = function.__name__, name, ", ".join(numbers)
            why = "%s needs %s, which this case does not have: lengths are %s"
            raise NotImplementedError(why % said)
        passed.append(SCALARS[dtype](value))
    named = {name for _, _, name, _ in KERNEL["abi"]}
    absent = [name for name in arrays if name not in named]
    if others := [*absent, *unlike_default(KERNEL, params, named, arrays)]:
        raise NotImplementedError("%s takes no %s" % (function.__name__, ", ".join(others)))
    poisoned()
    function(*passed)
    return outputs


def lengths(arrays):
    """n, the elements of the first array; and of each NAME its size, rows, last axis and axes."""
    first = next(iter(arrays.values()))
    numbers = {"n": first.size}
    for name, array in arrays.items():
        numbers["%s_size" % name] = array.size
        numbers["%s_last" % name] = array.shape[-1] if array.ndim else 1
        numbers["%s_rows" % name] = int(np.prod(array.shape[:-1]))
        numbers.update(("%s_%d" % (name, axis), n) for axis, n in enumerate(array.shape))
    return numbers


def declared(shape, output, arrays, numbers):
    """The shape in an output's brackets; NAME_rows is all axes of an input but its last. Without
    brackets a gradient has its input's shape, and another output the first input's."""
    if shape is None:
        source = output[1:] if output[0] == "d" and output[1:] in arrays else next(iter(arrays))
        return arrays[source].shape
    sizes = ()
    for length in shape.split():
        name = length[: -len("_rows")]
        leading = length.endswith("_rows") and name in arrays
        sizes += tuple(arrays[name].shape[:-1]) if leading else (numbers[length],)
    return sizes


def synchronize(device):
    if device.startswith("cuda") and KERNEL["arrays"] == "torch":
        sys.modules["torch"].cuda.synchronize(device)
    elif device.startswith("cuda") and KERNEL["arrays"] == "cupy":
        sys.modules["cupy"].cuda.Stream.null.synchronize()
