"""Python's math module, for refkernels: the record that the entry point names."""

from pathlib import Path

from refkernels.frameworks.catalog import Framework

FRAMEWORK = Framework(
    "pymath",
    adapter=Path(__file__).parent / "adapter.py",
    module="math",
    in_system=True,  # every Python has it: nothing is installed
)
