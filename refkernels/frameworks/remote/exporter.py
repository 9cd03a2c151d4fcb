"""Reads a torch function or module as a program: data, which other interpreters can read.

    exported(function, args, kwargs, kept)        (document, arrays)
    python exporter.py REQUEST.json OUT           the same for FILE.py:NAME; OUT.json and OUT.npz

The document is JSON with a schema version; arrays are by number, bfloat16 and other formats that
NumPy lacks as integers of the same bits. An operator is decomposed to ATen's core unless it is one
of `kept`. What depends on neither inputs nor parameters, and is an integer, a truth value or
rounded to a whole number, is computed here. `joint` in the document is the program of the
gradients: torch's own backward pass of the first output, traced below autograd, so that rules of an
autograd.Function are a part of it. Needs torch and NumPy only (Python 3.8).
"""

import contextlib
import importlib.util
import inspect
import io
import json
import math
import operator
import os
import re
import sys
import traceback
import types

import numpy as np

SCHEMA = 1
OLDEST = (2, 6)
ROUNDING = "floor", "ceil", "round", "trunc"
LARGEST = 1 << 26  # elements of a constant
MOST_STEPS = 16  # of a backward pass, by those of its forward pass
VIEWS = {2: "int16", 1: "uint8"}


class NotExported(Exception):
    """Why the program cannot be read, in one sentence."""


