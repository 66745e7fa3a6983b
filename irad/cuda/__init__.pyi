"""The public names of irad.cuda. This is what `irad.lazy` reads, so each name is written once."""

from irad.backend.executor.scheduler import SCHEDULES as SCHEDULES
from irad.cuda.arrays.custom import rule as rule
from irad.cuda.calls.slices import check_graphs as check_graphs
from irad.cuda.derivatives import (
    DerivativeKernel as DerivativeKernel,
    autodiff as autodiff,
    grad as grad,
)
from irad.cuda.devices.current import executor as executor
from irad.cuda.kernels import jit as jit
from irad.cuda.recording.tape import Tape as Tape, value_and_grad as value_and_grad

__all__: list[str]
