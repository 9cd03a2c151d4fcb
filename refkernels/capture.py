"""Capture: a probe that records a training run in PyTorch, PaddlePaddle, OneFlow or MindSpore.

This one file may be copied to another machine: it needs Python 3.8, NumPy and the model's
framework, and nothing else of refkernels.

    with Capture("run_a", model, optimizer, steps=[0, 1, 10, 100]) as capture:
        for step, batch in enumerate(data):
            loss = train_step(batch)
            capture.step(loss=loss, batch=batch)

Every step writes a line to ``run_a/rank_0/steps.jsonl``; a chosen step also writes
``step_000010.safetensors``: inputs, outputs, cotangents and gradients of every layer, parameters,
gradients and optimizer state before and after the update.  ``docs/capture.md`` gives the format.

The probe only reads.  In a chosen step each layer's forward is wrapped, and tensors are copied.  A
hook on an input would see the sum of its gradient over all its consumers: the layer's own part is
what the nodes of its graph pass to that input in PyTorch, and elsewhere the gradient of an identity
that the input passes through.  So the run has the same bits with the probe as without it.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import functools
import hashlib
import importlib
import inspect
import json
import math
import os
import platform
import re
import shutil
import sys
import time
import types
from collections import Counter, OrderedDict
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import numpy as np

__all__ = ["Capture"]

FORMAT = "refkernels-capture"
FORMAT_VERSION = 1
CAPTURE_VERSION = "1"

# Safetensors' dtypes, by their names in NumPy or a framework.
DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64",
}  # fmt: skip
_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64",
            "int": "int32", "short": "int16", "bool_": "bool", "byte": "uint8"}  # fmt: skip

# Optimizer state: by the framework's own name, with framework and type if it has two meanings.
_STATE = {
    "exp_avg": "m", "moment1": "m", "adam_m": "m", "lamb_m": "m",
    "exp_avg_sq": "v", "moment2": "v", "adam_v": "v", "lamb_v": "v",
    "max_exp_avg_sq": "vmax", "moment2_max": "vmax", "vhat": "vmax",
    "momentum_buffer": "buf", "momentum_buf": "buf", "velocity": "buf", "moments": "buf",
    "sum": "accum", "square_avg": "accum", "mean_square": "accum",
    "grad_avg": "mean", "mean_grad": "mean",
    "beta1_pow_acc": "beta1_power", "beta2_pow_acc": "beta2_power",
    "global_step": "step", "state_step": "step",
    "paddle.Adagrad.moment": "accum", "paddle.RMSProp.momentum": "buf",
    "mindspore.SGD.accum": "buf", "mindspore.RMSProp.moment": "buf",
}  # fmt: skip
# Hyper-parameters of optimizers, renamed after the oracles' parameters.
_HYPERPARAMETERS = {
    "epsilon": "eps", "use_nesterov": "nesterov", "use_amsgrad": "amsgrad", "alpha": "rho",
    "initial_accumulator_value": "initial_accum",
    "mindspore.RMSProp.decay": "rho",
}  # fmt: skip
_RANKS = ("RANK", "PADDLE_TRAINER_ID", "RANK_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
          "SLURM_PROCID")  # fmt: skip
_WORLDS = ("WORLD_SIZE", "PADDLE_TRAINERS_NUM", "RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
           "SLURM_NTASKS")  # fmt: skip
_ARITHMETIC = ("OMP_", "MKL_", "KMP_", "OPENBLAS_", "FLAGS_", "ATEN_", "CUBLAS_", "CUDA_VISIBLE",
               "CUDNN_", "NVIDIA_TF32", "TORCH_", "PYTORCH_", "ONEFLOW_", "ONEDNN_", "DNNL_",
               "MS_", "ASCEND_", "HCCL_DETERMINISTIC", "PYTHONHASHSEED", "XLA_")  # fmt: skip
_DRAWING = re.compile("drop|rand|bernoulli|multinomial|normal_?$|uniform_?$")
_ROOT = "(root)"
_WORTH_SHARING = 1024  # bytes of a tensor
_LEAST_ROOM = 2**23  # bytes of a step's tensors of layers, however small the model is
_SAMPLE = 512  # of its bytes, by which tensors that may be equal are found
_ELEMENTS = 4096  # of a large state that an update leaves, where no chosen step begins with it
_LARGE = 2**20  # bytes of a call's tensors, however small the model is


# ---------------------------------------------------------------------------- values and bytes


def _leaves(value, path=""):
    """(path, leaf) for each leaf of nested tuples, lists and dictionaries."""
    if isinstance(value, dict):
        pairs = [(str(key), value[key]) for key in value]
    elif isinstance(value, (tuple, list)):
        pairs = [(str(index), item) for index, item in enumerate(value)]
    else:
        yield path or "0", value
        return
    for key, item in pairs:
        yield from _leaves(item, path + "." + key if path else key)


def _mapped(value, path, change):
    """`value` with change(path, leaf) in place of each leaf; other containers count as leaves."""
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _mapped(item, path + "." + str(key), change))
                           for key, item in value.items())  # fmt: skip
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, path + "." + str(index), change)
                             for index, item in enumerate(value)))  # fmt: skip
    if type(value) in (tuple, list):
        items = (_mapped(item, "%s.%d" % (path, k), change) for k, item in enumerate(value))
        return type(value)(items)
    return change(path, value)


def _plain(value):
    """A hyper-parameter as JSON types. Raises TypeError if JSON cannot hold it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else value.hex()
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return _plain(value.item())
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    raise TypeError(type(value).__name__)


def _simple(values, read=None):
    """The entries of a dictionary that JSON can hold, their keys without leading underscores;
    `read` turns a framework's scalar into a number."""
    entries = {}
    for key, value in values.items():
        if key.startswith("__"):
            continue
        with contextlib.suppress(TypeError):
            entries[key.lstrip("_")] = _plain(read(value) if read else value)
    return entries


def _bits_of_bfloat16(array):
    """The 16-bit patterns of a bfloat16 array: itself, its bits, or itself widened to float32."""
    if array.dtype.itemsize == 2:
        return array.view(np.uint16)
    return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _wide(dtype, array):
    """The array as float64, exactly; BF16 arrays hold the 16-bit patterns."""
    if dtype == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def _squares(dtype, array):
    """The sum of squares, in float64."""
    flat = (_wide(dtype, array) if dtype == "BF16" else array).reshape(-1)
    return float(np.einsum("i,i->", flat, flat, dtype=np.float64))


