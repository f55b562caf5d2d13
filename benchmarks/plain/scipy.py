"""Stands before scipy on the path of a measured process: it starts as a plain installation does, which has none.

numba loads scipy wherever it is, which takes a tenth of a second; here only the tests' oracle and peers bring it.
"""

raise ImportError("scipy is hidden from this process")
