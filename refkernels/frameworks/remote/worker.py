"""The other side of a session: serves one request at a time in the framework's interpreter.

The host sends this file's source through execnet, then a "hello" with the adapter's source.  This
file needs only the standard library and NumPy (Python 3.8, NumPy 1.20).  Requests and replies are
dicts; every reply has a "status" and, unless that is "ok", a "reason" of one sentence.

Arrays are sent as ``(dtype name, shape, where, ...)``: `where` is "inline", followed by the bytes,
or "mapped", followed by a file and an offset.  bfloat16 is sent as its uint16 bits, float8 as its
uint8 bits.  The host owns the folder of the mapped files and removes it whatever happens here.

An adapter is a module with these names (see numpy_adapter.py for the smallest):

OPS            {op: (name of the main output, function of the inputs and params)}; the function
               returns the main output, or a dict of outputs that starts with it. In its place, a
               sentence says why the framework lacks the op

and, if there is a reason, these:

version()      the framework's version, if its module has no __version__
devices()      [(name, description)], "cpu" first, and every device the framework reports, if these
               are more than the CPU
tensor(array, dtype, device)   the framework's tensor, if it takes no NumPy arrays; it may alias
                               `array`, which it then owns
array(tensor)                  (dtype name, NumPy array in host memory), if NumPy cannot make it
FLAGS          {key: (getter or None, setter of a str or None)}, framework switches for --set; the
               keys must be literals, because the host reads them without running the file
FORMULAS       {op: name} of the ops for which the framework has no kernel and which the adapter
               composes from other ops; reports give this name, not the framework's
information()  {"threads": int or None, "blas": str, ...}: more facts for the record
unsupported(op, direction, dtype, device)  a reason, or None if the call may be tried
forward(op, inputs, params)    what the op's function returns, if it cannot simply be called
backward(op, inputs, cotangent, params)    {gradient: tensor}
synchronize(device)            wait until the device has finished
instruction_sets(features)     [(environment variable, value)] that choose one, of those that the
                               framework has and the processor's features allow
load(file)                     {name: tensor} of a file (a path, or a binary file object);
                               ValueError with a sentence for a file of anything but tensors
"""

import gc
import importlib
import inspect
import io
import mmap
import os
import platform
import re
import signal
import sys
import time
import traceback
import types

import numpy as np

ALIGNMENT = 64
OUT_OF_MEMORY = re.compile(
    r"out of memory|out_of_memory|bad_alloc|resourceexhausted|(not enough|insufficient) memory"
    r"|memory not enough|(can't|cannot|fail(ed)? to) alloc|alloc(ate)?( memory)? failed",
    re.IGNORECASE,
)
UNSUPPORTED = re.compile(
    r"not implemented for|kernel.* is not registered|op_kernel_not_found"
    # MindSpore's list of the dtypes that a kernel takes, which lacks the given one.
    r"|must be (a type|one) of .*but got (Ref\[)?(Tensor\[)?(BF|F)loat\d+"
)

# After one of these every later call fails: CUDA refuses the process all further work.
DEVICE_LOST = re.compile(
    r"device-side assert|illegal (memory access|address)|misaligned address"
    r"|unspecified launch failure|illegal instruction"
)


SWITCHES = ("0", "1", "false", "true", "off", "on", "no", "yes")  # words for one value


class Failure(Exception):
    """A reply that is not ok. `final`: this process can give no further answer."""

    def __init__(self, status, reason, final=False):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.final = final