def _bytes(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _folded(array):
    """1,024 words for an array's bytes: sum over i of (2 i + 1) x[1024 i + j], modulo 2^64.

    The bytes are read as little-endian 64-bit words, padded with zeros.  Odd factors are
    invertible, so a change of one word always changes a sum.  This is twenty times as fast as
    SHA-256, which would take longer than a training step.
    """
    raw = _bytes(array)
    rows = raw.size // 8192
    last = np.zeros(8192, np.uint8)
    last[: raw.size - 8192 * rows] = raw[8192 * rows :]
    words = last.view("<u8") * np.uint64(2 * rows + 1)
    if rows:
        factors = np.arange(1, 2 * rows, 2, dtype=np.uint64)
        words += np.einsum("ij,i->j", raw[: 8192 * rows].view("<u8").reshape(rows, 1024), factors)
    return words


def _number(value):
    """A float for JSON: null if it is not finite (its hex form then gives the value)."""
    return value if value is not None and math.isfinite(value) else None


def _readable(size):
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return "%.1f %s" % (size / scale, unit)
    return "%.1f kB" % (size / 1e3)


def _write_whole(path, write):
    """Write a temporary file in the same folder and rename it: the file is complete or absent."""
    partial = path + ".partial"
    try:
        with open(partial, "wb") as file:
            write(file)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def _repeated(tensors, kept=None):
    """{name: [an earlier name with the same bytes, shape]}: what one layer returns and the next
    receives, gradients that nothing clips; and the places of tensors that are `kept` in the file of
    an earlier step."""
    seen, repeated = {}, {}
    for name, pair in tensors.items():
        dtype, array = pair
        if kept and name in kept and kept[name][0] is pair:
            repeated[name] = kept[name][1]
        if array.nbytes >= _WORTH_SHARING:
            content = _bytes(array)
            sample = content[:: max(1, content.size // _SAMPLE)].tobytes()
            first = seen.setdefault((dtype, content.size, sample), name)
            if first != name and np.array_equal(_bytes(tensors[first][1]), content):
                of, _, *step = repeated.get(first, [first, None])
                repeated.setdefault(name, [of, list(array.shape), *step])
    return repeated


def write_safetensors(path, tensors, metadata, repeated):
    """tensors: name -> (dtype, array). The widest dtypes come first, so every tensor is aligned.
    `repeated`, of `_repeated`, is no tensor of the file: the metadata has its places."""
    if repeated:
        metadata = dict(metadata, repeated=json.dumps(repeated))
    tensors = {name: pair for name, pair in tensors.items() if name not in repeated}
    names = sorted(tensors, key=lambda name: (-tensors[name][1].itemsize, name))
    header, end = {"__metadata__": metadata}, 0
    for name in names:
        dtype, array = tensors[name]
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end],
        }  # fmt: skip
    head = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    head += b" " * (-len(head) % 8)

    def write(file):
        file.write(len(head).to_bytes(8, "little"))
        file.write(head)
        for name in names:
            file.write(_bytes(tensors[name][1]))

    _write_whole(path, write)


# ---------------------------------------------------------------------------- frameworks


class _Framework:
    """What the probe needs from a framework; the defaults are PyTorch's, which OneFlow shares."""

    name = ""
    forward = "forward"  # the method that a layer's call runs
    limits = (
        "Functional calls (residual additions, attention scores, the loss) are not layers: "
        "their tensors are recorded where capture.watch wraps them.",
        "A tied weight has one gradient, the sum over all its uses.",
    )

    def __init__(self):
        self.api = importlib.import_module(self.name)
        base = self._bare_layer()
        self._base = set(vars(base)) | {"name", "full_name"}

    def _bare_layer(self):
        return self.api.nn.Module()

    def is_tensor(self, value):
        return isinstance(value, self.api.Tensor)

    def layers(self, model):
        return model.named_modules()

    def children(self, layer):
        return list(layer.children())

    def parameters(self, model):
        return list(model.named_parameters())

    def own_parameters(self, layer):
        return {key: value for key, value in layer._parameters.items() if value is not None}

    def own_buffers(self, layer):
        return {key: value for key, value in layer._buffers.items() if value is not None}

    def buffers(self, model):
        return list(model.named_buffers())

    def held(self, layer):
        """A layer's plain attributes that are tensors, by attribute; without tensors of one element
        on at most one axis."""
        return {
            key: value
            for key, value in vars(layer).items()
            if key not in self._base and self.is_tensor(value)
            if math.prod(value.shape) != 1 or len(value.shape) > 1
        }

    def own_name(self, name, parameter):
        return name

    def trainable(self, tensor):
        return bool(tensor.requires_grad)

    traces = False  # whether every call of an operator can be recorded

    def device_of(self, tensor):
        return str(tensor.device)

    def enter(self, tensor, receive):
        """What a layer receives in place of an input, so that `receive` gets the layer's own part
        of the input's gradient; and what `leave(outputs)` shall be told of it."""
        copy = self.identity(tensor)
        self.on_gradient(copy, receive)
        return copy, None

    def leave(self, entered, outputs):
        """The layer's call has ended: `entered`, what `enter` returned with each input."""

    def recording_gradients(self):
        return self.api.is_grad_enabled()

    def symbolic(self):
        """Whether a graph is being built: its tensors have no values."""
        return False

    def dtype_of(self, tensor):
        word = str(tensor.dtype).split(".")[-1].lower()
        return DTYPES[_ALIASES.get(word, word)]

    def host(self, tensor, copy=True):
        """(dtype, contiguous array) of a tensor: its bytes, on the host."""
        array = self.numpy(tensor)
        dtype = self.dtype_of(tensor)
        if dtype == "BF16":
            array = _bits_of_bfloat16(array)
        return dtype, np.array(array, order="C") if copy else np.asarray(array, order="C")

    def has_values(self, tensor):
        """Whether a tensor has values: one in a graph that is being built has none."""
        return True

    def shared(self, model):
        """Whether several processes hold one model together; `numpy` then gathers each tensor."""
        return any(self.is_global(parameter) for _, parameter in self.parameters(model))

    def is_global(self, tensor):
        return False

    def numpy(self, tensor):
        return tensor.detach().numpy()

    def differentiable(self, tensor):
        return self.trainable(tensor) and self.recording_gradients()

    def gradient(self, parameter):
        return parameter.grad

    def on_gradient(self, tensor, receive):
        tensor.register_hook(receive)

    def on_update(self, optimizer, before, after):
        """Call before() and after() around each update; return a function that undoes this."""
        return _wrap(optimizer, ("step",), before, after)

    def hyperparameters(self, layer):
        values = {key: value for key, value in vars(layer).items() if key not in self._base}
        entries = _simple(values, self.scalar)
        if "epsilon" in entries:
            entries["eps"] = entries.pop("epsilon")
        return entries

    def scalar(self, value):
        """A framework's scalar as a number, a dtype as its name; anything else unchanged."""
        if self.is_tensor(value) and len(value.shape) <= 1 and math.prod(value.shape) == 1:
            dtype, array = self.host(value)
            return float(_wide(dtype, array).ravel()[0])
        if type(value).__name__ in ("dtype", "DataType", "VarType"):
            return str(value)
        return value

    def renamed(self, optimizer, values, only=None):
        """The hyper-parameters of an optimizer under the oracles' names; `only`: names to keep."""
        hyperparameters = {}
        for key, value in _simple(values, self.scalar).items():
            if only is not None and key not in only:
                continue
            if key == "betas":
                hyperparameters["beta1"], hyperparameters["beta2"] = value
            else:
                hyperparameters[self.word(optimizer, key, _HYPERPARAMETERS)] = value
        return hyperparameters

    def word(self, optimizer, key, words=_STATE):
        special = "%s.%s.%s" % (self.name, type(optimizer).__name__, key)
        return words.get(special, words.get(key, key))

    def defaults(self, optimizer):
        return self.renamed(optimizer, optimizer.defaults)

    def groups(self, optimizer):
        """[(parameters, hyper-parameters)]"""
        return [
            (list(group["params"]), self.renamed(optimizer, _without(group, "params")))
            for group in optimizer.param_groups
        ]

    def exempt(self, optimizer, names):
        """Names of the parameters that the optimizer itself exempts from decay; `names` maps the
        id of a parameter to its name."""
        return []

    def rates(self, optimizer):
        """The current learning rate of each group."""
        return [group.get("lr") for _, group in self.groups(optimizer)]

    def version(self):
        return self.api.__version__

    def flags(self):
        return {}

    def listen(self):
        """Count random draws if the generators' states do not show them; return a function that
        stops counting."""
        return lambda: None

    def random_state(self):
        """A value that changes whenever random numbers are drawn."""
        return _state_of_generators(self.api)


def _arguments(instance):
    """The names of the arguments of the constructors of an object's classes."""
    names = set()
    for kind in type(instance).__mro__[:-1]:
        with contextlib.suppress(TypeError, ValueError):
            names.update(inspect.signature(kind.__init__).parameters)
    return names - {"self", "args", "kwargs", "name", "parameters", "params"}


def _without(values, *keys):
    return {key: value for key, value in values.items() if key not in keys}


def _replace(owner, name, method):
    """Put a method in an instance's place of that name; return a function that undoes it."""
    held, inherited = vars(owner).get(name), name not in vars(owner)
    object.__setattr__(owner, name, method)

    def undo():
        if inherited:
            object.__delattr__(owner, name)
        else:
            object.__setattr__(owner, name, held)

    return undo


def _wrap(owner, methods, before, after):
    """Wrap methods of an instance; nested calls count once. Return a function that undoes it."""
    depth = [0]

    def wrapped(original):
        def call(*args, **kwargs):
            depth[0] += 1
            try:
                if depth[0] == 1:
                    before()
                result = original(*args, **kwargs)
                if depth[0] == 1:
                    after()
                return result
            finally:
                depth[0] -= 1

        return call

    undone = [_replace(owner, name, wrapped(getattr(owner, name))) for name in methods]
    return lambda: [undo() for undo in undone]


class _Torch(_Framework):
    name = "torch"

    def __init__(self):
        super().__init__()
        modes = importlib.import_module("torch.utils._python_dispatch")
        self._quiet = getattr(modes, "_disable_current_modes", contextlib.nullcontext)
        version = [int(part) for part in self.api.__version__.split(".")[:2]]
        self.traces = version >= [2, 3]

    def is_global(self, tensor):
        return hasattr(tensor, "full_tensor")

    def host(self, tensor, copy=True):
        with self._quiet():
            if copy:  # an array of the tensor's own memory would keep it from being freed
                tensor, copy = tensor.detach().clone(), False
            return super().host(tensor, copy)

    def enter(self, tensor, receive):
        with self._quiet():
            edge = tensor.view_as(tensor).grad_fn.next_functions[0]
        return tensor, (edge, receive)

    def leave(self, entered, outputs):
        """Hook the nodes between the outputs and the inputs: the sum of what they pass on to an
        input is the gradient's part that comes through this layer."""
        edges, sums = dict(part for _, part in entered), {}
        left, seen = [tensor.grad_fn for tensor in outputs], {node for node, _ in edges}

        def hooked(node):
            def take(gradients, cotangents):
                for place, edge in enumerate(node.next_functions):
                    if edge in edges and gradients[place] is not None:
                        with self._quiet():
                            sums[edge, node, place] = gradients[place]
                            parts = [part for key, part in sums.items() if key[0] == edge]
                            edges[edge](sum(parts[1:], parts[0]))

            return take

        while left:
            node = left.pop()
            if node is not None and node not in seen:
                seen.add(node)
                left += [edge[0] for edge in node.next_functions]
                if edges.keys() & set(node.next_functions):
                    node.register_hook(hooked(node))

    def numpy(self, tensor):
        tensor = tensor.detach()
        if self.is_global(tensor):
            tensor = tensor.full_tensor()  # gathered on every process
        if tensor.layout != self.api.strided:
            tensor = tensor.to_dense()
        tensor = tensor.resolve_conj().to("cpu")
        if tensor.dtype == self.api.bfloat16:
            return tensor.contiguous().view(self.api.int16).numpy()
        return tensor.numpy()

    def symbolic(self):
        return self.api.jit.is_tracing()

    def on_accumulation(self, parameter, receive):
        return parameter.register_post_accumulate_grad_hook(lambda p: receive(p.grad)).remove

    def on_update(self, optimizer, before, after):
        first = optimizer.register_step_pre_hook(lambda *_: before())
        last = optimizer.register_step_post_hook(lambda *_: after())
        return lambda: (first.remove(), last.remove())

    def state(self, optimizer, names):
        for parameter, values in optimizer.state.items():
            for key, value in values.items():
                yield names.get(id(parameter), ""), key, value

    def assign(self, parameter, bits):
        narrow = parameter.dtype == self.api.bfloat16
        new = self.api.from_numpy(bits.view(np.int16) if narrow else bits)
        with self.api.no_grad():
            parameter.copy_(new.view(self.api.bfloat16) if narrow else new)

    def flags(self):
        torch = self.api
        return {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "default_dtype": str(torch.get_default_dtype()),
            "cudnn_deterministic": torch.backends.cudnn.deterministic,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "mkldnn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
        }


class _Paddle(_Framework):
    name = "paddle"
    limits = (
        *_Framework.limits,
        "A layer that changes its input in place changes a copy of it in chosen steps.",
        "Gradients that are rows of a table (sparse=True) are not recorded.",
    )

    def _bare_layer(self):
        return self.api.nn.Layer()

    def layers(self, model):
        return model.named_sublayers(include_self=True)

    def hyperparameters(self, layer):
        values = super().hyperparameters(layer)
        return _without(values, "name", "weight_attr", "bias_attr", "device")

    def own_name(self, name, parameter):
        return parameter.name

    def trainable(self, tensor):
        return not tensor.stop_gradient

    def device_of(self, tensor):
        return str(tensor.place).replace("Place(", "").rstrip(")")

    def numpy(self, tensor):
        return tensor.numpy()

    def identity(self, tensor):
        return self.api.assign(tensor)

    def symbolic(self):
        return not self.api.in_dynamic_mode()

    def gradient(self, parameter):
        main = getattr(parameter, "main_grad", None)
        value = parameter._grad_ivar() if main is None else main
        return None if value is None or value.is_selected_rows() else value

    def on_accumulation(self, parameter, receive):
        parameter._register_backward_hook(lambda: receive(self.gradient(parameter)))
        return None

    def on_update(self, optimizer, before, after):
        return _wrap(optimizer, ("step", "minimize"), before, after)

    def defaults(self, optimizer):
        hyperparameters = self.renamed(optimizer, vars(optimizer), _arguments(optimizer))
        hyperparameters.update(self.renamed(optimizer, getattr(optimizer, "_default_dict", {})))
        decay = optimizer.regularization
        if decay is not None:
            hyperparameters["weight_decay"] = self.coefficient(decay)
            hyperparameters["weight_decay_by"] = type(decay).__name__
        elif isinstance(getattr(optimizer, "_lamb_weight_decay", None), float):
            hyperparameters["weight_decay"] = optimizer._lamb_weight_decay
        if getattr(optimizer, "_regularization_method", "") == "l2_decay":  # fused into its kernel
            hyperparameters["weight_decay"] = float(optimizer._regularization_coeff)
            hyperparameters["weight_decay_by"] = "L2Decay"
        clip = optimizer._grad_clip
        if clip is not None:
            hyperparameters["grad_clip"] = dict(_simple(vars(clip)), type=type(clip).__name__)
        hyperparameters["lr"] = float(optimizer.get_lr())
        words = "learning_rate", "regularization_method", "regularization_coeff"
        return _without(hyperparameters, *words)

    def groups(self, optimizer):
        param_groups = optimizer._param_groups
        shared = _without(self.defaults(optimizer), "grad_clip", "weight_decay_by")
        if not param_groups or not isinstance(param_groups[0], dict):
            return [(list(param_groups), shared)]
        described = []
        for group in param_groups:
            own = self.renamed(optimizer, _without(group, "params", "learning_rate", "grad_clip"))
            scale = group.get("learning_rate", 1.0)
            own["lr"] = float(optimizer.get_lr()) * float(scale)
            described.append((list(group["params"]), dict(shared, **own)))
        return described

    def rates(self, optimizer):
        return [float(group["lr"]) for _, group in self.groups(optimizer)]

    def exempt(self, optimizer, names):
        by_name = getattr(optimizer, "_apply_decay_param_fun", None)
        by_value = getattr(optimizer, "_exclude_from_weight_decay_fn", None)
        exempted = []
        for parameters, _ in self.groups(optimizer):
            for parameter in parameters:
                own = getattr(parameter, "regularizer", None)
                if (
                    (by_name is not None and not by_name(parameter.name))
                    or (by_value is not None and by_value(parameter))
                    or (own is not None and self.coefficient(own) == 0.0)
                ):
                    exempted.append(names.get(id(parameter), parameter.name))
        return exempted

    def coefficient(self, decay):
        """The coefficient of an L1Decay or L2Decay."""
        return float(getattr(decay, "_coeff", getattr(decay, "_regularization_coeff", 0.0)))

    def clips(self, optimizer):
        """The gradient clips that the optimizer itself applies."""
        groups = [group for group in optimizer._param_groups or () if isinstance(group, dict)]
        clips = [optimizer._grad_clip] + [group.get("grad_clip") for group in groups]
        return list({id(clip): clip for clip in clips if clip is not None}.values())

    def state(self, optimizer, names):
        by_name = dict(names["by own name"])
        for key, values in optimizer._accumulators.items():
            for parameter, value in values.items():
                yield by_name.get(parameter, ""), key, value
        for parameter, value in getattr(optimizer, "_master_weights", {}).items():
            yield by_name.get(parameter, ""), "master", value

    def assign(self, parameter, bits):
        parameter.set_value(bits)

    def flags(self):
        names, values = ["FLAGS_cudnn_deterministic", "FLAGS_embedding_deterministic"], {}
        with contextlib.suppress(ValueError):
            values = self.api.get_flags(names)
        return dict(_simple(values), default_dtype=self.api.get_default_dtype())

    def random_state(self):
        """The words of each generator's state, without its address in memory."""
        return [
            [word for word in str(state).split() if not word.startswith("0x")]
            for state in self.api.get_rng_state()
        ]


class _OneFlow(_Framework):
    name = "oneflow"
    limits = (
        *_Framework.limits,
        "Inside an nn.Graph nothing is recorded: values there are symbolic.",
    )

    def has_values(self, tensor):
        return not tensor.is_lazy

    def is_global(self, tensor):
        return tensor.is_global

    def device_of(self, tensor):
        if not tensor.is_global:
            return str(tensor.device)
        split = ", ".join(str(part).replace("oneflow.sbp.", "") for part in tensor.sbp)
        return "%s %s %s" % (tensor.placement.type, tensor.placement.ranks.tolist(), split)

    def identity(self, tensor):
        return self.api._C.identity(tensor)

    def symbolic(self):
        return self.api._oneflow_internal.lazy_mode.is_enabled()

    def on_accumulation(self, parameter, receive):
        parameter._register_post_grad_accumulation_hook(lambda gradient: receive(gradient))
        return None

    def defaults(self, optimizer):
        return self.renamed(optimizer, optimizer._default_options)

    def groups(self, optimizer):
        return [
            (list(group._parameters), self.renamed(optimizer, group._options))
            for group in optimizer.param_groups
        ]

    def state(self, optimizer, names):
        for key, value in optimizer._state.items():
            if isinstance(key, str):
                yield "", key, value
            else:
                for word, tensor in value.items():
                    yield names.get(id(key), ""), word, tensor

    def assign(self, parameter, bits):
        with self.api.no_grad():
            if not parameter.is_global:
                parameter.copy_(self.api.tensor(bits, device=parameter.device))
                return
            whole = self.api.tensor(bits).to_global(
                placement=parameter.placement, sbp=[self.api.sbp.broadcast] * len(parameter.sbp)
            )
            parameter.copy_(whole.to_global(sbp=parameter.sbp))

    def listen(self):
        """Count calls of the functions that draw: OneFlow's generators do not show their draws."""
        self._drawn, undo = 0, []

        def counted(function):
            @functools.wraps(function)
            def call(*args, **kwargs):
                self._drawn += 1
                return function(*args, **kwargs)

            return call

        for module in (self.api, self.api._C, self.api.nn.functional):
            for name, function in list(vars(module).items()):
                if callable(function) and _DRAWING.search(name):
                    setattr(module, name, counted(function))
                    undo.append((module, name, function))
        return lambda: [setattr(*original) for original in undo]

    def random_state(self):
        return self._drawn


class _MindSpore(_Framework):
    name = "mindspore"
    forward = "construct"
    limits = (
        *_Framework.limits,
        "A function under mindspore.jit that calls the model cannot run in a chosen step.",
        "gradients/…/backward is the sum of what each parameter's hook receives.",
    )

    def _bare_layer(self):
        return self.api.nn.Cell()

    def layers(self, model):
        return model.cells_and_names()

    def children(self, layer):
        return list(layer.cells())

    def parameters(self, model):
        return list(model.parameters_and_names())

    def own_parameters(self, layer):
        return {key: value for key, value in layer._params.items() if value is not None}

    def buffers(self, model):
        return []

    def own_buffers(self, layer):
        return {}

    def held(self, layer):
        """Without the initial values that an Embedding keeps: its construct does not read them."""
        return {key: value for key, value in super().held(layer).items() if key != "init_tensor"}

    def own_name(self, name, parameter):
        return parameter.name

    def device_of(self, tensor):
        return str(self.api.get_context("device_target"))

    def differentiable(self, tensor):
        return str(tensor.dtype).startswith(("Float", "BFloat"))

    def numpy(self, tensor):
        return tensor.asnumpy()

    def gradient(self, parameter):
        return None

    def identity(self, tensor):
        return tensor * 1.0

    def on_gradient(self, tensor, receive):
        def hook(gradient):
            receive(gradient)
            return gradient

        try:
            return tensor.register_hook(hook)
        except RuntimeError as error:
            if "requires grad is false" in str(error):  # depends on no weight and no argument
                return None
            raise

    def on_accumulation(self, parameter, receive):
        return self.on_gradient(parameter, receive).remove

    def on_update(self, optimizer, before, after):
        handles = [
            optimizer.register_forward_pre_hook(lambda cell, args: before(args[0])),
            optimizer.register_forward_hook(lambda cell, args, result: after()),
        ]
        return lambda: [handle.remove() for handle in handles]

    def hyperparameters(self, layer):
        return _without(super().hyperparameters(layer), "cell_init_args", "shp_flat")

    def defaults(self, optimizer):
        values = {
            key: value
            for key, value in vars(optimizer).items()
            if key not in self._base and not isinstance(value, tuple)
        }
        values.update(optimizer._params)
        init_args = getattr(optimizer, "init_args", {})  # where a decorator hides the signature
        hyperparameters = self.renamed(optimizer, values, _arguments(optimizer) | set(init_args))
        rate = hyperparameters.pop("learning_rate", None)
        first = self.scalar(getattr(optimizer, "init_learning_rate", rate))
        if isinstance(first, float):
            hyperparameters["lr"] = first
        return hyperparameters

    def groups(self, optimizer):
        if hasattr(optimizer, "param_groups"):
            return super().groups(optimizer)
        shared = self.defaults(optimizer)
        parameters, rates = list(optimizer.parameters), optimizer.get_lr()  # one, or each's own
        rates = list(rates) if isinstance(rates, (tuple, list)) else [rates] * len(parameters)
        rates, decays = [float(self.scalar(rate)) for rate in rates], optimizer.weight_decay
        if not isinstance(decays, tuple):
            return [(parameters, dict(shared, lr=rates[0]))]
        parameters_by_setting = OrderedDict()
        for parameter, rate, decay in zip(parameters, rates, decays):
            key = (rate, self.scalar(decay))
            parameters_by_setting.setdefault(key, []).append(parameter)
        return [
            (members, dict(shared, lr=rate, weight_decay=decay))
            for (rate, decay), members in parameters_by_setting.items()
        ]

    def exempt(self, optimizer, names):
        flags = getattr(optimizer, "decay_flags", None)
        if flags is None or not getattr(optimizer, "exec_weight_decay", False):
            return []
        if optimizer.is_group:
            return []  # groups name their decay themselves
        return [
            names.get(id(parameter), parameter.name)
            for parameter, decayed in zip(optimizer.parameters, flags)
            if not decayed
        ]

    def state(self, optimizer, names):
        by_name = dict(names["by own name"])
        for key, value in optimizer._params.items():
            if key in by_name or key.startswith("learning_rate") or key == "momentum":
                continue
            parts = key.split(".")
            ends = [cut for cut in range(1, len(parts)) if ".".join(parts[cut:]) in by_name]
            if ends:
                name = by_name[".".join(parts[ends[0] :])]
                yield name, ".".join(parts[: ends[0]]), value
            else:
                yield "", key, value

    def assign(self, parameter, bits):
        parameter.set_data(self.api.Tensor(bits, parameter.dtype))

    def flags(self):
        values = {}
        for name in ("mode", "device_target", "deterministic", "jit_level"):
            with contextlib.suppress(ValueError, TypeError, KeyError, RuntimeError):
                values[name] = _plain(self.api.get_context(name))
        return values

    def listen(self):
        """Count requests for a seed: each draw makes one, and leaves no other trace."""
        module, self._drawn = importlib.import_module("mindspore.common.seed"), 0
        original = module.get_seed

        def get_seed():
            self._drawn += 1
            return original()

        module.get_seed = get_seed

        def end():
            module.get_seed = original

        return end

    def random_state(self):
        state = self.api.get_rng_state() if hasattr(self.api, "get_rng_state") else None
        return self._drawn, None if state is None else state.asnumpy().tobytes()


_FRAMEWORKS = (_Torch, _Paddle, _OneFlow, _MindSpore)


def _framework_of(model):
    """The framework of a model, found from the modules of its classes."""
    roots = [kind.__module__.split(".")[0] for kind in type(model).__mro__]
    for framework in _FRAMEWORKS:
        if framework.name in roots:
            return framework()
    raise TypeError(
        "%s is not a layer of torch, paddle, oneflow or mindspore: give the model itself"
        % type(model).__name__
    )


def _state_of_generators(torch):
    """What changes whenever PyTorch draws random numbers without a generator of its caller's."""
    states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return b"".join(state.numpy().tobytes() for state in [torch.get_rng_state(), *states])


def _module_names(model):
    return {id(part): name for name, part in model.named_modules()}


_OPEN_TRACES = []  # of this process: modes end in the order in which they began, so it has one


def tracer(torch):
    """The class of dispatch modes that record ATen calls, each with its constants and the numbers
    of its tensors. A number stands for a place in memory: a storage, an offset, a shape.

    What no call made is a leaf, whose value is kept; so are random results. Everything else follows
    from running the calls again. The norms of results show whether it does.
    """
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode

    named = (torch.dtype, torch.device, torch.layout, torch.memory_format)

    def plain(tensor):
        """Whether a tensor is its own memory and nothing else."""
        return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided

    class Trace(TorchDispatchMode):
        """`keep(key, tensor)` keeps a value; `leaves`: (key, tensor) of those kept elsewhere."""

        own = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep, os.path.abspath(__file__))

        def __init__(self, keep, model=None, leaves=()):
            super().__init__()
            self.calls, self.leaves, self.drawn, self.unseen = [], {}, {}, set()
            self.places, self.last, self._keep, self._parts = {}, None, keep, set()
            self._memory, self._count, self._stack, self._hooks, self._forward = {}, 0, [], [], {}
            self._names = {} if model is None else _module_names(model)
            for key, tensor in leaves:
                if plain(tensor) and self._known(tensor) is None:
                    self._add_leaf(tensor, key)

        def __enter__(self):
            register = torch.nn.modules.module
            self._hooks = [
                register.register_module_forward_pre_hook(self._enter_module),
                register.register_module_forward_hook(self._leave_module, always_call=True),
            ]
            return super().__enter__()

        def __exit__(self, *reason):
            for hook in self._hooks:
                hook.remove()
            return super().__exit__(*reason)

        def _enter_module(self, module, inputs):
            if not self._stack and id(module) not in self._names:
                self._names = {**_module_names(module), **self._names}
            self._stack.append(self._names.get(id(module), type(module).__name__))

        def _leave_module(self, module, inputs, result):
            del self._stack[-1:]
            if not self._stack:
                self.last = result

        def _place(self):
            """The module and line that call; in a backward pass those of the forward call."""
            node = torch._C._current_autograd_node()
            if node is not None and node._sequence_nr() in self._forward:
                return self._forward[node._sequence_nr()]
            frame = sys._getframe(2)
            while frame is not None and frame.f_code.co_filename.startswith(self.own):
                frame = frame.f_back
            line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
            number = self.places.setdefault(((self._stack or [""])[-1], *line), len(self.places))
            self._forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, number)  # its node
            return number

        def _spans(self, tensor):
            storage = tensor.untyped_storage()
            # the weak reference keeps the address from being given to another storage
            if storage._cdata not in self._memory:
                self._memory[storage._cdata] = StorageWeakRef(storage), {}
            key = tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
            return self._memory[storage._cdata][1], key

        def _known(self, tensor):
            spans, key = self._spans(tensor)
            return spans.get(key)

        def _add_tensor(self, tensor):
            spans, key = self._spans(tensor)
            self._count = spans[key] = self._count + 1
            return self._count

        def _add_leaf(self, tensor, key):
            number, memory = self._add_tensor(tensor), tensor.untyped_storage().nbytes()
            self.leaves[number] = key
            if not tensor.is_contiguous() or tensor.numel() * tensor.element_size() < memory:
                self._parts.add(number)
            return number

        def number(self, tensor):
            """The tensor's number. One of unknown memory is a leaf, as is one beside a leaf that is
            kept in part; one that sees known memory otherwise is made by a call of its own."""
            if not plain(tensor):
                self.unseen.add(type(tensor).__name__)
                return None
            spans, key = self._spans(tensor)
            if key in spans:
                return spans[key]
            known = [n for k, n in spans.items() if k[3] == tensor.dtype and n not in self._parts]
            if known:
                number = self._add_tensor(tensor)
                given = [{"t": known[0]}, list(key[1]), list(key[2]), key[0]]
                view = "aten.as_strided.default", given, {}, [number], self._place(), [None]
                self.calls.append(view)
                return number
            number = self._add_leaf(tensor, "trace/%d" % (self._count + 1))
            self._keep(self.leaves[number], tensor)
            return number

        def _given(self, value):
            if isinstance(value, torch.Tensor):
                return {"t": self.number(value)}
            if isinstance(value, (tuple, list)):
                return [self._given(item) for item in value]
            if isinstance(value, dict):
                return {key: self._given(item) for key, item in value.items()}
            if isinstance(value, named):
                return {type(value).__name__: str(value).replace("torch.", "")}
            if isinstance(value, float) and not math.isfinite(value):
                return {"float": str(value)}
            if value is None or isinstance(value, (bool, int, float, str)):
                return value
            self.unseen |= {type(value).__name__} - {"Generator"}  # what it draws is kept
            return None

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            strange = {kind.__name__ for kind in {*types} - {torch.Tensor, torch.nn.Parameter}}
            self.unseen |= strange
            if strange or function.namespace == "profiler":
                return function(*args, **kwargs)
            given = self._given(args), self._given(kwargs)
            may_draw = torch.Tag.nondeterministic_seeded in function.tags
            state = _state_of_generators(torch) if may_draw else None
            result = function(*args, **kwargs)
            numbers, norms = [], []
            aliases = [value.alias_info for value in function._schema.returns]
            moves = any(alias is not None and not alias.is_write for alias in aliases)
            # attention without dropout draws nothing; of other devices' generators nothing is known
            tensors = [leaf for _, leaf in _leaves(result) if isinstance(leaf, torch.Tensor)]
            random_ = may_draw and (
                any(isinstance(leaf, torch.Generator) for _, leaf in _leaves([args, kwargs]))
                or any(tensor.device.type not in ("cpu", "cuda") for tensor in tensors)
                or state != _state_of_generators(torch)
            )
            for _, value in _leaves(result):
                if not plain(value):
                    numbers, norms = [*numbers, None], [*norms, None]
                    continue
                known = None if random_ else self._known(value)
                numbers.append(self._add_tensor(value) if known is None else known)
                if random_:
                    self.drawn[numbers[-1]] = "trace/%d" % numbers[-1]
                    self._keep(self.drawn[numbers[-1]], value)
                norms.append(None if moves else self._norm(value))
            self.calls.append((str(function), *given, numbers, self._place(), norms))
            return result

        def _norm(self, value):
            """A number that shows whether running the calls again gives the same result."""

        def record(self):
            """What was recorded, as JSON."""
            return {"calls": self.calls, "places": list(self.places), "leaves": self.leaves,
                    "drawn": self.drawn, "unseen": sorted(self.unseen)}  # fmt: skip

    return Trace


