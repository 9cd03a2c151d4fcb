"""Which calls of a PyTorch program cost its accuracy: one file that needs torch and nothing else.

    python in_torch.py FILE.py:function         what the function returns is the program's result
    python in_torch.py train.py                 a script, up to its first backward(): its loss
    trace = Trace(); with trace: y = model(x)   then trace.profile([y])

A dispatch mode sees every ATen call and changes no bit of it. At once, each call is repeated in
float64 on its own inputs: the difference is its *local error*. Afterwards the whole program runs
again in float64, with derivatives: a local error times the derivative of the result by that call's
output is what the call contributes to the result's error. One linear functional of the result
misleads, since contributions cancel: shares are c² / Σ c² over several random ones. What a change
would buy is no estimate: the program runs again in its own formats, some of its calls in float64.

Decisions (comparisons, indices) are those of the program: how many of them float64 would have made
otherwise is counted.
"""

import functools
import json
import linecache
import math
import os
import runpy
import sys

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.weak import WeakIdKeyDictionary

if [int(part) for part in torch.__version__.split(".")[:2]] < [2, 3]:
    raise ImportError("A profile needs PyTorch 2.3 or newer, and this is %s." % torch.__version__)

FUNCTIONALS = 16  # random ones: a share's standard error is then about a quarter of it
SAMPLED = 1024  # elements of each result that are compared with the float64 run's
HEAVIEST = 8  # call sites, and modules, whose calls are run in float64 to see what that buys
LEAST = 0.01  # share of a call site whose calls are run so
HERE = os.path.abspath(__file__)
COMPILED = os.path.join("_dynamo", "eval_frame.py")
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
ATEN = torch.ops.aten
IDENTITIES = (ATEN.detach.default, ATEN.lift_fresh.default)


class ProgramRefused(ValueError):
    """The program cannot be profiled; the message is one sentence."""


class TensorNumber:
    """A tensor of the trace, by number."""

    def __init__(self, number):
        self.number = number


class AtenCall:
    """An ATen call: `given`, its arguments with numbers for tensors; `results`, the number of each,
    None where it is no tensor. `errors`: the local error of each floating-point result.
    `drawn`: results that every further run takes as they are, by number: random ones, decisions.
    `decides`: whether it makes decisions of floating-point numbers. `seen`: whether float64 has
    such a call, and its derivative. `overflowed`: how many elements are finite in one format
    only."""

    def __init__(self, function, given, where):
        self.function, self.given, self.where = function, given, where
        self.results, self.dtypes, self.errors, self.drawn = [], [], [], {}
        self.samples, self.local, self.seen, self.decides, self.overflowed = (
            [],
            None,
            True,
            False,
            0,
        )


class CallSite:
    """The call site: the module's path, and the line of the user's file."""

    def __init__(self, module, file, line):
        self.module, self.file, self.line = module, file, line

    def line_keys(self):
        return [(self.module, self.file, self.line)]

    def module_keys(self):
        """The module and all that it is inside of."""
        parts = self.module.split(".")
        return [".".join(parts[:k]) for k in range(1, len(parts) + 1)] if self.module else []


def floating(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def widened(value):
    """In float64: a tensor (a copy of its own), a format that is asked for."""
    if floating(value):
        return value.detach().to(torch.float64, copy=True)
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


def run_wide(function, args, kwargs):
    """The call in float64; its arguments are widened already."""
    if function is ATEN._to_copy.default:
        asked = kwargs.get("dtype") or args[0].dtype
        if asked.is_floating_point:
            value = args[0] * 1.0 if floating(args[0]) else args[0].to(torch.float64)
            return value.to(kwargs.get("device") or value.device)
    if function in IDENTITIES:
        return args[0].view_as(args[0])
    if function in (ATEN._softmax.default, ATEN._log_softmax.default):
        args = (*args[:2], False)  # a result in another format than float64 is not to be had
    return function(*args, **kwargs)


def written(function, args, kwargs):
    """The tensors that a call writes into."""
    places = []
    for k, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name, args[k] if k < len(args) else None)
            places += [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]
    return places


@functools.lru_cache(maxsize=None)
def is_view(function):
    """Whether its result is its argument, seen otherwise."""
    aliases = [result.alias_info for result in function._schema.returns]
    return function in IDENTITIES or any(alias and not alias.is_write for alias in aliases)


