"""Sets the floating-point mode of this thread, as torch.set_flush_denormal and fesetround do."""

import ctypes
import platform
import struct

# fenv_t's word and its bits: MXCSR on x86-64, FPCR on AArch64 (which has one bit for both flushes).
_LAYOUT = {
    "x86_64": (28, {"flush": 0x8040, "down": 0x2000, "up": 0x4000, "zero": 0x6000}),
    "aarch64": (0, {"flush": 1 << 24, "up": 1 << 22, "down": 2 << 22, "zero": 3 << 22}),
}
KNOWN = platform.machine() in _LAYOUT and platform.system() == "Linux"
MODES = ("flush", "up", "down", "zero")
"""FTZ and DAZ; rounding upward, downward and toward zero."""


def set_mode(mode: str) -> None:
    """One of MODES, or "default"."""
    at, bits = _LAYOUT[platform.machine()]
    libm, environment = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    libm.fegetenv(environment)
    word = struct.unpack_from("<I", environment, at)[0]
    for others in bits.values():
        word &= ~others
    struct.pack_into("<I", environment, at, word | bits.get(mode, 0))
    libm.fesetenv(environment)
