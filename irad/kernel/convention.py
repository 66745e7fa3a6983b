"""The convention of kernels, as `irad.passes` reads it: that of the entry which `program` makes of a kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from irad.passes.convention import HostConvention, LibraryCode


def _folders(*packages: str) -> Iterator[str]:
    """Where packages lie that need not be loaded."""
    for package in packages:
        found = find_spec(package)
        if found is not None and found.origin is not None:
            yield os.path.dirname(found.origin) + os.sep


KERNEL: Final = HostConvention(
    result=0,
    returned=(0,),
    exhausted=1,
    no_derivative=2,
    library=LibraryCode(folders=tuple(_folders("numba", "numba_cuda")), without_lines=("_ZN6cudapy",)),
    is_shared=True,
)
"""Of the function that Numba puts around a kernel, only the name says that it is not the user's."""
