"""The frameworks: their catalog, their interpreters, and live sessions with them.

`catalog` names them, `environments` finds or makes an interpreter, and `gateway.Session` runs ops
there.  The code that runs in a framework's interpreter is in ``remote/``: ``worker.py`` and one
adapter for each framework, sent as source, so that the other side needs only Python, NumPy and the
framework.

Nothing heavy is imported here, and never a framework.
"""