class Trace(TorchDispatchMode):
    """Records the calls that are made within it."""

    def __init__(self):
        super().__init__()
        self.calls, self.leaves, self.changed = [], {}, set()
        self._numbers = WeakIdKeyDictionary()
        self._count, self._stack, self._names, self._hooks = 0, [], {}, []
        self.begun, self.last, self.compiled = False, None, False

    def __enter__(self):
        self.begun = True
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
        if not self._stack:
            self._names = {id(part): name for name, part in module.named_modules()}
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _leave_module(self, module, inputs, result):
        self._stack.pop()
        if not self._stack:
            self.last = result

    def _where(self):
        frame, found = sys._getframe(2), None
        while frame is not None:
            file, code = frame.f_code.co_filename, frame.f_code
            name = getattr(code, "co_qualname", code.co_name)
            if file.endswith(COMPILED) and ("compile_wrapper" in name or "DynamoContext" in name):
                self.compiled = True
            if found is None and not file.startswith(TORCH) and os.path.abspath(file) != HERE:
                found = frame
            frame = frame.f_back
        module = self._stack[-1] if self._stack else ""
        if found is None:
            return CallSite(module, "", 0)
        return CallSite(module, os.path.abspath(found.f_code.co_filename), found.f_lineno)

    def number(self, tensor):
        """The tensor's number; one that no call made is a leaf, whose value is kept."""
        number = self._known(tensor)
        if number is None:
            number = self._number(tensor)
            self.leaves[number] = tensor.detach()
        return number

    def _known(self, tensor):
        """Its number, None where it has none, or has got other memory (`.data = ...`) since."""
        number, memory = self._numbers.get(tensor, (None, None))
        return number if memory == tensor.untyped_storage()._cdata else None

    def _number(self, tensor):
        self._count += 1
        self._numbers[tensor] = self._count, tensor.untyped_storage()._cdata
        return self._count

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(kind not in (torch.Tensor, torch.nn.Parameter) for kind in types):
            names = ", ".join(kind.__name__ for kind in types)
            raise ProgramRefused("Tensors of a class of their own (%s) are not profiled." % names)

        def given(value):
            return TensorNumber(self.number(value)) if isinstance(value, torch.Tensor) else value

        call = AtenCall(function, tree_map(given, (args, kwargs)), self._where())
        for tensor in written(function, args, kwargs):
            number = self._known(tensor)
            if number in self.leaves and number not in self.changed:
                self.leaves[number] = self.leaves[number].clone()
                self.changed.add(number)
        takes = [leaf for leaf in tree_flatten((args, kwargs))[0] if floating(leaf)]
        random = torch.Tag.nondeterministic_seeded in function.tags
        empty = "empty" in function._schema.name  # what it holds, others write
        plain = not takes or random or empty or is_view(function)
        wide = None if plain else tree_map(widened, (args, kwargs))
        result = function(*args, **kwargs)
        self._finish(call, result, wide)
        self.calls.append(call)
        return result

    def _finish(self, call, result, wide):
        results = tree_flatten(result)[0]
        exact = [None] * len(results)
        if wide is not None:
            with torch.no_grad():
                try:
                    exact = tree_flatten(run_wide(call.function, *wide))[0]
                except (RuntimeError, NotImplementedError, TypeError):
                    call.seen = False
        for value, truth in zip(results, exact):
            known = isinstance(value, torch.Tensor)
            call.results.append((self._known(value) or self._number(value)) if known else None)
            call.dtypes.append(value.dtype if known else None)
            apart = floating(value) and floating(truth) and value.shape == truth.shape
            error, overflowed = difference(value, truth) if apart else (None, 0)
            call.overflowed += overflowed
            call.errors.append(error)
            if apart and call.local is None and value.numel():
                call.local = local_error(error, truth, value.dtype)
            call.decides = call.decides or (known and wide is not None and not floating(value))
            if known and not is_view(call.function) and (truth is None or not floating(value)):
                call.drawn[call.results[-1]] = value.detach().clone()
            call.samples.append(sample(value).clone() if floating(value) else None)

    def profile(self, outputs):
        """The record of the program whose results are `outputs`, tensors that a call made."""
        tensors = [leaf for leaf in tree_flatten(outputs)[0] if floating(leaf)]
        made = {number for call in self.calls for number in call.results}
        numbers = [number for number in map(self._known, tensors) if number in made - {None}]
        if not numbers:
            raise ProgramRefused(
                "No floating-point result of the program was made by a call that was seen: return "
                "it from the function, or call backward() on it."
            )
        if all(t.dtype == torch.float64 for t in tensors):
            raise ProgramRefused("The program computes in float64, which float64 cannot judge.")
        return Attribution(self, numbers).record()


