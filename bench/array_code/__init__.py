"""Programs of array expressions, whose compile time is measured; the computations are those of NPBench's benchmarks."""

from bench.array_code import channel_flow, heat_3d, jacobi_2d, vertical_advection
from bench.array_code.program import ArrayProgram

PROGRAMS: tuple[ArrayProgram, ...] = (
    jacobi_2d.PROGRAM,
    heat_3d.PROGRAM,
    channel_flow.PROGRAM,
    vertical_advection.PROGRAM,
)
BY_NAME = {program.name: program for program in PROGRAMS}
