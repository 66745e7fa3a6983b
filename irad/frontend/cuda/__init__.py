"""Numba's CUDA kernels as LLVM text in the kernel dialect, without driver or toolkit.

Every module here needs `numba.cuda`; where that is missing, the first import says so.
"""

from irad.frontend.cuda.packages import check_packages

check_packages()