def sample(value):
    """Elements at even distances, in float64."""
    flat = value.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // SAMPLED)][:SAMPLED].to(torch.float64)


def rms(value):
    """The root mean square of the finite elements."""
    size = float(value.norm(dtype=torch.float64))
    if not math.isfinite(size):
        value = value[torch.isfinite(value)].double()
        largest = float(value.abs().max()) if value.numel() else 1.0
        size = largest * float((value / largest).norm())
    return size / math.sqrt(max(value.numel(), 1))


def difference(value, truth):
    """value - truth, where both are finite, None where that is 0 everywhere; how many elements are
    finite in one only."""
    value, truth = value.detach(), truth.detach()
    value = value.double() if value.element_size() == 1 else value  # float8 is not promoted
    error = torch.sub(value, truth, out=torch.empty_like(truth))
    size, overflowed = float(error.norm()), 0
    if not math.isfinite(size):
        finite = torch.isfinite(value), torch.isfinite(truth)
        error = torch.where(finite[0] & finite[1], error, torch.zeros_like(error))
        size, overflowed = float(error.norm()), int((finite[0] != finite[1]).sum())
    return (error if size else None), overflowed


def local_error(error, truth, dtype):
    """The root mean square of the error, in roundings: half an ulp of a number of the result's
    size."""
    if error is None:
        return 0.0
    size = rms(truth) * torch.finfo(dtype).eps / 2
    return rms(error) / size if size else 0.0


class Replay:
    """The recorded program once more: in float64 where `wide(call)`, elsewhere as it was."""

    def __init__(self, trace, wide, derivatives=False):
        self.values, self.edges, self.dtypes, self.flipped = {}, {}, {}, []
        self._trace, self._wide, self._derivatives = trace, wide, derivatives
        for call in trace.calls:
            self._run(call)

    def _value(self, number, wide):
        """A tensor of the trace, in float64 or in the format that the program had."""
        if number not in self.values:
            leaf = self._trace.leaves[number]
            self.values[number] = self._leaf(leaf, wide, number in self._trace.changed)
            self.dtypes[number] = leaf.dtype
        value = self.values[number]
        if floating(value) and value.dtype != (torch.float64 if wide else self.dtypes[number]):
            value = value.to(torch.float64 if wide else self.dtypes[number])
        return value

    def _run(self, call):
        wide = self._wide(call) and call.seen
        args, kwargs = tree_map(
            lambda item: self._value(item.number, wide) if isinstance(item, TensorNumber) else item,
            call.given,
        )
        counts = self._derivatives and call.decides and call.seen
        results = [None] * len(call.results)
        if counts or not all(number in call.drawn for number in call.results):
            if wide:
                args, kwargs = tree_map(
                    lambda v: v if isinstance(v, torch.Tensor) else widened(v), (args, kwargs)
                )
            run = run_wide if wide else lambda function, args, kwargs: function(*args, **kwargs)
            try:
                results = tree_flatten(run(call.function, args, kwargs))[0]
            except RuntimeError:  # no derivative by one of the arguments
                if not self._derivatives or call.function not in decomposition_table:
                    raise
                results = tree_flatten(decomposition_table[call.function](*args, **kwargs))[0]
        for k, (number, value) in enumerate(zip(call.results, results)):
            if number in call.drawn:
                kept = call.drawn[number]
                if value is not None and not floating(kept):
                    self.flipped.append((call, int((value != kept).sum()), kept.numel()))
                value = self._leaf(kept, wide)
            elif self._derivatives and type(value.grad_fn).__name__ == "NotImplemented":
                call.seen, value = False, self._leaf(value.detach(), wide)
            if number is not None:
                self.values[number], self.dtypes[number] = value, call.dtypes[k]
                if self._derivatives and value.requires_grad:
                    edge = torch.autograd.graph.get_gradient_edge(value)
                    self.edges.setdefault(id(call), {})[k] = edge

    def _leaf(self, kept, wide, changes=True):
        """A value that no call of this run makes."""
        value = widened(kept) if wide else kept.clone() if changes else kept
        return value.requires_grad_() * 1.0 if self._derivatives and floating(value) else value