def one_line(error):
    """Type and first line of an exception: 'ValueError: operands could not be broadcast'; of one
    that says what is not supported, the line."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line[:300] for line in lines if line and set(line) - set("-=~*# ")][:1]
    named = not lines or not isinstance(error, NotImplementedError)
    return ": ".join([type(error).__name__] * named + lines)


def not_taken(function, names):
    """The names that are no keywords of the function, where it says which it has."""
    try:
        taken = inspect.signature(function).parameters
    except (TypeError, ValueError):  # not a function, or one of another language
        return []
    if any(taken[name].kind == inspect.Parameter.VAR_KEYWORD for name in taken):
        return []
    return [name for name in names if name not in taken]


def classify(error, doing):
    """The Failure that an exception of the framework means."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(str(error)):
        return Failure("oom", "%s ran out of memory (%s)" % (doing, one_line(error)))
    if isinstance(error, NotImplementedError) or UNSUPPORTED.search(str(error)):
        return Failure("unsupported", "%s is not supported (%s)" % (doing, one_line(error)))
    lost = bool(DEVICE_LOST.search(str(error)))
    return Failure("error", "%s raised %s" % (doing, one_line(error)), lost)


def why_not_loaded(error, kernel):
    """Why a framework was not imported, or a kernel's file (None: no kernel) not loaded."""
    if kernel is None:
        return "importing the framework raised " + one_line(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == kernel]  # fmt: skip
    if isinstance(error, SyntaxError) and error.filename == kernel:
        return "Python %s does not read line %s of the file (%s): --python names another one" % (
            platform.python_version(), error.lineno, error.msg)  # fmt: skip
    doing = "line %d of the file" % lines[-1] if lines else "loading it"
    reason = "%s raised %s" % (doing, one_line(error))
    if isinstance(error, ModuleNotFoundError):
        reason += ": install it for %s, or name an interpreter that has it by --python" % (
            sys.executable)  # fmt: skip
    elif isinstance(error, ImportError) and "relative import" in str(error):
        reason += ": import a neighbour by its name alone, as the file's folder is on the path"
    return reason


def plain_array(name, dtype, array):
    """(dtype name, array) in the machine's byte order; a Failure unless it holds numbers."""
    kind = np.asarray(array).dtype
    if kind.kind not in "fiubc" and not dtype.startswith("float8"):
        raise Failure("error", "%s is an array of %s, not of numbers" % (name, kind))
    if kind.byteorder in "<>" and not kind.isnative:
        array = np.asarray(array).astype(kind.newbyteorder("="))
        dtype = str(array.dtype)
    return dtype, array


def aligned_copy(array):
    """A writable C-contiguous copy on a 64-byte boundary, as frameworks allocate their own.

    BLAS kernels may round differently by alignment, so it must not depend on the transport.
    """
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


NARROW = ("float8_", "float6_", "float4_", "int4", "uint4")


def bits_dtype(name):
    if name.startswith(NARROW):
        return np.dtype("uint8")
    return np.dtype("uint16" if name == "bfloat16" else name)


def is_whole(name):
    """Whether the dtype is of integers, booleans or float8, in which no framework computes."""
    return bits_dtype(name).kind in "iub" and name != "bfloat16"


