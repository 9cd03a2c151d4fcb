"""A Model of one call as a function of its inputs and its parameters.

The judge draws the parameters as it draws inputs: each call sets them, as `load_state_dict` does.
So the answer must be computed from the Model's parameters in the call. A Model that keeps something
that its constructor computed from them is refused when its file is loaded: its answer does not
change with them.

It needs torch only (Python 3.8).
"""

import inspect

import torch


def kernel(model, binding, shapes, axes, example):
    """The function, whose parameters are the op's inputs and params.

    binding   "inputs", "state" and "params" of `judging.bindings.Binding`
    shapes    those of the task's Model's parameters and buffers, by name
    axes      the number of axes of each of the Model's inputs
    example   inputs of the Model
    """
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    places = named_like(own, binding["state"], shapes)
    order = sorted(binding["inputs"], key=binding["inputs"].get)

    def answer(inputs, state):
        for name, value in state.items():
            own[places[name]].data = value
        with torch.no_grad():
            return model(*inputs)

    def function(**given):
        params = {name: given.pop(name) for name in list(given) if name in binding["params"]}
        arrays = {name: array for name, array in given.items() if array is not None}
        if sorted(arrays) != sorted([*order, *places]) or params != binding["params"]:
            raise NotImplementedError("the task has other inputs or params")
        inputs = [arrays[name] for name in order]
        if [array.dim() for array in inputs] != list(axes):
            raise NotImplementedError("the task has other numbers of axes")
        return answer(inputs, {name: arrays[name] for name in places})

    names = [*binding["takes"], *binding["params"]]
    function.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in names]
    )
    check(answer, example, {name: own[place].data for name, place in places.items()}, places)
    return function


def named_like(own, state, shapes):
    """For each of the op's inputs, the name of the parameter that it is in this Model: the name in
    the task's Model, or that in the same place if all shapes agree."""
    if all(name in own for name in state.values()):
        return dict(state)
    if [list(value.shape) for value in own.values()] != [list(shape) for shape in shapes.values()]:
        raise TypeError("its parameters have neither the names nor the shapes of the Model's")
    return {name: list(own)[list(shapes).index(key)] for name, key in state.items()}


def check(answer, example, before, places):
    """Raise TypeError for a parameter that the answer does not depend on. On one thread: others
    would not survive the fork in which the kernel runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    inputs = [value[:2] if value.dim() > 1 else value for value in example]
    first = answer(inputs, before)
    for name, value in before.items():
        other = answer(inputs, {**before, name: value + torch.randn_like(value)})
        if torch.equal(first, other):
            raise TypeError(
                "its answer does not change with its parameter %s: judge sets them before each "
                "call, so nothing that the constructor computed from them may be kept"
                % places[name]
            )
    answer(inputs, before)
    torch.set_num_threads(threads)