def exported(function, args, kwargs=None, kept=(), gradients=True):
    """The document and the arrays of a function or module, called with these tensors; without
    `gradients`, no joint program. Raises NotExported, in one sentence."""
    import torch

    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        raise NotExported(
            "torch %s is older than %d.%d, from which on programs are read"
            % (torch.__version__, *OLDEST)
        )
    kwargs = dict(kwargs or {})
    for name, value in _named(function, args, kwargs).items():
        _check(value, "its input " + name, torch)
    module = function if isinstance(function, torch.nn.Module) else _wrapped(function, torch)
    for name, value in module.state_dict(keep_vars=True).items():
        _check(value, name, torch)
    custom = []
    apply = torch.autograd.Function.__dict__["apply"]

    def recorded(cls, *given, **named):
        custom.append("%s (%s)" % (cls.__name__, _line(traceback.format_stack()[:-1])))
        return apply.__func__(cls, *given, **named)

    table = _decompositions(torch, kept)
    torch.autograd.Function.apply = classmethod(recorded)
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # the graph, beside what the error says
            program = torch.export.export(module, tuple(args), kwargs, strict=False)
            program = program.run_decompositions(table)
    except NotExported:
        raise
    except Exception as error:
        raise NotExported("torch.export cannot read it: " + _failure(error)) from error
    finally:
        torch.autograd.Function.apply = apply
    leaves = torch.utils._pytree.tree_leaves((tuple(args), kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    code = getattr(getattr(function, "forward", function), "__code__", None)
    place = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    read = _Document(torch, {}, "%s:%d" % (os.path.basename(place[0]), place[1]))
    document = read.exported(program, _named(function, args, kwargs), tensors, custom)
    for node in document["nodes"]:
        if node["seeded"] and node["operator"] not in kept:
            raise NotExported(
                "%s draws random numbers, which differ from call to call (%s)"
                % (node["operator"], node["line"] or node["name"])
            )
    if gradients:
        try:
            steps = len(program.graph.nodes)
            document["joint"] = _joint(module, args, kwargs, document, read.arrays, table, steps)
        except Exception as error:
            document["joint"] = {"error": _failure(error)}
    return document, read.arrays


def _decompositions(torch, kept):
    table = torch.export.default_decompositions()
    for overload, rule in torch._decomp.decomposition_table.items():
        tags = getattr(overload, "tags", ())
        core = torch.Tag.core in tags and torch.Tag.nondeterministic_seeded not in tags
        if core or "_backward" in str(overload):
            table.update({} if overload in table else {overload: rule})
    for overload in list(table):
        forward = _forward_of(overload, torch)
        named = [argument.name for argument in overload._schema.arguments]
        chosen = forward and str(forward) in kept and "indices" in named  # by computed numbers
        if str(overload) in kept or chosen:
            table.pop(overload)
    return table


def _joint(module, args, kwargs, document, arrays, table, steps):
    """The document of the gradients of the first output by the inputs and parameters of floats."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):
        left = MOST_STEPS * steps + 1000

        def __torch_dispatch__(self, called, types, args=(), kwargs=None):
            self.left -= 1
            if self.left < 0:  # what the export keeps whole, as recurrent layers
                raise NotExported("it takes more than %d times the steps" % MOST_STEPS)
            return called(*args, **(kwargs or {}))

    inputs = [item for item in document["inputs"] if item["kind"] != "constant"]
    leaves, spec = torch.utils._pytree.tree_flatten((tuple(args), kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    given = {item["name"]: state[item["name"]] for item in inputs if item["kind"] != "input"}
    own = [item["name"] for item in inputs if item["kind"] == "input"]
    given.update(zip(own, (leaves[place] for place in places)))
    wanted = [i["name"] for i in inputs if i["kind"] != "buffer" and "float" in i["dtype"]]

    def called(values):
        filled = list(leaves)
        for place, name in zip(places, own):
            filled[place] = values[name]
        first, named = torch.utils._pytree.tree_unflatten(filled, spec)
        states = {name: value for name, value in values.items() if name in state}
        answer = torch.func.functional_call(module, states, first, named)
        answers = torch.utils._pytree.tree_leaves(answer)
        return next(y for y in answers if isinstance(y, torch.Tensor))

    def gradients(cotangent, *tensors):
        values = dict(zip(given, (tensor.detach() for tensor in tensors)))
        sources = [values[name].requires_grad_() for name in wanted]
        values.update((name, values[name].clone()) for name in wanted)  # it may write to them
        with Counted(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            y = called(values)
            if not y.requires_grad:
                return [None for _ in sources]
            return torch.autograd.grad(y, sources, cotangent, allow_unused=True)

    known = {item["node"]: item for item in document["inputs"]}
    known.update((item["name"], item["gives"][0]) for item in document["nodes"])
    y = known[document["outputs"][0]]
    if "float" not in y["dtype"]:
        return {}
    cotangent = torch.zeros(y["shape"], dtype=getattr(torch, y["dtype"]))
    tensors = [cotangent, *(tensor.detach() for tensor in given.values())]
    options = {"tracing_mode": "fake", "_allow_non_fake_inputs": True}
    with torch._dispatch.python.enable_python_dispatcher():  # decomposes what has no one gradient
        traced = make_fx(gradients, **options)(*tensors)
    traced = torch.func.functionalize(traced)
    traced = make_fx(traced, decomposition_table=dict(table), **options)(*tensors)
    numbers = {item["name"]: item for item in inputs}
    return _Document(torch, arrays).joint(traced, cotangent, given, numbers, wanted)


def _wrapped(function, torch):
    if isinstance(function, types.FunctionType):  # torch keeps the lines of what is called forward
        code, named = function.__code__.replace(co_name="forward"), function.__kwdefaults__
        closure = function.__defaults__, function.__closure__
        function = types.FunctionType(code, function.__globals__, "forward", *closure)
        function.__kwdefaults__ = named

    class Function(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return function(*args, **kwargs)

    return Function()


def _named(function, args, kwargs):
    """The arguments by the names of the function's parameters."""
    call = getattr(function, "forward", function)
    try:
        bound = inspect.signature(call).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {**{"x%d" % k: value for k, value in enumerate(args)}, **kwargs}
    named = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({"%s%d" % (name, k): item for k, item in enumerate(value)})
        else:
            named[name] = value
    return named


def _check(value, name, torch, place=""):
    if isinstance(value, (list, tuple)):
        for item in value:
            _check(item, name, torch)
    if not isinstance(value, torch.Tensor):
        return
    kinds = {
        "complex": value.is_complex(),
        "sparse": value.layout != torch.strided,
        "quantised": value.is_quantized,
    }
    for kind, is_one in kinds.items():
        if is_one:
            raise NotExported("%s is %s, which no oracle takes%s" % (name, kind, place))


def _failure(error):
    """One sentence: what torch says first, and the user's line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not _internal(f.filename)]
    places = [" (%s:%d: %s)" % (os.path.basename(f.filename), f.lineno, f.line) for f in own]
    said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
    return "%s%s" % (said[:200], "".join(places[-1:]))


def _internal(path):
    path = path.replace("\\", "/")
    return "/torch/" in path or path.endswith("exporter.py") or path.startswith("<")


def _line(stack):
    """FILE:LINE of the user's code, from lines of a stack trace."""
    found = re.findall(r'File "([^"]+)", line (\d+)', "".join(stack))
    places = ["%s:%s" % (os.path.basename(path), n) for path, n in found if not _internal(path)]
    return places[-1] if places else ""


class _Document:
    def __init__(self, torch, arrays, place=""):
        self.torch, self.arrays, self.place = torch, arrays, place
        self.known = {}  # nodes that depend on no input, with their values

    def exported(self, program, named, tensors, custom):
        self.program = program
        inputs = self._inputs(named, tensors)
        outputs = self._outputs(next(node for node in program.graph.nodes if node.op == "output"))
        return self._document(program.graph, inputs, outputs, custom)

    def joint(self, traced, cotangent, given, inputs, wanted):
        """That of a traced function of the cotangent and tensors, which gives the gradients of the
        inputs of these names, None where there is none. `inputs`: the program's, by name."""
        places = [node for node in traced.graph.nodes if node.op == "placeholder"]
        found = [self._input(places[0], "cotangent", "cotangent", cotangent, None)]
        for node, (name, tensor) in zip(places[1:], given.items()):
            found.append(self._input(node, name, "input", tensor, inputs[name]["array"]))
        for node in traced.graph.nodes:
            if node.op == "get_attr":
                self.known[node] = getattr(traced, node.target)
                array = self._keep(self.known[node])
                found.append(self._input(node, node.name, "constant", self.known[node], array))
        (output,) = (node for node in traced.graph.nodes if node.op == "output")
        gradients = dict(zip(wanted, (value and value.name for value in output.args[0])))
        gradients = {name: node for name, node in gradients.items() if node}
        document = self._document(traced.graph, found, list(gradients.values()), [])
        return {**document, "gradients": list(gradients)}

    def _input(self, node, name, kind, tensor, array):
        entry = {"node": node.name, "name": name, "kind": kind, "array": array}
        return {**entry, **self._tensor(tensor, node)}

    def _document(self, graph, inputs, outputs, custom):
        called = (node for node in graph.nodes if node.op == "call_function")
        nodes = [self._node(node) for node in called if node.meta.get("val") is not None]
        return {
            "schema": SCHEMA, "torch": self.torch.__version__, "inputs": inputs,
            "nodes": _used(nodes, outputs), "outputs": outputs, "custom_gradients": custom,
        }  # fmt: skip

    def _inputs(self, named, tensors):
        names = [name for name, value in named.items() if isinstance(value, self.torch.Tensor)]
        # in a tree, torch names the leaves
        flat = not any(isinstance(value, (list, tuple, dict)) for value in named.values())
        placeholders = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        inputs = []
        for spec in self.program.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            value = node.meta.get("val")
            kind = spec.kind.name
            if not isinstance(value, self.torch.Tensor) or kind == "TOKEN":
                continue  # a number is a constant of the program; a token orders its checks
            if kind == "USER_INPUT":
                name, kind, stored = names.pop(0) if flat else node.name, "input", tensors.pop(0)
            elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
                state = {**self.program.constants, **self.program.state_dict}
                name, stored = spec.target, state[spec.target]
                kind = "constant" if kind == "CONSTANT_TENSOR" else kind.lower()
                if kind == "constant":
                    self.known[node] = stored.detach()
            else:
                raise NotExported("torch.export gives an input of the kind " + kind)
            inputs.append(self._input(node, name, kind, value, self._keep(stored)))
        return inputs

    def _outputs(self, node):
        specs = self.program.graph_signature.output_specs
        own = [spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT") for spec in specs]
        outputs = [v.name for v, is_own in zip(node.args[0], own) if is_own and hasattr(v, "meta")]
        if not outputs:
            returned = ", ".join(map(str, node.args[0])) or "nothing"
            raise NotExported("it returns %s, and no tensor (%s)" % (returned, self.place))
        return outputs

    def _node(self, node):
        line, target = _line([node.meta.get("stack_trace") or ""]), node.target
        if target is operator.getitem:
            name, arguments = "getitem", list(node.args)
        elif isinstance(target, self.torch._ops.OpOverload):
            forward = _forward_of(target, self.torch)
            name = "gradient of %s" % forward if forward else str(target)
            arguments = self._arguments(node, forward)
        else:
            name, arguments = str(getattr(target, "__name__", target)), []
        values = node.meta.get("val")
        several = isinstance(values, (list, tuple))
        tensors = list(values) if several else [values]
        entry = {"name": node.name, "operator": name, "line": line, "several": several}
        entry["seeded"] = "seeded" in str(getattr(target, "tags", ""))
        entry["gives"] = [
            self._tensor(v, node, line) if isinstance(v, self.torch.Tensor) else None
            for v in tensors
        ]
        if any(str(given).startswith("torch.q") for given in arguments):  # qint8 and others
            raise NotExported("%s is quantised, which no oracle takes (%s)" % (node.name, line))
        if not several and not isinstance(values, self.torch.Tensor):
            raise NotExported(
                "%s gives a number that depends on data (%s)" % (name, line or node.name)
            )
        entry["value"] = None if entry["seeded"] else self._folded(node, values)
        entry["arguments"] = [] if entry["value"] is not None else self._encoded(arguments)
        return entry

    def _arguments(self, node, forward):
        """In the schema's order, defaults included. Of the gradient of an operator: the cotangent,
        and what the operator takes."""
        own = node.target._schema.arguments
        given = dict(zip((argument.name for argument in own), node.args), **node.kwargs)
        taken = (forward or node.target)._schema.arguments
        values = [given.get(argument.name, argument.default_value) for argument in taken]
        if node.target.overloadpacket is self.torch.ops.aten.as_strided:  # reads a storage
            value = node.args[0].meta["val"]
            values += [list(value.stride()), value.storage_offset()]
        return [node.args[0], *values] if forward else values

    def _folded(self, node, value):
        """The number of the array of what no input decides: integers, truth and rounded values."""
        torch, known = self.torch, self.known
        large = isinstance(value, torch.Tensor) and value.numel() > LARGEST
        if large or not all(n in known for n in node.all_input_nodes):
            return None
        args, kwargs = (torch.fx.node.map_arg(a, known.get) for a in (node.args, node.kwargs))
        kwargs = {k: ("cpu" if k == "device" else v) for k, v in kwargs.items()}
        try:
            with torch.no_grad():
                known[node] = node.target(*args, **kwargs)
        except Exception:
            return None
        result, rounds = known[node], getattr(node.target, "__name__", "").split(".")[0] in ROUNDING
        if not isinstance(result, torch.Tensor) or (result.is_floating_point() and not rounds):
            return None
        return self._keep(result)

    def _tensor(self, value, node, line=""):
        shape = list(value.shape)
        if not all(isinstance(length, int) for length in shape):
            raise NotExported("%s has a shape that depends on data (%s)" % (node.name, line or "?"))
        _check(value, node.name, self.torch, " (%s)" % line if line else "")
        return {"shape": shape, "dtype": str(value.dtype).replace("torch.", "")}

    def _keep(self, tensor):
        tensor = tensor.detach().cpu().contiguous()
        number = str(len(self.arrays))
        try:
            array = tensor.numpy()
        except TypeError:  # NumPy has no such format
            bits = VIEWS[tensor.element_size()]
            array = tensor.view(getattr(self.torch, bits)).numpy()
        self.arrays[number] = np.array(array)
        return number

    def _encoded(self, value):
        torch = self.torch
        if isinstance(value, torch.fx.Node):
            if not isinstance(value.meta.get("val"), (torch.Tensor, list, tuple)):
                return None
            return {"node": value.name}
        if isinstance(value, (list, tuple)):
            return [self._encoded(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).replace("torch.", "")}
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            return None
        return {"unknown": type(value).__name__}


def _forward_of(overload, torch):
    """The operator of which an operator that is called so is the gradient."""
    name = overload.overloadpacket.__name__
    if overload.namespace != "aten" or not name.endswith("_backward"):
        return None
    forward = getattr(getattr(torch.ops.aten, name[: -len("_backward")], None), "default", None)
    taken = [argument.name for argument in overload._schema.arguments]
    return forward if forward and forward._schema.arguments[0].name in taken else None


def _used(nodes, outputs):
    """The nodes that the outputs need."""
    needed = set(outputs)
    kept = []
    for node in reversed(nodes):
        if node["name"] in needed:
            kept.append(node)
            needed.update(_operands(node["arguments"]))
    return kept[::-1]


def _operands(arguments):
    if isinstance(arguments, dict):
        return [arguments["node"]] if "node" in arguments else []
    if isinstance(arguments, list):
        return [name for item in arguments for name in _operands(item)]
    return []


def script(path):
    """The module of a file of the package."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def smaller(request):
    """The module of the request's file, its integers made smaller by the script of the request,
    which then has `text` and `sizes`, and `larger` ones."""
    shrinking = script(request["shrinking"])
    sys.path.insert(0, os.path.dirname(os.path.abspath(request["file"])))
    with open(request["file"], encoding="utf-8") as file:
        given = file.read(), request["file"], request["name"]
    request["text"], request["sizes"] = shrinking.smaller(*given, request["most"])
    request["larger"] = shrinking.larger(*given, request["sizes"])
    return shrinking.executed(request["text"], request["file"])


def asked(request):
    """The function of FILE.py:NAME and its example inputs: those of the request, or of the file's
    get_inputs(). A class is made with the file's get_init_inputs()."""
    import torch

    torch.manual_seed(0)
    path, name = request["file"], request["name"]
    task = script(os.path.join(os.path.dirname(os.path.abspath(__file__)), "task.py"))
    try:
        shrunk = request.get("shrinking")
        module = smaller(request) if shrunk else task.loaded("refkernels_program", path)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if f.filename == os.path.abspath(path)] or frames
        said = "%s: %s" % (type(error).__name__, (str(error).splitlines() or [""])[0])
        raise NotExported(
            "%s cannot be loaded (line %d, %s)" % (path, own[-1].lineno, said)
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise NotExported("%s has no function %s" % (path, name))
    if isinstance(function, type):
        torch.manual_seed(0)
        function = function(*getattr(module, "get_init_inputs", list)())
    if shrunk:
        function = task.trained(function)
        torch.manual_seed(0)
    if request["arrays"] is None:
        if not hasattr(module, "get_inputs"):
            raise NotExported(
                "%s says nothing of its inputs: give them, or define get_inputs() there" % path
            )
        return function, list(module.get_inputs()), {}
    kinds = {key: getattr(torch, dtype) for key, dtype in request["dtypes"].items()}
    with np.load(request["arrays"], allow_pickle=False) as arrays:
        tensors = {k: torch.from_numpy(np.array(arrays[k])).view(kinds[k]) for k in arrays.files}
    named = inspect.signature(getattr(function, "forward", function)).parameters
    return function, [], {key: tensor for key, tensor in tensors.items() if key in named}


def main(request_path, out):
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    try:
        function, args, kwargs = asked(request)
        document, arrays = exported(
            function, args, kwargs, request["kept"], not request.get("shrinking")
        )
        document.update({k: request[k] for k in ("sizes", "text", "larger") if k in request})
        np.savez(out + ".npz", **arrays)
    except NotExported as error:
        document = {"error": str(error)}
    with open(out + ".json", "w", encoding="utf-8") as file:
        json.dump(document, file, allow_nan=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
