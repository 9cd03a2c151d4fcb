"""Which calls of a PyTorch program cost its accuracy: run beside torch, with capture.py.

    python in_torch.py FILE.py:function         what the function returns is the program's result
    python in_torch.py train.py                 a script, up to its first backward(): its loss
    trace = Trace(); with trace: y = model(x)   then trace.profile([y])

A dispatch mode sees every ATen call, changes no bit of it, and runs it also in float64 on its own
inputs: the difference is its *local error*. Afterwards the whole program runs in float64, with
derivatives: a local error times the derivative of the result by that call's output is what the call
contributes to the result's error. One linear functional of the result misleads, since contributions
cancel: shares are c² / Σ c² over several random ones. What a change would buy is no estimate: the
program runs again, some of its calls in float64.

Decisions (comparisons, indices) are those of the program: how many of them float64 would have made
otherwise is counted.
"""

import collections
import functools
import json
import linecache
import math
import os
import runpy
import sys

import torch
from torch._decomp import decomposition_table
from torch.utils._pytree import tree_flatten, tree_map

try:
    from refkernels.capture import DTYPES, tracer
except ImportError:  # run as a file, by torch's interpreter
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from capture import DTYPES, tracer  # noqa: F401

if [int(part) for part in torch.__version__.split(".")[:2]] < [2, 3]:
    raise ImportError("A profile needs PyTorch 2.3 or newer, and this is %s." % torch.__version__)

FUNCTIONALS = 16  # random ones: a share's standard error is then about a quarter of it
SAMPLED = 1024  # elements of each result that are compared with the float64 run's
HEAVIEST = 8  # call sites, and modules, whose calls are run in float64 to see what that buys
ROUNDS = 0.25  # relative: what changes a number's bits by less rounds it
LEAST = 0.01  # share of a call site whose calls are run so
COMPILED = os.path.join("_dynamo", "eval_frame.py")
ATEN = torch.ops.aten
IDENTITIES = (ATEN.detach.default, ATEN.lift_fresh.default)


class ProgramRefused(ValueError):
    """The program cannot be profiled; the message is one sentence."""


class TensorNumber:
    """A tensor of the trace, by number, in the arguments of a call."""

    def __init__(self, number):
        self.number = number


