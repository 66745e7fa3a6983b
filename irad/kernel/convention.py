"""The convention of kernels, as `irad.passes` reads it: that of the entry which `program` makes of a kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from irad.passes.convention import HostConvention, LibraryCode


def _folders(*packages: str) -> Iterator[str]:
    """Where packages lie that need not be loaded."""
    for package in packages:
        found = find_spec(package)
        if found is not None and found.origin is not None:
            yield os.path.dirname(found.origin) + os.sep


_OWN: Final = tuple(str(Path(__file__).parents[1] / each) + os.sep for each in ("api", "frontend"))
"""Where the functions lie that irad has Numba compile."""
KERNEL: Final = HostConvention(
    result=0,
    returned=(0,),
    exhausted=1,
    no_derivative=2,
    library=LibraryCode(
        folders=(*_folders("numba", "numba_cuda"), *_OWN), generated=("<irad.",), without_lines=("_ZN6cudapy",)
    ),
    is_shared=True,
)
"""Convention of the function that Numba puts around a kernel: only the name says that it is not the user's."""
INSIDE: Final = replace(KERNEL, returned=(0, -2, -3), exhausted=-4, no_derivative=-5, is_inside=True)
"""That of device functions, which are differentiated inside of a kernel; statuses are Numba's."""
