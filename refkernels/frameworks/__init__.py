"""The frameworks: a catalog of them, where their interpreters are, and a live session with one.

`catalog` names them, `environments` finds or makes an interpreter, and `gateway.Session` runs ops
there.  What runs in the framework's interpreter is in ``remote/``: ``worker.py`` and one adapter a
framework, sent as source, so that the other side needs Python, NumPy and the framework alone.

Nothing heavy is imported here, and no framework ever.
"""
