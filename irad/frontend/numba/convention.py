"""Numba's convention, as `irad.passes` reads it: names of its runtime, its statuses, its parallel loops."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from irad.frontend.numba.messages import numba_folder
from irad.passes.convention import Bracket, HostConvention, LibraryCode, ParallelLoops, ReferenceCounts

_LOCK: Final = Bracket("numba_gil_ensure", "numba_gil_release")
_YIELDED: Final = Bracket("PyEval_SaveThread", "PyEval_RestoreThread")

NUMBA: Final = HostConvention(
    result=0,
    returned=(0, -2, -3),  # ok, ok with None, end of iteration
    exhausted=-4,
    no_derivative=-5,
    references=ReferenceCounts(
        takes="NRT_incref",
        drops="NRT_decref",
        makes="NRT_MemInfo_alloc",
        plain=(
            *("NRT_MemInfo_alloc", "NRT_MemInfo_alloc_safe"),
            *("NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe_aligned"),
        ),
        data=24,
        size=32,
    ),
    parallel=ParallelLoops(
        launch="numba_parallel_for",
        threads="get_num_threads",
        thread="get_thread_id",
        lock=_LOCK,
        yielded=_YIELDED,
        around=(
            _YIELDED,
            _LOCK,
            Bracket("get_parallel_chunksize", "set_parallel_chunksize"),
            Bracket("allocate_sched", "deallocate_sched"),
        ),
    ),
    library=LibraryCode(
        folders=(numba_folder, str(Path(__file__).parents[1]) + os.sep),
        generated=("<irad.",),
        without_lines=("__numba_array_expr",),
        kernels=("__numba_parfor_gufunc",),
        kernel_lines=16,
    ),
    ends=("numba_fatal_error",),  # where BLAS has been called wrongly
)
"""The second of the folders holds what irad has Numba compile of its own."""
