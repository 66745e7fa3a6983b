"""Kernels for `gradcheck`: launches on the executor in the place of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import irad
import irad.cuda
from irad.api.functions import Launched
from irad.cuda.calls.flatten import names_of
from irad.cuda.kernels import launch_of, run_kernel
from irad.data.copies import copied
from irad.data.floats import Vector, in_types_of, read_floats, with_floats
from irad.data.structure import mapped
from irad.frontend.numba.messages import location_of
from irad.options import Options
from irad.report.kernels.subject import kernel_subject
from irad.report.kernels.tape import on_host
from irad.testing.gradients.input import CheckedFunction, Range, can_be_varied
from irad.testing.gradients.objective import Objective
from irad.testing.gradients.trial import Answer, Run, Trial, by_autodiff, tangent_of


@dataclass(frozen=True)
class KernelProgram:
    """A kernel with the configuration of a launch, called like a function that returns nothing."""

    launched: Launched

    @property
    def py_func(self) -> Callable[..., Any]:
        """The Python function."""
        function: Callable[..., Any] = self.launched.kernel.py_func
        return function

    def __call__(self, *arguments: Any, finds_faults: bool = False) -> None:
        """A launch; accesses outside of arrays and races are errors if they are asked for."""
        with irad.cuda.executor(races=finds_faults) as device:
            run_kernel(device, self.launched.kernel, launch_of(self.launched.configuration), arguments)

    def derivative(self, options: Options | None, arguments: list[Any], *, forward: bool = False) -> Any:
        """A launch of the derivative, in reverse mode or in forward mode."""
        mode = irad.Forward if forward else irad.Reverse
        used = options or self.launched.options
        with irad.cuda.executor():
            made = irad.cuda.autodiff(mode, self.launched.kernel, options=used)
            return made[self.launched.configuration](*arguments)


@dataclass(frozen=True)
class KernelTrial(Trial):
    """A launch at one point; see `Trial`."""

    @property
    def kernel(self) -> KernelProgram:
        """The program."""
        assert isinstance(self.program, KernelProgram)
        return self.program

    def run(self, shadows: tuple[Any, ...]) -> Run:
        """Runs the derivative in reverse mode, adding to shadows."""
        arguments = copied(self.values)
        found = self.kernel.derivative(self.options, self.annotated(arguments, shadows))
        return Run(None, arguments, self.gradients_of(found, shadows))

    def run_forward(self, objective: Objective) -> Run:
        """Runs the derivative in forward mode, in the direction of each number: what it does to written arrays."""
        arguments = copied(self.values)
        self.kernel(*arguments)
        cotangents: list[Vector | None] = [None] * len(self.values)
        for position, value in enumerate(self.values):
            if self.active[position]:
                ones = np.eye(read_floats(value).size)
                cotangents[position] = np.array([self._slope(objective, position, one) for one in ones])
        return Run(None, arguments, tuple(cotangents))

    def _slope(self, objective: Objective, position: int, direction: Vector) -> float:
        arguments = copied(self.values)
        tangents = [
            _tangent(value, direction if i == position else np.zeros(read_floats(value).size))
            for i, value in enumerate(self.values)
        ]
        annotated = [
            _with_tangent(value, tangent) if active else irad.Const(value)
            for value, tangent, active in zip(arguments, tangents, self.active, strict=True)
        ]
        self.kernel.derivative(self.options, annotated, forward=True)
        return float(sum(weights @ read_floats(tangents[i]) for i, weights in objective.outside.items()))


def _tangent(value: Any, leaves: Vector) -> Any:
    """A tangent of an argument: in its structure, precision and strides."""
    if isinstance(value, np.ndarray):
        made = copied(value)
        made[...] = in_types_of(with_floats(value, leaves), value)
        return made
    return tangent_of(value, leaves)


def _with_tangent(value: Any, tangent: Any) -> Any:
    return (irad.MixedDuplicated if isinstance(value, tuple) else irad.Duplicated)(value, tangent)


def by_tangents(trial: Trial) -> Answer:
    """`irad.autodiff` in forward mode: a launch in the direction of each number."""
    assert isinstance(trial, KernelTrial)
    objective = trial.objective(trial.shadows(trial.modified))
    return Answer(trial.run_forward(objective), objective)


class CheckedKernel(CheckedFunction):
    """A kernel with the configuration of a launch, and its arguments."""

    modes: Mapping[str, Callable[[Trial], Answer]] = {"autodiff": by_autodiff, "jvp": by_tangents}
    takes_complex = False
    is_kernel = True

    def __init__(
        self,
        launched: Launched,
        args: tuple[Any, ...],
        argnums: int | Sequence[int] | None,
        domain: Mapping[int, Range],
    ) -> None:
        wanted = (argnums,) if isinstance(argnums, int) else argnums
        subject = kernel_subject(launched.kernel, args, wanted, launched.options)
        self.primal, self.values = KernelProgram(launched), tuple(mapped(on_host, args))
        self.location = location_of(launched.kernel.py_func)
        self.names = names_of(launched.kernel)
        self.active = tuple(i in subject.positions and can_be_varied(value) for i, value in enumerate(args))
        self.not_checked = ()
        self.bounds = {position: self._bounds(position, limits) for position, limits in domain.items()}

    def trial(self, values: tuple[Any, ...], options: Options | None) -> Trial:
        """A launch at a point."""
        return KernelTrial(self.primal, values, self.active, options=options, unit=True, nudges=False)