class Patterns:
    """Consecutive bit patterns as floats, written repeatedly into one aligned buffer."""

    ROW = 4096  # short enough for the first-level cache: only the buffer is written to memory

    def __init__(self):
        self.buffer = np.empty((0, self.ROW))

    def floats(self, dtype, first, count):
        bits = np.dtype("u%d" % bits_dtype(dtype).itemsize)
        rows = -(-count // self.ROW)
        if (self.buffer.dtype, len(self.buffer)) != (bits, rows):
            self.buffer = aligned_copy(np.zeros((rows, self.ROW), bits))
        starts = (first + self.ROW * np.arange(rows)).astype(bits)
        np.add(starts[:, None], np.arange(self.ROW, dtype=bits), out=self.buffer)
        return self.buffer.reshape(-1)[:count].view(bits_dtype(dtype))


class Arrays:
    """Arrays from and to the host: small ones inline, large ones in mapped files."""

    def __init__(self, folder, inline_bytes):
        self.folder = folder
        self.inline_bytes = inline_bytes
        self.count = 0
        self.window_path = None
        self.window_bytes = None

    def receive(self, message):
        dtype, shape, where, content = message[:4]
        count = int(np.prod(shape, dtype=np.int64))
        if where == "inline":
            return dtype, aligned_copy(np.frombuffer(content, bits_dtype(dtype)).reshape(shape))
        with open(content, "rb") as file:
            # Private pages: the framework may write to its tensor without changing the host's copy.
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        offset = message[4]
        return dtype, np.frombuffer(view, bits_dtype(dtype), count, offset).reshape(shape)

    def send(self, outputs):
        """{name: (dtype name, array)} as messages; one file holds all the large ones."""
        size, messages, large = 0, {}, []
        for name, (dtype, array) in outputs.items():
            array = np.asarray(array, bits_dtype(dtype), order="C")
            shape = tuple(int(n) for n in array.shape)
            if self.folder is None or array.nbytes <= self.inline_bytes:
                messages[name] = (dtype, shape, "inline", array.tobytes())
            else:
                large.append((name, dtype, shape, array, size))
                size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        if large:
            path = self._file(size)
            for name, dtype, shape, array, offset in large:
                if path is None:
                    messages[name] = (dtype, shape, "inline", array.tobytes())
                else:
                    target = np.memmap(path, array.dtype, "r+", offset, array.shape)
                    target[...] = array
                    messages[name] = (dtype, shape, "mapped", path, offset)
        return messages

    def window(self, path):
        """The host's file for the answers of sweeps, mapped once for all sweeps."""
        if path != self.window_path:
            with open(path, "r+b") as file:
                self.window_bytes = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
            self.window_path = path
        return self.window_bytes

    def _file(self, size):
        """A new file with `size` bytes reserved, or None if the folder has no room.

        Writing to a mapping without reserved space would end the process with SIGBUS.
        """
        path = os.path.join(self.folder, "out-%d" % self.count)
        self.count += 1
        with open(path, "wb") as file:
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.truncate(size)
            except OSError:
                os.unlink(path)
                return None
        return path


def loaded_libraries():
    """BLAS and OpenMP libraries that the process has mapped (Linux), with their thread counts."""
    import ctypes

    getters = {
        "libgomp": "omp_get_max_threads",
        "libiomp": "omp_get_max_threads",
        "libomp": "omp_get_max_threads",
        "openblas": "openblas_get_num_threads",
        "libmkl_rt": "MKL_Get_Max_Threads",
    }
    try:
        with open("/proc/self/maps") as maps:
            paths = sorted({line.split(None, 5)[5].strip() for line in maps if "/" in line})
    except OSError:
        return {}
    threads = {}
    for path in paths:
        name = os.path.basename(path)
        for sign, getter in getters.items():
            if sign in name:
                try:
                    library = ctypes.CDLL(path)
                    for symbol in (getter, getter + "64_", "scipy_" + getter + "64_"):
                        if hasattr(library, symbol):
                            threads[name] = int(getattr(library, symbol)())
                            break
                except OSError:
                    continue
    return threads


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("model name", "Hardware")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cpu_features():
    """The processor's features by Linux's names: {'avx2', 'fma', ...}. None if it is emulated:
    the list is then the host's, which has another title."""
    title = "Features" if platform.machine().startswith(("aarch64", "arm")) else "flags"
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(title):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def usable_cpus():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


IMPORTED = ["the adapter"]


def flushes():
    return sys.float_info.min * 0.5 == 0.0


def find_spec(name, path=None, target=None):
    """Finds nothing: notes the last import that began before the process flushed subnormals."""
    if not flushes():
        IMPORTED[0] = name


class Worker:
    """A loaded adapter and the requests that it serves."""

    def __init__(self):
        self.adapter = None
        self.devices = []  # asked for once: MindSpore writes log lines each time
        self.arrays = None
        self.patterns = Patterns()
        self.swept = None

    def hello(self, message):
        self.arrays = Arrays(message["folder"], message["inline_bytes"])
        adapter = types.ModuleType("refkernels_adapter")
        code = compile(message["source"], message["file"], "exec")
        sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))
        gc.disable()  # collection takes a quarter of an import's time, and finds hardly any garbage
        try:
            exec(code, adapter.__dict__)
        except MemoryError as error:
            raise classify(error, "importing the framework") from error
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            traceback.print_exc()
            raise Failure("import_error", why_not_loaded(error, message.get("kernel"))) from error
        finally:
            gc.freeze()
            gc.enable()
        if not isinstance(getattr(adapter, "OPS", None), dict):
            reason = "its adapter %s has no OPS {op: (main output, function)}" % message["file"]
            raise Failure("error", reason)
        for name, default in self.defaults(message["module"]).items():
            adapter.__dict__.setdefault(name, default)
        self.adapter = adapter
        for key, value in message["flags"].items():
            self.set_flag(key, value)
        return self.describe(message["dtypes"])

    def defaults(self, module):
        """What stands for what an adapter need not have."""

        def forward(op, inputs, params):
            return self.adapter.OPS[op][1](**inputs, **params)

        return {
            "FLAGS": {}, "FORMULAS": {}, "information": dict, "forward": forward,
            "backward": None, "unsupported": lambda *call: None,
            "synchronize": lambda device: None, "instruction_sets": lambda features: [],
            "version": lambda: importlib.import_module(module).__version__,
            "devices": lambda: [("cpu", "")],
            "tensor": lambda array, dtype, device: array,
            "array": lambda tensor: (str(tensor.dtype), np.asarray(tensor)),
        }  # fmt: skip

    def facts(self, name):
        """What version(), devices() or information() returns."""
        try:
            return getattr(self.adapter, name)()
        except Exception as error:
            raise classify(error, "its %s()" % name) from error

    def set_flag(self, key, value):
        getter, setter = self.adapter.FLAGS[key]
        if setter is None:
            raise Failure("error", "the flag %s can be read but not set" % key)
        before = self.flag(getter)
        try:
            setter(value)
        except Exception as error:
            reason = "setting %s=%s raised %s" % (key, value, one_line(error))
            raise Failure("error", reason) from error
        after = self.flag(getter)
        unchanged = after is not None and after == before
        if unchanged and value.strip().lower() not in (after.lower(), *SWITCHES):
            raise Failure("error", "setting %s=%s has no effect: it is %s" % (key, value, after))

    @staticmethod
    def flag(getter):
        """The value of a flag in words; None if it cannot be read."""
        if getter is None:
            return None
        try:
            return str(getter())
        except Exception:  # a switch that this build of the framework does not have
            return None

    def describe(self, dtypes):
        adapter = self.adapter
        devices = self.facts("devices")
        self.devices = names = [name for name, _ in devices]
        libraries = loaded_libraries()
        information = dict(self.facts("information"))
        blas = information.pop("blas", None) or ", ".join(sorted(libraries))
        threads = information.pop("threads", None)
        flags = {}
        for key, (getter, _) in adapter.FLAGS.items():
            value = self.flag(getter)
            if value is not None:
                flags[key] = value
        environment = {
            "version": str(self.facts("version")),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "platform": platform.platform(),
            "cpu": cpu_name(),
            "cpus": usable_cpus(),
            "executable": sys.executable,
            "devices": ["%s (%s)" % pair if pair[1] else pair[0] for pair in devices],
            "threads": threads if threads is not None else max(libraries.values(), default=None),
            "thread_pools": libraries,
            "flags": flags,
            "blas": blas,
        }
        environment.update(information)
        if flushes():
            environment["flushes_subnormals"] = "since the import of %s, or later" % IMPORTED[0]
        return {
            "version": environment["version"],
            "devices": names,
            "ops": list(adapter.OPS),
            "environment": environment,
            "formulas": dict(adapter.FORMULAS),
            "instruction_sets": [list(pair) for pair in adapter.instruction_sets(cpu_features())],
            "capabilities": self.capabilities(names, dtypes),
        }

    def capabilities(self, devices, dtypes):
        """{device: {op: {direction: {dtype: None, or why not}}}}."""
        return {
            device: {
                op: {
                    direction: {
                        dtype: self.why_not(op, direction, dtype, device) for dtype in dtypes
                    }
                    for direction in ("forward", "backward")
                }
                for op in self.adapter.OPS
            }
            for device in devices
        }

    def why_not(self, op, direction, dtype, device):
        if op not in self.adapter.OPS:
            return "the adapter has no op named %s" % op
        if isinstance(self.adapter.OPS[op][1], str):
            return self.adapter.OPS[op][1]
        if direction == "backward" and self.adapter.backward is None:
            return "the framework has no automatic differentiation"
        try:
            reason = self.adapter.unsupported(op, direction, dtype, device)
        except Exception as error:
            raise classify(error, "its unsupported(%r, ...)" % op) from error
        return None if reason is None else str(reason)

    def check_device(self, device):
        if device not in self.devices:
            raise Failure("unsupported", "the framework reports no device named %s here" % device)

    def run(self, message):
        adapter, op, direction = self.adapter, message["op"], message["direction"]
        device, params = message["device"], dict(message["params"])
        received = {name: self.arrays.receive(value) for name, value in message["inputs"].items()}
        floats = {dtype for dtype, _ in received.values() if not is_whole(dtype)}
        if not floats:
            raise Failure("unsupported", "%s needs floating point among its inputs" % op)
        for dtype in sorted(floats):
            reason = self.why_not(op, direction, dtype, device)
            if reason is not None:
                raise Failure("unsupported", reason)
        for dtype, _ in received.values():
            if dtype.startswith(NARROW[1:]):
                raise Failure("unsupported", "no arrays of %s are given to frameworks" % dtype)
        self.check_device(device)
        main, function = adapter.OPS[op][:2]
        lacking = not_taken(function, [n for n in [*received, *params] if n != "d" + main])
        if lacking:
            raise Failure("unsupported", "%s takes no %s here" % (op, " and no ".join(lacking)))
        doing = "%s %s on %s" % (op, direction, device)
        try:
            inputs = {n: adapter.tensor(a, dtype, device) for n, (dtype, a) in received.items()}
            if direction == "backward":
                leaves = message.get("leaves")
                fixed = {n for n, (dtype, _) in received.items() if is_whole(dtype)}
                if leaves is not None:
                    fixed |= set(inputs) - set(leaves) - {"d" + adapter.OPS[op][0]}
                # Inputs without a gradient are passed on like params.
                params.update((name, inputs.pop(name)) for name in sorted(fixed))
            seconds, outputs = self.compute(op, direction, inputs, params, device)
            self.check_outputs(op, direction, outputs)
            arrays = {name: self.array_of(name, tensor) for name, tensor in outputs.items()}
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            traceback.print_exc()
            raise classify(error, doing) from error
        return {"seconds": seconds, "outputs": self.arrays.send(arrays)}

    def array_of(self, name, tensor):
        """(dtype name, array) of an output."""
        try:
            dtype, array = self.adapter.array(tensor)
        except (AttributeError, TypeError) as error:
            kind = type(tensor).__module__ + "." + type(tensor).__name__
            reason = "%s is a %s, which is not read (%s)" % (name, kind, one_line(error))
            raise Failure("error", reason) from error
        return plain_array(name, dtype, array)

    def check_outputs(self, op, direction, outputs):
        """Raise a Failure for an answer without the op's main output, or without any gradient."""
        main = self.adapter.OPS[op][0]
        if not outputs or (direction == "forward" and main not in outputs):
            wanted = main if direction == "forward" else "gradients"
            given = "only " + ", ".join(map(str, outputs)) if outputs else "nothing"
            raise Failure("error", "%s %s returned no %s: it returned %s"
                          % (op, direction, wanted, given))  # fmt: skip

    def sweep(self, message):
        """The op's main output for `count` consecutive bit patterns of one input format.

        The inputs are made here and overwritten by the next sweep; the answers go to the window.
        """
        adapter, op, dtype = self.adapter, message["op"], message["dtype"]
        device, count = message["device"], message["count"]
        if self.swept != (op, dtype, device):
            reason = self.why_not(op, "forward", dtype, device)
            if reason is not None:
                raise Failure("unsupported", reason)
            self.check_device(device)
            self.swept = (op, dtype, device)
        doing = "sweeping %s on %s" % (op, device)
        try:
            x = adapter.tensor(self.patterns.floats(dtype, message["first"], count), dtype, device)
            seconds, outputs = self.compute(op, "forward", {"x": x}, {}, device)
            self.check_outputs(op, "forward", outputs)
            main = adapter.OPS[op][0]
            answer_dtype, answers = self.array_of(main, outputs[main])
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            traceback.print_exc()
            raise classify(error, doing) from error
        if answer_dtype != dtype:
            raise Failure(
                "error", "%s answers in %s where the input is %s" % (op, answer_dtype, dtype)
            )
        if answers.shape != (count,):
            raise Failure("error", "%s answers shape %s for %d inputs" % (op, answers.shape, count))
        if message["window"] is None:
            return {"seconds": seconds, "content": np.ascontiguousarray(answers).tobytes()}
        window = self.arrays.window(message["window"])
        window[: answers.nbytes].view(answers.dtype)[...] = answers
        return {"seconds": seconds, "content": None}

    def load(self, message):
        """Tensors of a file, by name: the one named `key`, the only one (""), or all (None)."""
        adapter, name, key = self.adapter, message["name"], message["key"]
        if not hasattr(adapter, "load"):
            raise Failure("unsupported", "its adapter reads no files")
        try:
            content = message["content"]
            tensors = adapter.load(message["path"] if content is None else io.BytesIO(content))
        except ValueError as error:
            raise Failure("error", "%s: %s" % (name, error)) from error
        except Exception as error:
            traceback.print_exc()
            raise classify(error, "reading %s" % name) from error
        if not tensors:
            raise Failure("error", "%s holds no tensors" % name)
        if key is not None:
            listed = ", ".join(list(tensors)[:20]) + (", ..." if len(tensors) > 20 else "")
            if not key and len(tensors) > 1:
                reason = "%s holds several tensors (%s): write %s:KEY" % (name, listed, name)
                raise Failure("error", reason)
            if key and key not in tensors:
                raise Failure("error", "%s has no tensor %r: it has %s" % (name, key, listed))
            tensors = {key: tensors[key]} if key else tensors
        try:
            arrays = {tensor_name: adapter.array(tensor) for tensor_name, tensor in tensors.items()}
        except Exception as error:
            traceback.print_exc()
            raise classify(error, "reading %s" % name) from error
        return {"outputs": self.arrays.send(arrays)}

    def compute(self, op, direction, inputs, params, device):
        adapter = self.adapter
        cotangent = None
        if direction == "backward":
            name = "d" + adapter.OPS[op][0]
            if name not in inputs:
                raise Failure("error", "%s backward needs an input named %s" % (op, name))
            cotangent = inputs.pop(name)
        adapter.synchronize(device)
        start = time.perf_counter()
        if direction == "backward":
            outputs = adapter.backward(op, inputs, cotangent, params)
        else:
            outputs = adapter.forward(op, inputs, params)
        adapter.synchronize(device)
        seconds = time.perf_counter() - start
        if direction == "forward" and not isinstance(outputs, dict):
            outputs = {adapter.OPS[op][0]: outputs}
        return seconds, outputs

    def answer(self, message):
        try:
            reply = getattr(self, message["do"])(message)
            reply.update(status="ok", reason=None)
        except Failure as fault:
            reply = {"status": fault.status, "reason": fault.reason, "final": fault.final}
        except Exception as error:
            traceback.print_exc()
            reply = {"status": "error", "reason": "the worker raised " + one_line(error)}
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return reply


def serve(channel):
    """Answer until the host says quit or goes away."""
    if hasattr(signal, "SIGINT"):
        # Ctrl-C in the host's terminal reaches the whole process group: the host handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker()
    channel.send({"status": "ok"})
    while True:
        try:
            message = channel.receive()
        except EOFError:
            return
        if message["do"] == "quit":
            # Nothing is left to save, and a framework's own shutdown takes as long as a small run.
            os._exit(0)
        channel.send(worker.answer(message))


if __name__ == "__channelexec__":
    serve(channel)  # noqa: F821
