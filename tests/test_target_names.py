"""One grammar reads and prints the names of targets; any other text is refused with the reason."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refkernels.target_names import (
    KernelPath,
    TargetName,
    TargetNameError,
    framework_of,
    merged,
    parse,
    short,
)

NAMES = {
    "torch": TargetName("torch"),
    "torch==2.6.0": TargetName("torch", "2.6.0"),
    "torch==2.13.0+cpu": TargetName("torch", "2.13.0+cpu"),
    " torch == 2.6.0 ": TargetName("torch", "2.6.0"),
    "torch@ATEN_CPU_CAPABILITY=avx2": TargetName(
        "torch", settings=(("ATEN_CPU_CAPABILITY", "avx2"),)
    ),
    "torch@OMP_NUM_THREADS=1,num_threads=2": TargetName(
        "torch", settings=(("OMP_NUM_THREADS", "1"), ("num_threads", "2"))
    ),
    "paddle:gpu:0": TargetName("paddle", device="gpu:0"),
    "torch:mps": TargetName("torch", device="mps"),
    "torch==2.6.0@OMP_NUM_THREADS=1:cuda:0": TargetName(
        "torch", "2.6.0", settings=(("OMP_NUM_THREADS", "1"),), device="cuda:0"
    ),
    "torch@CUBLAS_WORKSPACE_CONFIG=%3A4096%3A8:cuda:0": TargetName(
        "torch", settings=(("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),), device="cuda:0"
    ),
    "torch@LD_PRELOAD=/opt/libm.so:cuda:0": TargetName(
        "torch", settings=(("LD_PRELOAD", "/opt/libm.so"),), device="cuda:0"
    ),
    "numpy@NPY_DISABLE_CPU_FEATURES=AVX2 FMA3": TargetName(
        "numpy", settings=(("NPY_DISABLE_CPU_FEATURES", "AVX2 FMA3"),)
    ),
    "torch@EMPTY=": TargetName("torch", settings=(("EMPTY", ""),)),
    "./my_kernels.py:layernorm": TargetName(kernel=KernelPath("./my_kernels.py", "layernorm")),
    "my kernels/fast one.py:layernorm": TargetName(
        kernel=KernelPath("my kernels/fast one.py", "layernorm")
    ),
    "C:\\kernels\\mine.py:layernorm": TargetName(
        kernel=KernelPath("C:\\kernels\\mine.py", "layernorm")
    ),
    "\\\\server\\mine.PY:f": TargetName(kernel=KernelPath("\\\\server\\mine.PY", "f")),
    "C:/kernels/mine.dll:gelu@OMP_NUM_THREADS=1:cuda:1": TargetName(
        kernel=KernelPath("C:/kernels/mine.dll", "gelu"),
        settings=(("OMP_NUM_THREADS", "1"),),
        device="cuda:1",
    ),
    "libm.so.6:sin": TargetName(kernel=KernelPath("libm.so.6", "sin")),
    "/home/me@here/k.py:f": TargetName(kernel=KernelPath("/home/me@here/k.py", "f")),
}  # fmt: skip

WRONG = {
    "": "empty",
    "torch\n==2": "cannot be printed",
    "  ": "empty",
    "torch=2.6": "write torch==2.6",
    "torch==": "write torch==X.Y.Z",
    "torch==new": "write torch==X.Y.Z",
    "torch@": "NAME=VALUE follows",
    "torch@:cuda:0": "NAME=VALUE follows",
    "torch@OMP_NUM_THREADS": "write NAME=VALUE",
    "torch@A=1,,B=2": "write NAME=VALUE",
    "torch@A=1,A=2": "A is set twice",
    "torch@1A=2": "not the name of an environment variable or flag",
    "torch@A=1@B=2": "second '@'",
    "torch@A=1==2.6.0": "write the version first",
    "torch@A=:4096:8": "%3A",
    "torch:": "a device follows",
    "torch@A=1:": "a device follows",
    "torch:CUDA:0": "not a device",
    "torch:cuda:x": "not a device",
    "torch:cuda:0:1": "not a device",
    "torch:cuda:0@A=1": "write the settings first",
    "@A=1": "names no framework",
    ":cpu": "names no framework",
    "==2.6.0": "names no framework",
    "/opt/frameworks": "a framework's name",
    "tor%63h": "a framework's name",
    "./k.py": "names no function",
    "./k.py:": "names no function",
    "C:\\k.py": "names no function",
    "./k.py@A=1": "names no function",
    "./k.py:2f": "not the name of a function",
    "./k.py:f==2": "not the name of a function",
    "./k.py:f:": "a device follows",
    "./k.txt:f": "a framework's name",
}


@pytest.mark.parametrize("text", NAMES)
def test_a_name_is_read_as_it_is_meant(text: str) -> None:
    assert parse(text) == NAMES[text]
    assert parse(str(NAMES[text])) == NAMES[text]


@pytest.mark.parametrize("text", WRONG)
def test_wrong_names_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(TargetNameError) as caught:
        parse(text)
    message = str(caught.value)
    assert WRONG[text] in message
    assert "\n" not in message
    assert len(message) < 250


TEXT = st.text(max_size=12)
FRAMEWORKS = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,7}[A-Za-z0-9]", fullmatch=True)
VERSIONS = st.sampled_from(
    ["", "2.6.0", "1!2.0rc1", "2.13.0+cu126.local", "1.0.dev3", "v3", "1.0-1"]
)
DEVICES = st.sampled_from(["", "cpu", "cuda:0", "gpu:12", "mps", "ascend:0", "npu_x"])
SETTINGS = st.dictionaries(st.from_regex(r"[A-Za-z_][\w.]{0,5}", fullmatch=True), TEXT, max_size=3)
FILES = st.builds(
    "{}{}{}".format,
    st.sampled_from(
        ["", "./", "/", "../a b/", "C:\\", "c:/", "\\\\host\\", "a@b/", "x.py:f/", "%41"]
    ),
    TEXT.filter(str.strip),
    st.sampled_from([".py", ".so", ".so.6", ".dylib", ".dll", ".PY"]),
)
FUNCTIONS = st.from_regex(r"[^\W\d]\w{0,5}", fullmatch=True).filter(str.isidentifier)


@st.composite
def names(draw: st.DrawFn) -> TargetName:
    settings = tuple(draw(SETTINGS).items())
    device = draw(DEVICES)
    try:
        if draw(st.booleans()):
            kernel = KernelPath(draw(FILES), draw(FUNCTIONS))
            return TargetName(kernel=kernel, settings=settings, device=device)
        return TargetName(draw(FRAMEWORKS), draw(VERSIONS), settings=settings, device=device)
    except TargetNameError:  # a file with blanks at its ends, a framework called a.py
        return TargetName("torch", settings=settings, device=device)


@given(names())
def test_what_is_printed_is_read_as_the_same_target(name: TargetName) -> None:
    assert parse(str(name)) == name
    assert parse(f" {name} ") == name
    assert str(name).isprintable()


@given(st.text(alphabet="torch.py:@=,%/\\0C ") | st.text())
@example("0@0=\\0.py:f")
@example("x.py:y.py:f")
@example("torch@A=%")
def test_any_text_is_a_name_that_prints_back_or_is_refused_with_a_reason(text: str) -> None:
    try:
        name = parse(text)
    except TargetNameError as error:
        message = str(error)
    else:
        assert parse(str(name)) == name
        message = "fine"
    assert message.isprintable()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ({}, "a framework or a kernel"),
        ({"framework": "torch", "kernel": KernelPath("k.py", "f")}, "a framework or a kernel"),
        ({"kernel": KernelPath("k.py", "f"), "version": "2"}, "no version"),
        ({"kernel": KernelPath("k.txt", "f")}, "not a file of kernels"),
        ({"kernel": KernelPath("\ud800.py", "f")}, "not Unicode text"),
        ({"framework": "a.py"}, "a framework's name"),
        ({"framework": "a@b"}, "a framework's name"),
    ],
)
def test_a_name_that_no_text_could_have_cannot_be_made(name: dict[str, object], said: str) -> None:
    with pytest.raises(TargetNameError, match=said):
        TargetName(**name)  # type: ignore[arg-type]


def test_the_order_of_settings_does_not_matter() -> None:
    assert parse("torch@B=1,A=2") == parse("torch@A=2,B=1")
    assert str(parse("torch@B=1,A=2")) == "torch@A=2,B=1"


def test_a_target_without_its_device_is_its_interpreter() -> None:
    assert str(parse("torch==2.6@A=1:cuda:0").anywhere) == "torch==2.6@A=1"


def test_a_targets_own_settings_go_before_those_of_all() -> None:
    assert merged({"A": "1", "B": "1"}, parse("torch@B=2")) == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("torch==2.6.0@A=1:cuda:0", "torch"),
        ("torch", "torch"),
        ("NumPy formula", "NumPy formula"),
        ("my kernel: the fast one", "my kernel: the fast one"),
        ("./k.py:f", "./k.py:f"),
    ],
)
def test_the_framework_of_a_label(text: str, framework: str) -> None:
    assert framework_of(text) == framework


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("./libmine.so:f@abi=float32* x%2C int64 n,op=gelu", "./libmine.so:f@op=gelu"),
        ("./libmine.so:f@abi=float32* x:cpu", "./libmine.so:f:cpu"),
        ("torch@abi=1", "torch@abi=1"),
        ("NumPy formula", "NumPy formula"),
    ],
)
def test_tables_leave_out_how_a_c_function_is_called(text: str, shown: str) -> None:
    assert short(text) == shown
