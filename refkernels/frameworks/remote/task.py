"""The Model of a task and its candidates, in an interpreter with torch.

    function(sizes, original, file, "ModelNew")     a candidate as a function of arrays
    python task.py REQUEST.json                     its answers to get_inputs() at several sizes

`sizes` is the text of the task's file `original`, perhaps with other integers. Parameters that a
constructor sets to one number, as those of norms, are changed as training changes them: otherwise
nothing shows that a candidate leaves them out. Needs torch and NumPy only (Python 3.8).
"""

import importlib.util
import json
import os
import sys


def loaded(name, path, original=None):
    """The module of a file, which may import and read the neighbours of the original."""
    original = original or path
    if os.path.dirname(original) not in sys.path:
        sys.path.insert(0, os.path.dirname(original))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    module.__file__ = original
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def trained(model):
    """A module whose parameters are no longer all one number."""
    import torch

    torch.manual_seed(1)
    with torch.no_grad():
        for own in model.parameters():
            if own.numel() and bool((own == own.reshape(-1)[0]).all()):
                own.add_(torch.rand_like(own) / 4)
    return model


def made(sizes, original, file, cls):
    """The task's module, and an object of a class of a file with the Model's parameters and
    buffers: those of the same names, or else in their order."""
    import torch

    task = loaded("refkernels_program", sizes, original)
    initial = getattr(task, "get_init_inputs", list)
    torch.manual_seed(0)
    model = new = trained(task.Model(*initial()))
    if cls != "Model":
        torch.manual_seed(0)
        new = getattr(loaded("refkernels_candidate", file), cls)(*initial())
    state, own = model.state_dict(), new.state_dict()
    new.load_state_dict(state if state.keys() == own.keys() else dict(zip(own, state.values())))
    return task, new


def function(sizes, original, file, cls):
    """The function that a class computes: of the tensors of get_inputs(), whose other values it
    keeps."""
    import torch

    task, new = made(sizes, original, file, cls)
    example = task.get_inputs()

    def kernel(*arrays):
        given = iter(arrays)
        chosen = torch.utils._pytree.tree_map_only(torch.Tensor, lambda _: next(given), example)
        with torch.no_grad():
            return new.to(arrays[0].device)(*chosen)

    return kernel


def answers(request):
    """The answers at each size, as arrays by number of size and output; in "exact" those of the
    same in float64."""
    import torch

    leaves, on = torch.utils._pytree.tree_leaves, torch.utils._pytree.tree_map_only
    for k, sizes in enumerate(request["sizes"]):
        task, new = made(sizes, request["task"], request["file"], request["cls"])
        torch.manual_seed(request["seed"] + k)
        given = task.get_inputs()
        with torch.no_grad():
            on_device = on(torch.Tensor, lambda value: value.to(request["device"]), given)
            for j, value in enumerate(leaves(new.to(request["device"])(*on_device))):
                yield "%d-%d" % (k, j), value.float()
            if request["exact"]:
                wide = on(torch.Tensor, lambda v: v.double() if v.is_floating_point() else v, given)
                for j, value in enumerate(leaves(new.double()(*wide))):
                    yield "%d-%d-exact" % (k, j), value


def main(path):
    import numpy as np

    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    try:
        for name, value in answers(request):
            np.save(os.path.join(request["out"], name + ".npy"), value.cpu().numpy())
    except Exception as error:
        with open(os.path.join(request["out"], "error.txt"), "w", encoding="utf-8") as file:
            file.write("%s: %s" % (type(error).__name__, str(error).split("\n")[0][:300]))


if __name__ == "__main__":
    main(sys.argv[1])