class Attribution:
    """What a trace shows of its results."""

    def __init__(self, trace, outputs):
        self.trace, self.outputs = trace, outputs
        needed, kept = set(outputs), []
        for call in reversed(trace.calls):
            if needed & {*call.results} or (kept and call.function._schema.is_mutable):
                needed |= {
                    item.number
                    for item in tree_flatten(call.given)[0]
                    if isinstance(item, TensorNumber)
                }
                kept.append(call)
        trace.calls = kept[::-1]
        with torch.enable_grad():
            self.truth = Replay(trace, lambda call: True, derivatives=True)
        self.before = self._error(lambda call: False)

    def _error(self, wide):
        """The results' error against the float64 run, one vector, each result by its own size,
        where the calls of `wide` run in float64."""
        with torch.no_grad():
            run = Replay(self.trace, wide)
        parts = []
        for number in self.outputs:
            exact = self.truth.values[number].detach()
            error, _ = difference(run.values[number], exact)
            error = torch.zeros_like(exact) if error is None else error
            parts.append(error.reshape(-1) / (rms(exact) or 1.0))
        return torch.cat(parts)

    def _contributions(self):
        """Each call's contribution to the error of random functionals: (functionals, calls), and
        the errors of these functionals themselves."""
        results = [self.truth.values[number] for number in self.outputs]
        places = [
            (j, k, edge)
            for j, call in enumerate(self.trace.calls)
            for k, edge in self.truth.edges.get(id(call), {}).items()
            if call.errors[k] is not None
        ]
        generator = torch.Generator().manual_seed(0)
        table = torch.zeros(FUNCTIONALS, len(self.trace.calls), dtype=torch.float64)
        totals = torch.zeros(FUNCTIONALS, dtype=torch.float64)
        for f in range(FUNCTIONALS):
            signs, start = [], 0
            for value in results:
                draw = torch.randint(2, value.shape, generator=generator).double() * 2 - 1
                signs.append(draw.to(value.device) / (rms(value.detach()) or 1.0))
                end = start + value.numel()
                totals[f] += float(
                    (self.before[start:end] * draw.reshape(-1).to(value.device)).sum()
                )
                start = end
            edges = [edge for _, _, edge in places]
            slopes = torch.autograd.grad(
                results, edges, signs, retain_graph=True, allow_unused=True
            )
            for (j, k, _), slope in zip(places, slopes):
                if slope is not None:
                    error = self.trace.calls[j].errors[k].double()
                    table[f, j] += float((slope * error).nan_to_num().sum())
        return table, totals

    def _gain(self, key, keys_of):
        """What becomes of the error where the calls of one key run in float64."""
        after = self._error(lambda call: key in keys_of(call.where))
        return 1.0 - rms(after) / (rms(self.before) or 1.0)

    def record(self):
        calls = self.trace.calls
        table, totals = self._contributions()
        power = table.square().mean(0)
        remainder = rms(totals - table.sum(1)) / (rms(totals) or 1.0)
        groups = {"sites": CallSite.line_keys, "modules": CallSite.module_keys}
        record = {
            "schema": 1,
            "kind": "profile",
            "torch": torch.__version__,
            "device": sorted({str(self.truth.values[n].device) for n in self.outputs}),
            "formats": sorted(
                {str(d)[6:] for c in calls for d in c.dtypes if d and d.is_floating_point}
            ),
            "calls": len(calls),
            "compiled": self.trace.compiled,
            "unseen": sorted({str(call.function) for call in calls if not call.seen}),
            "error": rms(self.before),
            "functionals": FUNCTIONALS,
            "remainder": remainder,
            "overflowed": [
                {"call": str(call.function), **place(call.where), "elements": call.overflowed}
                for call in calls
                if call.overflowed
            ],
            "flipped": [
                {"call": str(call.function), **place(call.where), "flipped": n, "of": of}
                for call, n, of in self.truth.flipped
                if n
            ],
        }
        power = power / (float(power.sum()) or 1.0)
        for name, keys_of in groups.items():
            record[name] = self._grouped(keys_of, power)
        record["timeline"] = self._timeline(power)
        return record

    def _grouped(self, keys_of, power):
        members = {}
        for j, call in enumerate(self.trace.calls):
            for key in keys_of(call.where):
                members.setdefault(key, []).append(j)
        shares = {key: float(power[js].sum()) for key, js in members.items()}
        order = sorted(members, key=lambda key: -shares[key])
        rows = []
        for rank, key in enumerate(order):
            calls = [self.trace.calls[j] for j in members[key]]
            judged = [call.local for call in calls if call.local is not None]
            by_op = {}
            for j in members[key]:
                name = named(self.trace.calls[j])
                by_op[name] = by_op.get(name, 0.0) + float(power[j])
            ops = sorted(by_op, key=by_op.get, reverse=True)
            heavy = rank < HEAVIEST and shares[key] > LEAST
            formats = {str(d)[6:] for c in calls for d in c.dtypes if d and d.is_floating_point}
            module = key if isinstance(key, str) else key[0]
            rows.append(
                {
                    **place(calls[0].where),
                    "module": module,
                    "share": shares[key],
                    "gain": self._gain(key, keys_of) if heavy else None,
                    "ops": [op for op in ops if by_op[op]] or ops,
                    "formats": sorted(formats),
                    "calls": len(calls),
                    "roundings": max(judged, default=None),
                }
            )
        return rows

    def _timeline(self, power):
        """Of every call with a floating-point result: its share, its own error and the one that has
        come together, both against the size of the result."""
        points = []
        for j, call in enumerate(self.trace.calls):
            for k, number in enumerate(call.results):
                if call.local is None or call.samples[k] is None or number in call.drawn:
                    continue
                exact = sample(self.truth.values[number]) if number in self.truth.values else None
                if exact is None or exact.shape != call.samples[k].shape:
                    continue
                size = rms(exact) or 1.0
                error, (apart, _) = call.errors[k], difference(call.samples[k], exact)
                points.append(
                    {
                        "op": named(call),
                        **place(call.where),
                        "share": float(power[j]),
                        "local": 0.0 if error is None else rms(error) / size,
                        "accumulated": 0.0 if apart is None else rms(apart) / size,
                    }
                )
                break
        return points