def _tracing(torch, capture):
    """A mode that records the calls of a captured step."""
    places = (("parameters", capture._parameters), ("buffers", capture._buffers))
    leaves = [("%s/%s/before" % (word, name), tensor) for word, tensors in places
              for name, tensor in tensors.items()]  # fmt: skip

    class StepTrace(tracer(torch)):
        def __init__(self):
            super().__init__(capture._put, capture._model, leaves)
            self.outputs, self._open, self._within = [], True, 0
            _OPEN_TRACES.append(self)
            self.__enter__()

        def close(self, gradients):
            """End the recording; `gradients`: those that the update receives, by parameter."""
            if not self._open:
                return
            self._open = False
            _OPEN_TRACES.remove(self)
            self.__exit__(None, None, None)
            self.gradients = {name: self.number(value) for name, value in gradients.items()}

        def _enter_module(self, module, inputs):
            self._within += module is capture._model
            super()._enter_module(module, inputs)

        def _leave_module(self, module, inputs, result):
            super()._leave_module(module, inputs, result)
            if module is capture._model:
                self._within -= 1
                tensors = [leaf for _, leaf in _leaves(result) if isinstance(leaf, torch.Tensor)]
                self.outputs += [self.number(leaf) for leaf in tensors if leaf.is_floating_point()]

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if not self._open:
                return function(*args, **(kwargs or {}))
            before = len(self.calls)
            if function._schema.is_mutable:
                self._keep_weights((args, kwargs or {}))
            result = super().__torch_dispatch__(function, types, args, kwargs)
            outside = self._within > 0 and not capture._inside and not capture._traced
            if outside and len(self.calls) > before and set(self.calls[-1][-1]) - {None}:
                capture._functions[str(function).rpartition(".")[0]] += 1
            return result

        def _keep_weights(self, given):
            """Keep weights that a call may change: others are recorded in front of the update."""
            kinds = torch.Tensor, torch.nn.Parameter
            for _, leaf in _leaves(given):
                own = type(leaf) in kinds and leaf.layout == torch.strided
                for number in self._spans(leaf)[0].values() if own else ():
                    key = self.leaves.get(number, "")
                    if key.startswith("parameters/") and key.endswith("/before"):
                        name = key[len("parameters/") : -len("/before")]
                        self.leaves[number] = "parameters/%s/begin" % name
                        capture._put(self.leaves[number], capture._parameters[name])

        def _norm(self, value):
            if not value.is_floating_point() or value.element_size() < 2 or not value.numel():
                return None
            wide = None if value.element_size() > 2 else torch.float32
            return _number(float(torch.linalg.vector_norm(value.detach(), dtype=wide)))

        def record(self, loss):
            places = [(module, os.path.basename(file), line) for module, file, line in self.places]
            known = self._known(loss) if isinstance(loss, torch.Tensor) else None
            return dict(super().record(), places=places, gradients=self.gradients,
                        outputs=self.outputs, loss=known)  # fmt: skip

    return StepTrace()


