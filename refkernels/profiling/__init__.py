"""Which calls of a PyTorch program cost its accuracy, and what a wider format in one place buys.

`in_torch` runs beside torch, with the recorder of `refkernels.capture`; `program` starts it, in
this process or in torch's own interpreter, and holds what it found.
"""