def named(call):
    """softmax, for aten::_softmax."""
    return call.function._schema.name.partition("::")[2].strip("_")


def place(where):
    code = linecache.getline(where.file, where.line).strip()
    return {"module": where.module, "file": where.file, "line": where.line, "code": code}


def of_function(path, name):
    """The profile of what FILE.py:function returns."""
    function = runpy.run_path(path, run_name="__profiled__").get(name)
    if not callable(function):
        raise ProgramRefused("%s has no function %s." % (path, name))
    trace = Trace()
    with trace:
        result = function()
    return trace.profile(result)


class BackwardReached(BaseException):
    """The script calls backward(): its loss is known."""


def of_script(path, arguments):
    """The profile of a script's loss: from the first module that it calls to the first backward(),
    where it ends."""
    trace, before = Trace(), [path, *arguments]

    def begin(module, inputs):
        if not trace.begun:
            trace.__enter__()
            trace._enter_module(module, inputs)

    def backward(loss, *args, **kwargs):
        raise BackwardReached(loss)

    hook = torch.nn.modules.module.register_module_forward_pre_hook(begin)
    own, torch.Tensor.backward = torch.Tensor.backward, backward
    argv, sys.argv = sys.argv, before
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except BackwardReached as reached:
        (loss,) = reached.args
    else:
        raise ProgramRefused("%s ended without a call of backward()." % path)
    finally:
        hook.remove()
        torch.Tensor.backward, sys.argv = own, argv
        if trace.begun:
            trace.__exit__(None, None, None)
    return trace.profile([loss])


def main(out, program, *arguments):
    """Writes the profile of a program to the file `out`; a refusal is one sentence."""
    path, _, name = program.rpartition(":")
    try:
        record = of_function(path, name) if path else of_script(program, arguments)
    except ProgramRefused as refused:
        sys.exit(str(refused))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(record, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
