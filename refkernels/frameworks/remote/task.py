"""Finds the functions that a task's Model calls. Run as a script, in an interpreter with torch.

    python task.py TASK.py        prints one line of JSON

A task is a file with a class Model, `get_inputs()` and `get_init_inputs()`, in KernelBench's form.
It runs on torch's meta device, where tensors have shapes and no values; a task that needs values
runs on the CPU. The calls are those of torch's functions, before torch decomposes them, each with
where its arguments come from: an input, the Model's state (parameters and buffers), or a value.

It needs torch only (Python 3.8).
"""

import importlib.util
import json
import os
import sys


def loaded(path):
    """The module of a file, which may import its neighbours."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("refkernels_task", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def source(value, inputs, state):
    """Where an argument comes from: {"input": its number}, {"state": its name} or {"value": ...};
    {} for anything else."""
    for number, given in enumerate(inputs):
        if value is given:
            return {"input": number}
    for name, own in state.items():
        if value is own:
            return {"state": name}
    if isinstance(value, (tuple, list)) and all(isinstance(part, int) for part in value):
        return {"value": list(value)}
    return {"value": value} if isinstance(value, (int, float, str, type(None))) else {}


def called(module, device):
    """The names of the functions that a forward pass calls, in order, with their arguments, and
    the tensors that it is given."""
    import torch
    from torch.overrides import TorchFunctionMode

    names, arguments = [], []

    class Recording(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.append(getattr(function, "__name__", str(function)))
            named = {key: source(value, inputs, state) for key, value in (kwargs or {}).items()}
            arguments.append([[source(value, inputs, state) for value in args], named])
            return function(*args, **(kwargs or {}))

    with torch.device(device), torch.no_grad():
        model = module.Model(*module.get_init_inputs()).eval()
        inputs = module.get_inputs()
        parameters = [name for name, _ in model.named_parameters()]
        state = dict([*model.named_parameters(), *model.named_buffers()])
        with Recording():
            model(*inputs)
    shapes = [list(value.shape) for value in inputs if isinstance(value, torch.Tensor)]
    others = len(inputs) - len(shapes)
    return {
        "calls": names, "arguments": arguments, "inputs": shapes, "others": others,
        "parameters": parameters, "state": {key: list(value.shape) for key, value in state.items()},
    }  # fmt: skip


def main(path):
    module = loaded(path)
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(getattr(module, name, None)):
            raise AttributeError("it has no %s" % name)
    try:
        return called(module, "meta")
    except (RuntimeError, NotImplementedError):
        return called(module, "cpu")


if __name__ == "__main__":
    answer = os.dup(1)
    os.dup2(2, 1)  # the task's own prints go to the standard error
    try:
        result = main(sys.argv[1])
    except Exception as error:
        result = {"error": "%s: %s" % (type(error).__name__, str(error).split("\n")[0][:300])}
    os.write(answer, json.dumps(result).encode() + b"\n")