def read(value):
    """A recorded argument."""
    if isinstance(value, (list, tuple)):
        return [read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "t" in value:
        return TensorNumber(value["t"]) if value["t"] else None
    if set(value) == {"float"}:
        return float(value["float"])
    if set(value) == {"device"} and isinstance(value["device"], str):
        return torch.device(value["device"])
    for word in ("dtype", "layout", "memory_format"):
        if set(value) == {word} and isinstance(value[word], str):
            return getattr(torch, value[word], None)
    return {key: read(item) for key, item in value.items()}


class RecordedCall:
    """A call of the trace: its place, its function, its arguments with numbers for tensors, the
    numbers of its results (None where it is no tensor) and their recorded norms.

    Once judged, `errors`: the local error of each floating-point result, `local` in roundings;
    `drawn`: results that every further run takes as they are, by number: random ones, decisions;
    `decides`: whether it makes decisions of floating-point numbers; `seen`: whether float64 has
    such a call, and its derivative; `overflowed`: how many elements are finite in one format only;
    `rounds`: the number of a tensor of which the result is a rounding, by its bits."""

    fused, of, ends = "", None, False  # of what it is a part; whether it makes that's result
    errors, samples, drawn, local, rounds = [None], [None], {}, None, None
    dtypes, seen, decides, overflowed = [], True, False, 0

    def __init__(self, index, record, places):
        name, args, kwargs, self.results, place, self.norms = record
        self.index, self.name = index, name
        self.module, self.file, self.line = places[place]
        function = torch.ops
        for part in name.split("."):
            function = getattr(function, part)
        self.takes(function, read(args), read(kwargs))

    def takes(self, function, args, kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs
        leaves = tree_flatten((args, kwargs))[0]
        self.numbers = [item.number for item in leaves if isinstance(item, TensorNumber)]
        self.writes = function._schema.is_mutable
        self.draws = torch.Tag.nondeterministic_seeded in function.tags
        self.bits = function is ATEN.view.dtype  # reads the bits of its argument as other numbers

    @property
    def word(self):
        """softmax, for aten._softmax.default."""
        return self.name.split(".")[1].strip("_")

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


def grouped(a, b, ends):
    """Products of groups, which end at these rows: of a's rows with a matrix each, of a's columns
    with b's rows, or of a matrix each with b's columns. Where groups end is a value, and may be
    another's behind an edit: so each product is of all rows, those of other groups being 0."""
    rows, ends = torch.arange(len(a) if b.dim() == 3 else b.shape[a.dim() - 2]), ends[:, None]
    starts = torch.cat((torch.zeros_like(ends[:1]), ends[:-1]))
    inside = ((rows >= starts) & (rows < ends)).to(a.dtype)
    forms = {(2, 3): "gr,rk,gkn->rn", (3, 2): "gr,gmk,kr->mr", (2, 2): "gr,mr,rn->gmn"}
    return torch.einsum(forms[a.dim(), b.dim()], inside, a, b)


def run_wide(function, args, kwargs):
    """The call in float64; its arguments are widened already."""
    if function is ATEN._to_copy.default:
        asked = kwargs.get("dtype") or args[0].dtype
        if asked.is_floating_point:
            value = args[0] * 1.0 if floating(args[0]) else args[0].to(torch.float64)
            return value.to(kwargs.get("device") or value.device)
    if function in IDENTITIES:
        return args[0].view_as(args[0])
    if function in (ATEN.view.default, ATEN._unsafe_view.default):
        return args[0].reshape(args[1])  # float64's kernel may lay out its result otherwise
    if function in (ATEN._softmax.default, ATEN._log_softmax.default):
        args = (*args[:2], False)  # a result in another format than float64 is not to be had
    if "_grouped_mm" in str(function) and args[2] is not None and len(args) == 3:
        return grouped(*args)  # it has no kernel for float64
    if "_amp_foreach_non_finite_check_and_unscale_" in str(function):
        return torch._foreach_mul_(args[0], args[2])  # a loss scaler's factor may be float32 alone
    return function(*args, **kwargs)


@functools.lru_cache(maxsize=None)
def is_view(function):
    """Whether its result is its argument, seen otherwise."""
    aliases = [result.alias_info for result in function._schema.returns]
    return function in IDENTITIES or any(alias and not alias.is_write for alias in aliases)


class Trace(tracer(torch)):
    """Records the calls that are made within it, and the values that no call makes; judges them."""

    own = (*tracer(torch).own, os.path.abspath(__file__))

    def __init__(self):
        self.kept, self.compiled = {}, False
        self.dtypes, self.judged = {}, {}  # by number; calls, by index
        self._bits = {}  # of integers: the number of the tensor whose bits they are, and itself
        super().__init__(lambda key, value: self.kept.update({key: value.detach().clone()}))

    def _place(self):
        frame = None if self.compiled else sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            name = getattr(code, "co_qualname", code.co_name)
            if code.co_filename.endswith(COMPILED):
                self.compiled |= "compile_wrapper" in name or "DynamoContext" in name
            frame = frame.f_back
        return super()._place()

    def _add_tensor(self, tensor):
        number = super()._add_tensor(tensor)
        self.dtypes[number] = tensor.dtype
        return number

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given, before = (args, kwargs or {}), (len(self.calls), {*self.drawn})
        tensors = [leaf for leaf in tree_flatten(given)[0] if isinstance(leaf, torch.Tensor)]
        empty = "empty" in str(function)  # what it holds, others write
        plain = not any(map(floating, tensors)) or empty or is_view(function)
        wide = None if plain else tree_map(widened, given)
        result = super().__torch_dispatch__(function, types, args, kwargs)
        if len(self.calls) > before[0]:
            call = RecordedCall(len(self.calls) - 1, self.calls[-1], list(self.places))
            call.dtypes = [self.dtypes.get(number) for number in call.results]
            self.judged[call.index] = call
            wide = wide if self.drawn.keys() == before[1] else None
            self._judge(call, tensors, wide, tree_flatten(result)[0])
        return result

    def _judge(self, call, tensors, wide, results):
        """Compare a call's results with those of float64; `wide`: its arguments, if it has any."""
        call.errors, call.samples, call.drawn, exact = [], [], {}, [None] * len(results)
        if wide is not None:
            try:
                exact = tree_flatten(run_wide(call.function, *wide))[0]
            except (RuntimeError, NotImplementedError, TypeError):
                call.seen = False
        sources = [self._bits[number] for number in call.numbers if number in self._bits]
        if call.bits and floating(tensors[0]):
            sources = [(call.numbers[0], widened(tensors[0]))]
        for number, value, truth in zip(call.results, results, exact):
            value = value if isinstance(value, torch.Tensor) else None
            if sources and value is not None and not floating(value):
                self._bits[number] = sources[0]
            elif sources and call.bits and is_rounding(value, sources[0][1]):
                call.rounds, truth = sources[0]
            apart = floating(value) and floating(truth) and value.shape == truth.shape
            error, overflowed = difference(value, truth) if apart else (None, 0)
            call.overflowed += overflowed
            call.errors.append(error)
            if apart and call.local is None and value.numel():
                call.local = local_error(error, truth, value.dtype)
            call.decides |= value is not None and wide is not None and not floating(value)
            others = truth is None or not floating(value)
            if value is not None and not (is_view(call.function) or number in self._bits):
                call.drawn.update({number: value.detach().clone()} if others else {})
            call.samples.append(sample(value).clone() if floating(value) else None)

    def profile(self, outputs):
        """The record of the program whose results are `outputs`, tensors that a call made."""
        if self.unseen:
            names = ", ".join(sorted(self.unseen))
            raise ProgramRefused("Tensors of a class of their own (%s) are not profiled." % names)
        tensors = [leaf for leaf in tree_flatten(outputs)[0] if floating(leaf)]
        results = {self._known(tensor): tensor.detach() for tensor in tensors}
        results = {n: tensor for n, tensor in results.items() if n not in (None, *self.leaves)}
        if not results:
            raise ProgramRefused(
                "No floating-point result of the program was made by a call that was seen: return "
                "it from the function, or call backward() on it."
            )
        if all(t.dtype == torch.float64 for t in tensors):
            raise ProgramRefused("The program computes in float64, which float64 cannot judge.")
        return Attribution(self, results).record()


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


def is_rounding(value, whole):
    """Whether a number whose bits were changed is a rounding of the whole one."""
    same = value.shape == whole.shape
    return same and not bool(((value.double() - whole).abs() > ROUNDS * whole.abs()).any())


def local_error(error, truth, dtype):
    """The root mean square of the error, in roundings: half an ulp of a number of the result's
    size."""
    size = rms(truth) * torch.finfo(dtype).eps / 2
    return rms(error) / size if size and error is not None else 0.0


class Replay:
    """The recorded program once more: in float64 where `wide(call)`, elsewhere as it was."""

    def __init__(self, program, wide, derivatives=False):
        self.values, self.samples, self.edges, self.flipped = {}, {}, {}, []
        self._program, self._wide, self._derivatives = program, wide, derivatives
        for call in program.calls:
            self._run(call)

    def _given(self, item, wide, as_is=False):
        """An argument; a tensor in float64, in the format that the program had, or as it is."""
        if not isinstance(item, TensorNumber):
            return widened(item) if wide else item
        if item.number not in self.values:
            self.values[item.number] = self._leaf(self._program.leaves[item.number], wide)
        value = self.values[item.number]
        dtype = torch.float64 if wide else self._program.dtypes[item.number]
        return value.to(dtype) if floating(value) and not as_is else value

    def _run(self, call):
        asked = self._wide(call) and call.seen
        wide = asked and not call.bits
        as_is = call.function is ATEN._to_copy.default  # rounds to its own format alone
        given = functools.partial(self._given, wide=wide, as_is=as_is)
        args, kwargs = tree_map(given, (call.args, call.kwargs))
        counts = self._derivatives and call.decides and call.seen
        results = [None] * len(call.results)
        if asked and call.rounds is not None:
            results = [self._given(TensorNumber(call.rounds), True) * 1.0]
        elif counts or not all(number in call.drawn for number in call.results):
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
            if self._derivatives and floating(value) and number not in call.drawn:
                self.samples[id(call), k] = sample(value.detach()).clone()  # not yet overwritten
            if number is not None:
                self.values[number] = value
                if self._derivatives and value.requires_grad:
                    edge = torch.autograd.graph.get_gradient_edge(value)
                    self.edges.setdefault(id(call), {})[k] = edge

    def _leaf(self, kept, wide):
        """A value that no call of this run makes."""
        value = widened(kept) if wide else kept.clone()
        return value.requires_grad_() * 1.0 if self._derivatives and floating(value) else value


class Attribution:
    """What a trace shows of its results."""

    def __init__(self, trace, outputs):
        """`outputs`: the results' tensors, by number."""
        self.outputs, self.compiled, self.dtypes = outputs, trace.compiled, trace.dtypes
        record = trace.record()
        calls = [trace.judged.get(k) or RecordedCall(k, call, record["places"])
                 for k, call in enumerate(record["calls"])]  # fmt: skip
        needed, kept = set(outputs), []
        for call in reversed(calls):
            if needed & {*call.results} or (kept and call.writes):
                needed |= {*call.numbers}
                kept.append(call)
        self.calls = kept[::-1]
        self.leaves = {number: trace.kept[key] for number, key in record["leaves"].items()}
        with torch.enable_grad():
            self.truth = Replay(self, lambda call: True, derivatives=True)
        self.before = self._error(outputs)

    def _error(self, values):
        """The error of the results' values against the float64 run, one vector, each result by its
        own size."""
        parts = []
        for number in self.outputs:
            exact = self.truth.values[number].detach()
            error, _ = difference(values[number], exact)
            error = torch.zeros_like(exact) if error is None else error
            parts.append(error.reshape(-1) / (rms(exact) or 1.0))
        return torch.cat(parts)

    def _contributions(self):
        """Each call's contribution to the error of random functionals: (functionals, calls), and
        the errors of these functionals themselves."""
        results = [self.truth.values[number] for number in self.outputs]
        places = [
            (j, k, edge)
            for j, call in enumerate(self.calls)
            for k, edge in self.truth.edges.get(id(call), {}).items()
            if call.errors[k] is not None
        ]
        generator = torch.Generator().manual_seed(0)
        table = torch.zeros(FUNCTIONALS, len(self.calls), dtype=torch.float64)
        totals = torch.zeros(FUNCTIONALS, dtype=torch.float64)
        edges, sizes = [edge for _, _, edge in places], [rms(v.detach()) or 1.0 for v in results]
        for f in range(FUNCTIONALS):
            draws = [torch.randint(2, v.shape, generator=generator) * 2.0 - 1.0 for v in results]
            draws = [draw.to(v.device, torch.float64) for draw, v in zip(draws, results)]
            totals[f] = self.before @ torch.cat([draw.reshape(-1) for draw in draws])
            signs = [draw / size for draw, size in zip(draws, sizes)]
            slopes = torch.autograd.grad(
                results, edges, signs, retain_graph=True, allow_unused=True
            )
            for (j, k, _), slope in zip(places, slopes):
                error = self.calls[j].errors[k].double()
                if slope is not None and slope.shape == error.shape:  # a decomposition's may differ
                    table[f, j] += float((slope * error).nan_to_num().sum())
        return table, totals

    def _gain(self, key, keys_of):
        """What becomes of the error where the calls of one key run in float64."""
        with torch.no_grad():
            after = self._error(Replay(self, lambda call: key in keys_of(call)).values)
        return 1.0 - rms(after) / (rms(self.before) or 1.0)

    def record(self):
        calls = self.calls
        table, totals = self._contributions()
        power = table.square().mean(0)
        for call, part in zip(calls, (power / (float(power.sum()) or 1.0)).tolist()):
            call.share = part
        return {
            "schema": 1,
            "kind": "profile",
            "torch": torch.__version__,
            "device": sorted({str(self.truth.values[n].device) for n in self.outputs}),
            "formats": formats_of(calls),
            "calls": len(calls),
            "compiled": self.compiled,
            "unseen": sorted({str(call.function) for call in calls if not call.seen}),
            "error": rms(self.before),
            "functionals": FUNCTIONALS,
            "remainder": rms(totals - table.sum(1)) / (rms(totals) or 1.0),
            "overflowed": [told(c, elements=c.overflowed) for c in calls if c.overflowed],
            "flipped": [told(c, flipped=n, of=of) for c, n, of in self.truth.flipped if n],
            "sites": self._grouped(lambda call: [(call.module, call.file, call.line)]),
            "modules": self._grouped(RecordedCall.module_keys),
            "timeline": self._timeline(),
        }

    def _grouped(self, keys_of):
        members, rows = {}, []
        for call in self.calls:
            for key in keys_of(call):
                members.setdefault(key, []).append(call)
        shares = {key: sum(call.share for call in calls) for key, calls in members.items()}
        for rank, key in enumerate(sorted(members, key=lambda key: -shares[key])):
            calls, by_op = members[key], collections.Counter()
            for call in calls:
                by_op[call.word] += call.share
            judged = [call.local for call in calls if call.local is not None]
            ops = [op for op, part in by_op.most_common() if part] or list(by_op)
            heavy = rank < HEAVIEST and shares[key] > LEAST
            module = key if isinstance(key, str) else key[0]
            row = dict(place(calls[0]), module=module, share=shares[key], ops=ops, calls=len(calls))
            row["gain"] = self._gain(key, keys_of) if heavy else None
            rows.append(dict(row, formats=formats_of(calls), roundings=max(judged, default=None)))
        return rows

    def _timeline(self):
        """Of every call with a floating-point result: its share, its own error and the one that has
        come together, both against the size of the result."""
        points = []
        for call in self.calls:
            for k in range(len(call.results)):
                exact = self.truth.samples.get((id(call), k))
                if call.local is None or exact is None or exact.shape != call.samples[k].shape:
                    continue
                size = rms(exact) or 1.0
                error, (apart, _) = call.errors[k], difference(call.samples[k], exact)
                sizes = [0.0 if one is None else rms(one) / size for one in (error, apart)]
                own = dict(place(call), op=call.word, share=call.share)
                points.append(dict(own, local=sizes[0], accumulated=sizes[1]))
                break
        return points


def formats_of(calls):
    return sorted({str(d)[6:] for c in calls for d in c.dtypes if d and d.is_floating_point})


def told(call, **figures):
    return {"call": str(call.function), **place(call), **figures}


def place(call):
    code = linecache.getline(call.file, call.line).strip()
    file = call.file and os.path.abspath(call.file)
    return {"module": call.module, "file": file, "line": call.line, "code": code}


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
        if not trace._hooks:
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
        if trace._hooks:
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