def _compiled(model, layers):
    """{name: reason} for the layers whose forward no longer runs as Python."""
    reasons, roots = {}, []
    for name, layer in layers:
        kinds = [kind.__name__ for kind in type(layer).__mro__]
        if "OptimizedModule" in kinds or getattr(layer, "_compiled_call_impl", None) is not None:
            roots.append((name, "inside torch.compile"))
        elif "ScriptModule" in kinds:
            roots.append((name, "a TorchScript module"))
        elif "StaticFunction" in type(getattr(layer, "forward", None)).__name__:
            roots.append((name, "inside paddle.jit.to_static"))
        for root, reason in roots:
            if root == "" or name == root or name.startswith(root + "."):
                reasons[name] = reason
    return reasons


def _rank(names):
    """The number in the first of these variables of the environment that holds one."""
    return next((int(os.environ[n]) for n in names if os.environ.get(n, "").isdigit()), None)


# ---------------------------------------------------------------------------- the probe


class Capture:
    """Records a training run under ``folder/rank_N``; use it as a context manager.

    model, optimizer  the root layer, and its optimizer (None: no update is recorded)
    steps, every      the chosen steps, and also each multiple of `every`
    only              a glob, or a list of globs: the layers whose tensors are recorded, by name
    rank, world_size  read from the environment by default
    perturb           a seed: one weight is moved by one ulp at entry
    hash_every        hash every n-th step, with its gradient norm (0: chosen steps only)
    first_step        the number of the first step
    notes             your own dictionary, for run.json

    Raises TypeError for a model of an unknown framework, ValueError for invalid arguments,
    FileExistsError if the folder holds a run, OSError if the disk lacks space.
    """

    def __init__(
        self, folder: Union[str, os.PathLike[str]], model: Any, optimizer: Any = None,
        steps: Iterable[int] = (0, 1, 2), every: int = 0,
        only: Union[str, Iterable[str], None] = None,
        rank: Optional[int] = None, world_size: Optional[int] = None,
        perturb: Optional[int] = None, hash_every: int = 1, first_step: int = 0,
        notes: Optional[Mapping[str, Any]] = None,
    ) -> None:  # fmt: skip
        self._framework = _framework_of(model)
        while hasattr(optimizer, "optimizer") and hasattr(optimizer, "param_groups"):
            optimizer = optimizer.optimizer  # a wrapper around the one that updates
        self._model, self._optimizer = model, optimizer
        self._steps = sorted({_count("steps", step) for step in steps})
        self._every = _count("every", every)
        self._hash_every = _count("hash_every", hash_every)
        self._first_step = _count("first_step", first_step)
        self._chooses = only is None
        self._globs = ["*"] if only is None else [only] if isinstance(only, str) else list(only)
        self._rank = _count("rank", rank if rank is not None else _rank(_RANKS) or 0)
        world = world_size if world_size is not None else _rank(_WORLDS)
        self._world_size = _count("world_size", world if world is not None else 1)
        if self._rank >= max(self._world_size, 1):
            raise ValueError(
                "rank %d is not among %d processes: give rank= and world_size= together"
                % (self._rank, self._world_size)
            )
        # Processes that hold one model together are one run, which the first of them writes.
        self._processes = self._world_size if self._framework.shared(model) else 1
        self._writes = self._processes == 1 or self._rank == 0
        if self._processes > 1:
            self._rank, self._world_size = 0, 1
        self._perturb = perturb
        self._notes = _plain(notes if notes is not None else {})
        if self._framework.name == "mindspore" and self._framework.flags().get("mode") == 0:
            raise ValueError(
                "MindSpore runs in graph mode, where no layer can be seen: call "
                "mindspore.set_context(mode=mindspore.PYNATIVE_MODE) before the capture"
            )
        self._folder = os.path.join(os.fspath(folder), "rank_%d" % self._rank)
        self._open = False

    # ------------------------------------------------------------------ entry and exit

    def __enter__(self) -> Capture:
        if self._writes and os.path.exists(os.path.join(self._folder, "run.json")):
            words = "already holds a run: choose another folder, or remove it"
            raise FileExistsError("%s %s" % (self._folder, words))
        framework = self._framework
        self._list_model()
        self._perturbed = None if self._perturb is None else self._move_one_weight()
        self._initial = self._hash_of_parameters()
        self._missed, self._trace, self._functions = [], None, Counter()
        self._random = {"layers": [], "before": False, "outside": False}
        self._traced = False
        self._never_called, self._order = [], []
        self._watched, self._last_calls = set(), {}
        self._chosen_steps, self._kept, self._state_words = 0, {}, {}
        self._undo, self._undo_step = [], []
        self._gate = [self]  # emptied at exit: hooks and wrappers may outlive the capture
        self._permanent_hooks = False
        self._optimizer_record = self._describe_optimizer()
        lines = os.devnull
        if self._writes:
            os.makedirs(self._folder, exist_ok=True)
            lines = os.path.join(self._folder, "steps.jsonl")
        self._check_room()
        self._lines = open(lines, "w", encoding="utf-8")
        if self._optimizer is not None:
            self._undo.append(framework.on_update(self._optimizer, self._before, self._after))
        self._undo.append(framework.listen())
        self._step = self._first_step
        self._open = True
        self._write_run(complete=False)
        self._begin()
        self._mark = time.perf_counter()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._end_of_step()
        self._gate[0] = None
        for undo in reversed(self._undo):
            undo()
        self._open = False
        self._lines.close()
        if kind is not None and self._framework.name == "mindspore":
            self._tell(
                "if a function under mindspore.jit calls the model, take the decorator off: "
                "in a chosen step each layer must run as Python"
            )
        if kind is not None:
            self._missed.append("%s ended the capture in step %d." % (kind.__name__, self._step))
        self._write_run(complete=kind is None)

    def step(self, loss: Any = None, batch: Any = None, **values: Any) -> None:
        """End a step: write its line, and its tensors if it is a chosen step."""
        if not self._open:
            raise RuntimeError("capture.step belongs inside the `with Capture(...)` block")
        start = time.perf_counter()
        chosen, hashing = self._chosen, self._hashing
        norm = self._norm
        if hashing and not self._updates and self._optimizer is not None:
            norm = self._norm_of_skipped_gradients()
        batch_hash, rows = self._hash_of_batch(batch) if batch is not None else (None, None)
        hashes = {"batch": batch_hash, "gradients": self._gradient_hash,
                  "parameters": self._hash_of_parameters() if hashing else None}  # fmt: skip
        line = {
            "step": self._step, **self._loss(loss), "lr": self._rates,
            "gradient_norm": _number(norm), "updates": self._updates, "hash": hashes,
            "gradient_norm_hex": None if norm is None else norm.hex(), "rows": rows,
            "seconds": start - self._mark, "changed": self._changed,
            "values": {key: self._plain_number(value, key) for key, value in values.items()},
        }  # fmt: skip
        reason = self._finish(batch, loss) if chosen else None
        line.update(captured=chosen and reason is None, reason=reason)
        self._end_of_step()
        self._lines.write(json.dumps(line, allow_nan=False) + "\n")
        self._lines.flush()
        self._step += 1
        if chosen:
            self._chosen_steps += 1
            self._write_run(complete=False)
        self._begin()
        self._mark = time.perf_counter()

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Record the calls of a function, or of a layer outside the model, like those of a layer.

            gelu = capture.watch("gelu", torch.nn.functional.gelu)
            loss_of = capture.watch("loss", torch.nn.CrossEntropyLoss())

        Call the returned object in place of `function`. Raises ValueError for a name that is taken,
        TypeError for an object that cannot be called.
        """
        if not callable(function):
            raise TypeError("watch: %r is neither a function nor a layer" % type(function).__name__)
        if not self._open:
            raise ValueError("capture.watch belongs inside the `with Capture(...)` block")
        if name in self._layers:
            raise ValueError("watch: use another name than %r" % name)
        self._layers[name] = self._recorded[name] = function
        self._watched.add(name)
        recording = self._recording(name, function, function)
        gate = self._gate

        def watched(*args, **kwargs):
            capture = gate[0]
            chosen = capture is not None and capture._chosen
            if not chosen or capture._framework.symbolic():
                return function(*args, **kwargs)
            return recording(*args, **kwargs)

        self._write_run(complete=False)
        return watched

    # ------------------------------------------------------------------ the model and its bytes

    def _list_model(self):
        framework, model = self._framework, self._model
        self._parameters, self._name_of = OrderedDict(), {}
        for name, parameter in framework.parameters(model):
            if id(parameter) not in self._name_of:
                self._name_of[id(parameter)] = name
                self._parameters[name] = parameter
        self._names = dict(self._name_of)
        self._names["by own name"] = [
            (framework.own_name(name, parameter), name)
            for name, parameter in self._parameters.items()
        ]
        self._buffers = OrderedDict(framework.buffers(model))
        pairs = self._parameters.items()
        self._trainable = [name for name, value in pairs if framework.trainable(value)]
        self._layers, everything = OrderedDict(), []
        for name, layer in framework.layers(model):
            everything.append((name, layer))
            if not framework.children(layer) or framework.own_parameters(layer):
                self._layers[name or _ROOT] = layer
        self._unseen = _compiled(model, everything)
        self._recorded = OrderedDict(
            (name, layer)
            for name, layer in self._layers.items()
            if any(fnmatch.fnmatchcase(name, glob) for glob in self._globs)
            and ("" if name == _ROOT else name) not in self._unseen
        )
        if not self._recorded and not self._unseen and self._layers:
            raise ValueError(
                "only=%r matches none of the %d layers, such as %r"
                % (self._globs, len(self._layers), next(iter(self._layers)))
            )

    def _hash_of_parameters(self):
        digest = hashlib.sha256()
        for parameter in self._parameters.values():
            digest.update(_bytes(_folded(self._framework.host(parameter, copy=False)[1])))
        return digest.hexdigest()

    def _hash_of_batch(self, batch):
        """(sha256 of all arrays, one short hash for each index of their common first axis)."""
        digest, arrays = hashlib.sha256(), []
        for _, leaf in _leaves(batch):
            array = self._array(leaf)
            if array is None:
                digest.update(repr(leaf).encode("utf-8"))
                continue
            if array.dtype.kind in "iub":
                array = array.astype(np.int64)
            array = np.ascontiguousarray(array)
            digest.update(("%s%s" % (array.dtype.str, list(array.shape))).encode("ascii"))
            digest.update(_bytes(array))
            arrays.append(array)
        arrays = [array for array in arrays if array.ndim]
        if not arrays or len(arrays[0]) > 4096:
            return digest.hexdigest(), None
        alike = [array for array in arrays if len(array) == len(arrays[0])]
        rows = (b"".join(array[k].tobytes() for array in alike) for k in range(len(arrays[0])))
        return digest.hexdigest(), [hashlib.sha256(row).hexdigest()[:16] for row in rows]

    def _array(self, leaf):
        """A NumPy array of a tensor or an array of numbers, None for anything else."""
        if self._framework.is_tensor(leaf):
            if self._processes > 1 and not self._framework.is_global(leaf):
                self._miss("The batch has local tensors: only the first process's are recorded.")
            return self._framework.host(leaf, copy=False)[1]
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf":
            return leaf
        return None

    def _plain_number(self, value, name):
        try:
            return _plain(self._framework.scalar(value))
        except TypeError as error:
            raise TypeError("%s is a %s: give a number or a string" % (name, error)) from None

    def _loss(self, loss):
        if loss is None:
            return {"loss": None, "loss_hex": None, "loss_dtype": None}
        if self._framework.is_tensor(loss):
            dtype, array = self._framework.host(loss)
            word = next(word for word, code in DTYPES.items() if code == dtype)
        else:
            array = np.asarray(loss)
            dtype = word = str(array.dtype)
            if array.dtype.kind not in "biuf":
                raise TypeError("loss is a %s: give a number or a tensor" % type(loss).__name__)
        values = _wide(dtype, array).ravel()
        if values.size != 1:
            raise ValueError("loss has %d elements: give one number" % values.size)
        value = float(values[0])
        return {"loss": _number(value), "loss_hex": value.hex(), "loss_dtype": word}

    def _move_one_weight(self):
        """Move one finite nonzero weight by one ulp; the same weight on every rank."""
        framework, rng = self._framework, np.random.default_rng(self._perturb)
        pairs = ((name, framework.host(self._parameters[name], False)) for name in self._trainable)
        real = [(name, *pair) for name, pair in pairs if pair[0] in ("BF16", "F16", "F32", "F64")]
        ends = np.cumsum([array.size for _, _, array in real])
        if not real or not ends[-1]:
            raise ValueError("perturb: the model has no trainable weight in floating point")
        for _ in range(10000):
            index, up = int(rng.integers(ends[-1])), bool(rng.integers(2))
            k = int(np.searchsorted(ends, index, "right"))
            name, dtype, array = real[k][0], real[k][1], np.array(real[k][2], order="C")
            index -= int(ends[k]) - array.size
            value = float(_wide(dtype, array).ravel()[index])
            bits = array.view("u%d" % array.dtype.itemsize).reshape(-1)
            bits[index] = bits[index].item() + (1 if up else -1)
            moved = float(_wide(dtype, array).ravel()[index])
            if value == 0.0 or not math.isfinite(value) or not math.isfinite(moved):
                continue
            framework.assign(self._parameters[name], array)
            place = [int(axis) for axis in np.unravel_index(index, array.shape)]
            return {
                "seed": _plain(self._perturb), "parameter": name, "index": place,
                "before": value.hex(), "after": moved.hex(),
            }  # fmt: skip
        raise ValueError("perturb: every weight that was drawn is zero or not finite")

    # ------------------------------------------------------------------ sizes

    def _check_room(self):
        arrays = [self._framework.host(value, copy=False)[1] for value in self._parameters.values()]
        self._weight_bytes = size = sum(array.nbytes for array in arrays)
        if not self._writes:
            return
        free = shutil.disk_usage(self._folder).free
        # Parameters before and after, two words of state, gradients, and a share of the layers.
        least = size * (6 if self._optimizer is not None else 2)
        count = len([step for step in self._steps if step >= self._first_step])
        many = " and each multiple of %d" % self._every if self._every else ""
        chosen = "%d steps are chosen%s; %%s are free" % (count, many)
        self._tell("parameters %s; a chosen step takes about %s; " + chosen, size, least, free)
        needed = least * max(count, 1)
        if needed > free:
            sentence = "%s has %s free and the chosen steps need about %s: choose fewer steps" % (
                self._folder, _readable(free), _readable(needed),
            )  # fmt: skip
            raise OSError(errno.ENOSPC, sentence + ", or bound them with only=")

    def _tell(self, sentence, *sizes):
        sentence %= tuple(map(_readable, sizes))
        print("capture %s: %s" % (self._folder, sentence), file=sys.stderr, flush=True)

    # ------------------------------------------------------------------ a step

    def _is_chosen(self, step):
        return step in self._steps or (self._every > 0 and step % self._every == 0)

    def _begin(self):
        """Prepare the next step."""
        self._chosen = self._is_chosen(self._step)
        self._hashing = self._chosen or (self._hash_every and self._step % self._hash_every == 0)
        self._updates, self._rates, self._norm, self._gradient_hash = 0, None, None, None
        self._changed, self._updated, self._open_updates = None, False, 0
        self._tensors, self._scalars, self._calls = {}, {}, OrderedDict()
        self._inside, self._light, self._kinds, self._in_part = 0, set(), set(), set()
        self._room = max(_LEAST_ROOM, self._weight_bytes / 4)
        if not self._chosen:
            return
        framework = self._framework
        self._state, self._entered = framework.random_state(), None
        self._put_untrained("before")
        for name, layer in self._recorded.items():
            if name not in self._watched:
                self._undo_step.append(self._watch(name, layer))
        if framework.traces:
            if self._unseen:
                self._miss("Its calls are not traced: a part of the model is compiled.")
            elif not _OPEN_TRACES:
                self._trace = _tracing(framework.api, self)
        if not self._permanent_hooks:
            for name in self._trainable:
                receive = self._accumulated(name, self._gate)
                undo = framework.on_accumulation(self._parameters[name], receive)
                if undo is None:
                    self._permanent_hooks = True  # the hook cannot be removed: the gate disables it
                else:
                    self._undo_step.append(undo)
        if framework.name == "paddle" and self._optimizer is not None:
            for clip in framework.clips(self._optimizer):
                self._undo_step.append(self._watch_clip(clip))

    def _end_of_step(self):
        for undo in reversed(self._undo_step):
            undo()
        self._undo_step = []
        if self._trace is not None:
            self._trace.close({})
            self._trace = None
        self._tensors, self._scalars = {}, {}
        self._chosen = False

    def _put(self, name, tensor):
        kept, pair = self._kept.get(name), self._framework.host(tensor, name not in self._kept)
        if kept is not None:  # at the end of the last step: it has rarely changed since
            same = pair[0] == kept[0][0] and pair[1].shape == kept[0][1].shape
            same = same and np.array_equal(_bytes(pair[1]), _bytes(kept[0][1]))
            pair = kept[0] if same else (pair[0], np.array(pair[1], order="C"))
        self._tensors[name] = pair

    def _keep(self, repeated):
        """Keep what this step ends with, by its name at the beginning of the next, with its place
        in a file."""
        for name, pair in self._tensors.items() if self._is_chosen(self._step + 1) else ():
            if name.endswith("/after"):
                of, shape, *step = repeated.get(name, [name, list(pair[1].shape)])
                begins = name[: -len("after")] + "before"
                self._kept[begins] = pair, [of, shape, *(step or [self._step])]

    def _accumulated(self, name, gate):
        key = "gradients/%s/backward" % name

        def receive(gradient):
            capture = gate[0]
            if capture is None or not capture._chosen or gradient is None or capture._updated:
                return
            if capture._framework.symbolic():
                return
            dtype, array = capture._framework.host(gradient)
            if capture._framework.name == "mindspore" and key in capture._tensors:
                if dtype == "BF16":
                    capture._miss("Of several backward passes in bfloat16, the last is recorded.")
                else:
                    array = (array + capture._tensors[key][1]).astype(array.dtype)
            capture._tensors[key] = dtype, array

        return receive

    def _watch(self, name, layer):
        """Wrap a layer's forward for one step; return a function that undoes it."""
        framework, method = self._framework, self._framework.forward
        original = getattr(layer, method)
        recording = self._recording(name, original, layer)

        def forward(owner, *args, **kwargs):
            if not framework.symbolic():
                return recording(*args, **kwargs)
            if inspect.ismethod(original):  # OneFlow's graphs call it on a proxy of the layer
                return original.__func__(owner, *args, **kwargs)
            return original(*args, **kwargs)

        return _replace(layer, method, types.MethodType(forward, layer))

    def _recording(self, name, original, owner):
        """A function that records each call of `owner`, a layer or a function."""
        framework, gate = self._framework, self._gate

        def receive(key, rows):
            def take(gradient):
                capture = gate[0]
                if capture is not None and capture._chosen and gradient is not None:
                    capture._put(key, gradient)
                    capture._cut(name, key, rows)

            return take

        def run(args, kwargs):
            self._listen(name, entering=True)
            self._inside += 1
            try:
                return original(*args, **kwargs)
            finally:
                self._inside -= 1
                self._listen(name, entering=False)

        def forward(*args, **kwargs):
            if self._updated:  # the weights are no longer those that the step recorded
                self._miss("Layers and functions called after the step's first update.")
                return original(*args, **kwargs)
            call = self._calls.get(name, 0)
            self._calls[name] = call + 1
            if call == 0:
                self._weigh(name, owner, (args, kwargs))
            if name in self._light:
                return run(args, kwargs)
            forward_key = "layers/%s/forward/%d/" % (name, call)
            backward_key = "layers/%s/backward/%d/" % (name, call)
            passed, rows = {}, []

            def enter(path, leaf):
                if not framework.is_tensor(leaf):
                    self._scalar(forward_key + "inputs/" + path, leaf)
                    return leaf
                self._put(forward_key + "inputs/" + path, leaf)
                if not framework.differentiable(leaf):
                    return leaf
                if id(leaf) not in passed:  # a tensor passed twice stays one tensor
                    entered = framework.enter(leaf, receive(backward_key + "inputs/" + path, rows))
                    passed[id(leaf)] = (*entered, getattr(entered[0], "_version", 0))
                return passed[id(leaf)][0]

            for key, value in self._held(name, owner).items():
                self._put("%sinputs/self.%s" % (forward_key, key.lstrip("_")), value)
            args = [_mapped(value, str(place), enter) for place, value in enumerate(args)]
            kwargs = {key: _mapped(value, key, enter) for key, value in kwargs.items()}
            result = run(args, kwargs)
            seen = ((value, version) for value, _, version in passed.values())
            changed = any(getattr(value, "_version", 0) != version for value, version in seen)
            if changed:
                self._miss(
                    "%s changes its input in place: the gradient of that input is not recorded "
                    "(the cotangent of the layer before it is)." % name
                )
            differentiable = []
            for path, leaf in _leaves(result):
                if framework.is_tensor(leaf):
                    self._put(forward_key + "outputs/" + path, leaf)
                    if framework.differentiable(leaf):
                        key = backward_key + "cotangents/" + path
                        framework.on_gradient(leaf, receive(key, rows))
                        differentiable.append(leaf)
            rows += self._rows(name, owner, forward_key)
            if not changed:
                framework.leave([entry[:2] for entry in passed.values()], differentiable)
            return result

        return forward

    def _weigh(self, name, owner, given):
        """Where every call is traced and the step's layers already hold as much as the model's
        weights: leave out the tensors of a layer of a kind that it has."""
        if self._trace is None or name in self._watched or not self._chooses:
            return
        framework = self._framework
        tensors = [leaf for _, leaf in _leaves(given) if framework.is_tensor(leaf)]
        tensors += framework.own_parameters(owner).values()
        shapes = [(tensor.shape, tensor.dtype) for tensor in tensors]
        kind = str((type(owner), framework.hyperparameters(owner), shapes))
        if kind in self._kinds and self._room < 0:
            self._light.add(name)
        self._kinds.add(kind)

    def _rows(self, name, owner, key):
        """Keep some items of the first axis of a call's large tensors, whose names begin with
        `key`, and return which; all of a layer with buffers, whose statistics are of all items."""
        arrays = {n: pair[1] for n, pair in self._tensors.items() if n.startswith(key)}
        size, rows = sum(array.nbytes for array in arrays.values()), []
        lengths = {array.shape[:1] for array in arrays.values()}
        part = self._trace is not None and self._chooses and name not in self._watched
        part = part and size > max(_LARGE, self._weight_bytes / 8) and len(lengths) == 1
        if part and not self._framework.own_buffers(owner) and not self._held(name, owner):
            (length,) = lengths.pop()
            count = max(1, int(length * _LARGE / size))
            size *= count / length
            rows = [(2 * k + 1) * length // (2 * count) for k in range(count)]
        for full in arrays:
            self._cut(name, full, rows)
        self._room -= 2 * size
        return rows

    def _cut(self, name, full, rows):
        """Keep items of the first axis of a layer's tensor alone, if any are chosen."""
        if rows:
            self._in_part.add(name)
            dtype, array = self._tensors[full]
            self._tensors[full] = dtype, array[rows]

    def _held(self, name, owner):
        """Tensors of a layer that are recorded with its calls: neither parameters nor buffers of
        the model."""
        framework = self._framework
        if not hasattr(owner, framework.forward) or not hasattr(owner, "__dict__"):
            return {}
        tensors = framework.held(owner)
        if name in self._watched:
            tensors.update(framework.own_buffers(owner))
        return tensors

    def _listen(self, name, entering):
        """Note where random numbers were drawn since a layer last began or ended. This takes time,
        so only the first chosen step does it."""
        if self._traced:
            return
        now = self._framework.random_state()
        if now != self._state:
            if not entering and self._entered == (name, self._inside):
                if name not in self._random["layers"]:
                    self._random["layers"].append(name)
            elif self._entered is None:
                self._random["before"] = True
            else:
                self._random["outside"] = True
        self._state = now
        self._entered = (name, self._inside) if entering else ()

    def _watch_clip(self, clip):
        original = clip._dygraph_clip

        def clipped(pairs):
            result = original(pairs)
            for parameter, gradient in result:
                name = self._name_of.get(id(parameter))
                if name is not None and gradient is not None:
                    self._put("gradients/%s/clipped" % name, gradient)
            return result

        return _replace(clip, "_dygraph_clip", clipped)

    def _scalar(self, name, value):
        try:
            self._scalars[name] = _plain(self._framework.scalar(value))
        except TypeError:
            self._scalars[name] = "<%s>" % type(value).__name__

    def _before(self, passed_gradients=None):
        """The optimizer begins an update; `passed_gradients`: gradients passed to it, if any."""
        self._open_updates += 1
        if self._open_updates > 1:  # of a base class, within that of the optimizer's own
            return
        self._updates += 1
        if self._updates > 1:
            self._miss("Of several updates in a step, the first is recorded; its line counts all.")
            return
        framework = self._framework
        if self._trace is not None:
            self._trace.close(self._gradients())
        rates = [_plain(framework.scalar(rate)) for rate in framework.rates(self._optimizer)]
        self._rates = None if None in rates else rates  # the user's own word for it, or none
        if self._hashing:
            gradients = self._gradients(passed_gradients)
            digest, squares = hashlib.sha256(), 0.0
            for name in [name for name in self._trainable if name in gradients]:
                dtype, array = framework.host(gradients[name], copy=self._chosen)
                digest.update(_bytes(_folded(array)))
                squares += _squares(dtype, array)
                if self._chosen:
                    self._tensors["gradients/%s/update" % name] = dtype, array
            self._gradient_hash, self._norm = digest.hexdigest(), math.sqrt(squares)
        if self._chosen:
            self._put_parameters("before")
            self._put_state("before")
            self._changed = self._changes()

    def _gradients(self, passed=None):
        """{parameter's name: its gradient}; `passed`: those of the optimizer's parameters."""
        framework = self._framework
        if passed is None:
            pairs = [(name, framework.gradient(self._parameters[name])) for name in self._trainable]
        else:
            pairs = zip((self._name_of.get(id(p)) for p in self._optimizer.parameters), passed)
        return {name: value for name, value in pairs if name and framework.is_tensor(value)}

    def _norm_of_skipped_gradients(self):
        """The norm of the gradients that no update used: a loss scaler skipped the step."""
        framework, pairs = self._framework, {}
        for name in self._trainable:
            pairs[name] = self._tensors.get("gradients/%s/backward" % name)
        for name, gradient in self._gradients().items():
            if framework.has_values(gradient):
                pairs[name] = framework.host(gradient, copy=False)
        squares = [_squares(*pair) for pair in pairs.values() if pair is not None]
        return math.sqrt(sum(squares)) if squares else None

    def _changes(self):
        """For each group, the hyper-parameters other than lr that have changed since run.json."""
        first, now = self._optimizer_record["groups"], self._describe_optimizer()["groups"]
        changes = [
            {key: value for key, value in group.items() if key != "lr" and value != before.get(key)}
            for before, group in zip(first, now)
        ]
        return changes if len(first) != len(now) or any(changes) else None

    def _after(self):
        self._open_updates -= 1
        self._updated = not self._open_updates
        if self._chosen and self._updated and self._updates == 1:
            self._put_parameters("after")
            self._put_state("after")

    def _put_parameters(self, when):
        for name in self._trainable:
            self._put("parameters/%s/%s" % (name, when), self._parameters[name])

    def _put_untrained(self, when):
        for name, buffer in self._buffers.items():
            self._put("buffers/%s/%s" % (name, when), buffer)
        for name in [name for name in self._parameters if name not in self._trainable]:
            self._put("parameters/%s/%s" % (name, when), self._parameters[name])

    def _put_state(self, when):
        framework = self._framework
        for name, key, value in framework.state(self._optimizer, self._names):
            word = framework.word(self._optimizer, key)
            self._state_words[word] = key
            full = "state/%s/%s/%s" % (name, word, when)
            if framework.is_tensor(value):
                self._put(full, value)
                dtype, array = self._tensors[full]
                shape = getattr(self._parameters.get(name), "shape", None)
                last = when == "after" and not self._is_chosen(self._step + 1)
                if last and array.size > 2 * _ELEMENTS and array.shape == tuple(shape or ()):
                    places = np.arange(_ELEMENTS) * (array.size - 1) // (_ELEMENTS - 1)
                    sampled = full[: -len("after")] + "sampled"
                    self._tensors[sampled] = dtype, self._tensors.pop(full)[1].reshape(-1)[places]
            elif isinstance(value, float):
                self._tensors[full] = "F64", np.array(value)
            elif isinstance(value, int) and not isinstance(value, bool):
                self._tensors[full] = "I64", np.array(value, np.int64)

    def _finish(self, batch, loss):
        """Write the tensors of a chosen step. Returns the reason if this failed, else None."""
        if self._trace is not None:
            self._trace.close(self._gradients())
            text = json.dumps(self._trace.record(loss), separators=(",", ":"))
            self._tensors["trace/calls"] = "U8", np.frombuffer(text.encode("utf-8"), np.uint8)
        located = self._traced and (self._random["layers"] or self._random["before"])
        if not located and self._framework.random_state() != self._state:
            self._random["outside"] = True  # after the last layer, or anywhere in a later step
        self._traced = True
        if batch is not None:
            for path, leaf in _leaves(batch):
                if self._framework.is_tensor(leaf):
                    self._put("batch/" + path, leaf)
                elif isinstance(leaf, np.ndarray) and str(leaf.dtype) in DTYPES:
                    copy = np.array(leaf, dtype=leaf.dtype.newbyteorder("<"), order="C")
                    self._tensors["batch/" + path] = DTYPES[str(leaf.dtype)], copy
        self._put_untrained("after")
        if not self._updates:
            self._put_parameters("before")
            if self._optimizer is not None:
                self._miss(
                    "Step %d: no update of this optimizer was seen (skipped by a loss scaler, done "
                    "by another optimizer, or inside a compiled graph)." % self._step
                )
        self._last_calls = dict(self._calls)
        self._order += [name for name in self._calls if name not in self._order]
        self._never_called = [name for name in self._recorded if name not in self._order]
        if not self._writes:
            return None
        repeated = _repeated(self._tensors, self._kept)
        self._kept = {}
        size = sum(pair[1].nbytes for n, pair in self._tensors.items() if n not in repeated)
        free = shutil.disk_usage(self._folder).free
        if not self._chosen_steps:
            self._tell("step %d takes %%s; %%s are free" % self._step, size, free)
        if size > free:
            sizes = _readable(size), _readable(free)
            return self._refuse("it takes %s, and only %s are free" % sizes)
        metadata = {
            "format": FORMAT, "format_version": str(FORMAT_VERSION), "step": str(self._step),
            "rank": str(self._rank), "scalars": json.dumps(self._scalars),
            "left_out": json.dumps(sorted(self._light)), "items": json.dumps(sorted(self._in_part)),
        }  # fmt: skip
        path = os.path.join(self._folder, "step_%06d.safetensors" % self._step)
        try:
            write_safetensors(path, self._tensors, metadata, repeated)
        except OSError as error:
            return self._refuse("it could not be written: %s" % error)
        self._keep(repeated)
        return None

    def _refuse(self, reason):
        self._tell("step %d is not recorded: %s" % (self._step, reason.replace("%", "%%")))
        return reason

    # ------------------------------------------------------------------ run.json

    def _miss(self, sentence):
        if sentence not in self._missed:
            self._missed.append(sentence)

    def _not_captured(self):
        sentences = list(self._framework.limits)
        if self._processes > 1:
            sentences.append(
                "The model is global: its %d processes are recorded as one, with whole tensors. "
                "Whether the processes' copies of a broadcast tensor agree is not checked."
                % self._processes
            )
        reasons = {
            name: self._unseen.get("" if name == _ROOT else name)
            for name in self._layers
            if name not in self._recorded
        }
        sentences += ["%s: not recorded, %s." % pair for pair in reasons.items() if pair[1]]
        if unmatched := [name for name, reason in reasons.items() if not reason]:
            sentences.append("Left out by only=: %s." % ", ".join(unmatched))
        if self._chosen_steps and self._never_called:
            sentences.append(
                "Never called through their own forward (fused, used by their weights alone, or "
                "not used): %s." % ", ".join(self._never_called)
            )
        if self._functions:
            counts = ", ".join("%s (%d)" % pair for pair in sorted(self._functions.items()))
            sentences.append("Functions called in the model outside recorded layers: %s." % counts)
        if self._optimizer_record is not None:
            groups = self._optimizer_record["groups"]
            listed = {name for group in groups for name in group["parameters"]}
            if free := [name for name in self._trainable if name not in listed]:
                listed = ", ".join(free)
                sentences.append("Trainable, and in no group of the optimizer: %s." % listed)
        return sentences + self._missed

    def _describe_optimizer(self):
        if self._optimizer is None:
            return None
        framework, optimizer = self._framework, self._optimizer
        exempt = set(framework.exempt(optimizer, self._name_of))
        groups = []
        for parameters, values in framework.groups(optimizer):
            names = [self._name_of.get(id(parameter), "(of no layer)") for parameter in parameters]
            without_decay = [name for name in names if name in exempt]
            groups.append(dict(values, parameters=names, exempt=without_decay))
        return {
            "type": type(optimizer).__name__,
            "module": type(optimizer).__module__,
            "hyperparameters": framework.defaults(optimizer),
            "groups": groups,
            "state": self._state_words,
        }

    def _describe_layer(self, name, layer):
        framework = self._framework
        function = name in self._watched and not hasattr(layer, framework.forward)
        kind = layer if function else type(layer)
        word = getattr(kind, "__name__", type(layer).__name__)
        called = layer if function else getattr(kind, framework.forward, 0)
        own = {} if function else framework.own_parameters(layer)
        path = "" if name == _ROOT else name + "."
        signature = []
        with contextlib.suppress(TypeError, ValueError):
            signature = [key for key in inspect.signature(called).parameters if key != "self"]
        buffers = {} if name in self._watched else framework.own_buffers(layer)
        return {
            "name": name,
            "type": word,
            "module": "%s.%s"
            % (getattr(kind, "__module__", None) or "", getattr(kind, "__qualname__", word)),
            "calls": self._last_calls.get(name, 0),
            "recorded": name in self._recorded,
            "training": bool(getattr(layer, "training", True)),
            "hyperparameters": {} if function else framework.hyperparameters(layer),
            "parameters": {key: self._name_of.get(id(value), "") for key, value in own.items()},
            "buffers": {key: path + key for key in buffers},
            "signature": signature,
        }

    def _describe_tensor(self, name, tensor):
        dtype = self._framework.dtype_of(tensor)
        return {"name": name, "shape": [int(axis) for axis in tensor.shape], "dtype": dtype}

    def _write_run(self, complete):
        if not self._writes:
            return
        framework = self._framework
        groups = self._optimizer_record["groups"] if self._optimizer_record else ()
        group_of = {name: k for k, group in enumerate(groups) for name in group["parameters"]}
        order = self._order + [name for name in self._layers if name not in self._order]
        parameters = [
            dict(
                self._describe_tensor(name, parameter),
                own_name=framework.own_name(name, parameter),
                trainable=name in self._trainable,
                group=group_of.get(name),
                device=framework.device_of(parameter),
            )
            for name, parameter in self._parameters.items()
        ]
        run = OrderedDict(
            format=FORMAT,
            format_version=FORMAT_VERSION,
            complete=complete,
            framework=framework.name,
            versions={
                framework.name: framework.version(), "numpy": np.__version__,
                "python": platform.python_version(), "capture": CAPTURE_VERSION,
            },
            device={
                "machine": platform.machine(),
                "processor": platform.processor(),
                "cpus": os.cpu_count(),
                "parameters": sorted({parameter["device"] for parameter in parameters}),
            },
            flags=framework.flags(),
            environment={
                key: value
                for key, value in sorted(os.environ.items())
                if key.startswith(_ARITHMETIC)
            },
            rank=self._rank,
            world_size=self._world_size,
            steps=self._steps,
            every=self._every,
            only=self._globs,
            first_step=self._first_step,
            hash_every=self._hash_every,
            notes=self._notes,
            perturbed=self._perturbed,
            initial_parameters=self._initial,
            model=type(self._model).__name__,
            parameters=parameters,
            buffers=[self._describe_tensor(name, value) for name, value in self._buffers.items()],
            optimizer=self._optimizer_record,
            layers=[self._describe_layer(name, self._layers[name]) for name in order],
            not_captured=self._not_captured(),
            random=self._random if self._chosen_steps else None,
        )  # fmt: skip
        text = json.dumps(run, indent=1, allow_nan=False)
        path = os.path.join(self._folder, "run.json")
        _write_whole(path, lambda file: file.write(text.encode("utf-8")))


def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError("%s=%r: give whole numbers from 0" % (name, value))
    return int(value)
