"""``check_gradient``: compares the derivatives of a function, and everything that comes with them, with a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

import irad
from irad.data.copies import same_bits
from irad.data.floats import Vector, has_floats, holds_single, read_floats
from irad.data.structure import is_structure, members
from irad.frontend.packing.packed import packed
from irad.options import Options, PlanName
from irad.testing.gradients.trial import (
    RTOL,
    RTOL_SINGLE,
    ForwardRun,
    Run,
    Trial,
    dot_products,
    optimisation_limited,
    random_like,
)

_RTOL_ROUNDED: Final = 2e-3  # of differences of values that are rounded to single precision
_PLANS_RTOL: Final = 1e-11
_PLANS_RTOL_SINGLE: Final = 1e-4
_MODES_RTOL: Final = 1e-10


@dataclass(frozen=True, slots=True)
class PlainDerivatives:
    """Derivatives by values of the plain function.

    Attributes:
        value: its result.
        after: its arguments after the call.
        argnums: the arguments with floats, or those asked for.
        seed: cotangent of the result with which it was contracted, None for a float.
        derivatives: by argument, one number per leaf, from finite differences.
    """

    value: Any
    after: tuple[Any, ...]
    argnums: tuple[int, ...]
    seed: Any
    derivatives: tuple[Vector, ...]


def check_gradient(
    f: Callable[..., Any],
    *args: Any,
    argnums: Sequence[int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    plans: Sequence[PlanName] = ("default", "save_all"),
    exact: bool = True,
    single: bool = False,
    quick: bool = False,
    forward: bool | None = None,
) -> None:
    """Check irad's gradient of ``f`` at ``args`` against central differences of the plain function.

    Checked for each plan: the derivative with respect to every argument that holds floats; type, shape and dtype of
    gradients; that the value equals the plain call's to the bit, or to rounding where loops call the C library's
    functions for vectors; that memory afterwards is as the plain call leaves it; and that the plans agree. A function
    that returns arrays or tuples is checked through ``irad.vjp`` with a random cotangent. The first plan's is called
    through ``irad.grad`` as well.

    Args:
        f: a Numba function, or a plain one, which is compiled.
        args: numbers, arrays, records, tuples, lists, typed dictionaries; copied for every call. Single precision is
            promoted for the reference;
            of complex numbers real and imaginary part are varied apart.
        argnums: positions to differentiate with respect to; by default all that hold floats.
        rtol: relative tolerance to the reference; by default as the narrowest argument allows.
        atol: absolute tolerance, by default that of ``rtol`` times the largest derivative.
        plans: values of ``Options.plan`` to check.
        exact: value and memory have to be equal to the bit. Not so under fastmath: there LLVM may compute in another
            order when more is asked of it, and both are compared to rounding.
        single: the function computes in single precision whatever it is given. Arguments keep their types in the
            reference, too, and tolerances are those of single precision.
        quick: compile less, and optimise little what the derivative under the first plan is compared to, the plain
            function included; an optimisation that goes wrong shows as a difference. Other plans are called through
            ``irad.grad``, the first one not. For functions that are only checked: their code stays as it is compiled
            first.
        forward: check forward mode as well, in one direction: value and memory as above, and that the product of the
            tangent and a cotangent is that of the gradient and the direction. By default that is done unless ``quick``
            says otherwise, where nothing in the function has a rule for reverse mode only.

    Raises:
        AssertionError: one of the above does not hold, or ``f`` is not smooth at ``args``.

    Examples:
        >>> import numpy as np
        >>> from irad.testing import check_gradient
        >>> from numba import njit
        >>> @njit
        ... def energy(x, stiffness):
        ...     return 0.5 * stiffness * np.sum((x[1:] - x[:-1]) ** 2)
        >>> check_gradient(energy, np.array([0.0, 0.5, 2.0]), 3.0)
    """
    function = compiled(f)
    if rtol is None:
        rtol = _RTOL_ROUNDED if single else None
    less = optimisation_limited if quick else nullcontext
    with less():
        trial = _trial(function, args, argnums)
        derivatives = _differences(trial, RTOL if rtol is None else rtol, single=single)
    check = _GradientCheck(trial, derivatives, rtol, atol, exact, single)
    gradients = check.plan(plans[0])
    if not quick:
        check.grad_agrees(plans[0], gradients)
    with less():
        if forward if forward is not None else not quick:
            # where forward mode was not asked for by name, a rule need not have it
            with nullcontext() if forward else suppress(irad.NoRuleError):
                check.forward_agrees(gradients)
        for plan in plans[1:]:
            check.plans_agree(plans[0], gradients, plan, check.plan(plan, with_value=not quick))


check_quickly = partial(check_gradient, quick=True)
"""`check_gradient` for functions made for a test."""


def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` itself when Numba compiled it, else compiled by ``irad.jit``."""
    return f if hasattr(f, "py_func") else irad.jit(f)


def _is_fast(dispatcher: Any) -> bool:
    """True if a function was compiled with fastmath."""
    return bool(dispatcher.targetoptions.get("fastmath"))


def _trial(f: Callable[..., Any], args: tuple[Any, ...], argnums: Sequence[int] | None) -> Trial:
    """The function at the point; plainly it is called with packed structures, which functions of numba.njit take."""

    def program(*arguments: Any) -> Any:
        return f(*map(packed, arguments))

    wanted = None if argnums is None else {range(len(args))[position] for position in argnums}
    active = tuple(has_floats(each) if wanted is None else i in wanted for i, each in enumerate(args))
    return Trial(f, args, active, unit=True, reference=program)


def _differences(trial: Trial, rtol: float, *, single: bool) -> tuple[Vector, ...]:
    """By argument that takes part one number per leaf, from finite differences, which have to be good to ``rtol``."""
    objective = trial.objective_of_value(native=single)
    return tuple(objective.differences(position, rtol, single=single) for position in trial.positions)


def reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: Sequence[int] | None = None,
    rtol: float = RTOL,
    *,
    single: bool = False,
) -> PlainDerivatives:
    """Call the plain function and differentiate it by finite differences, which have to be good to ``rtol``.

    Raises:
        AssertionError: the differences do not converge: ``f`` has a kink or a jump at ``args``.
    """
    trial = _trial(f, args, argnums)
    seed = None if trial.returns_number else trial.seed
    return PlainDerivatives(*trial.plain, trial.positions, seed, _differences(trial, rtol, single=single))


class _GradientCheck:
    """The comparison of one function at one point.

    Args:
        trial: the function there.
        derivatives: by argument that takes part, from finite differences.
        rtol, atol, exact, single: as for `check_gradient`.
    """

    def __init__(
        self,
        trial: Trial,
        derivatives: tuple[Vector, ...],
        rtol: float | None,
        atol: float | None,
        exact: bool,
        single: bool,
    ) -> None:
        self._trial, self._derivatives = trial, derivatives
        self._single = single or trial.is_single
        self._exact, self._rounded = exact, partial(_same_to_rounding, single=self._single)
        self._rtol = rtol if rtol is not None else RTOL_SINGLE if self._single else RTOL
        largest = max((float(np.max(np.abs(d), initial=0.0)) for d in derivatives), default=0.0)
        self._atol = atol if atol is not None else self._rtol * max(largest, 1e-3)

    def plan(self, plan: PlanName, *, with_value: bool = True) -> Run:
        """Check the derivatives made under ``plan``, and the value unless a function without it is asked for."""
        options = Options(plan=plan, verify=True)
        trial = replace(self._trial, options=options)
        is_pulled = not self._trial.returns_number
        if is_pulled:
            run, again = trial.pulled_back(times=2)
            assert same_bits(run.gradients, again.gradients), "the second pullback differs"
        else:
            run = trial.gradient(with_value=with_value)
        if is_pulled or with_value:
            self._compare_value(plan, run.value, has_vectors=options.has_vector_math)
        self._compare_memory(plan, run, has_vectors=options.has_vector_math)
        self._compare_gradients(plan, run)
        return run

    def grad_agrees(self, plan: PlanName, run: Run) -> None:
        """Assert that `irad.grad`, which runs the same derivative without the value, gives the same gradients.

        Without the value fastmath may form other sums, so those may differ by rounding.
        """
        if self._trial.returns_number:
            options = Options(plan=plan, verify=True)
            alone = replace(self._trial, options=options).gradient(with_value=False)
            if _is_fast(self._trial.program):
                self.plans_agree(f"{plan} (with the value)", run, f"{plan} (without)", alone)
            else:
                assert same_bits(alone.gradients, run.gradients), f"grad and value_and_grad differ (plan {plan})"
            self._compare_memory(plan, alone, has_vectors=options.has_vector_math)

    def plans_agree(self, plan: str, run: Run, other: str, again: Run) -> None:
        """Assert that two plans gave the same gradients, up to the order of sums."""
        rtol = _PLANS_RTOL_SINGLE if self._single else _PLANS_RTOL
        for position, (x, y) in enumerate(zip(run.cotangents, again.cotangents, strict=True)):
            if x is not None and y is not None:
                scale = max(float(np.max(np.abs(y), initial=0.0)), 1e-300)
                message = f"plans {plan} and {other} differ by argument {position}"
                np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * scale, err_msg=message)

    def forward_agrees(self, run: Run) -> None:
        """Assert that forward mode has the same derivative in a direction as the gradients have."""
        trial = self._trial
        tangents = {i: random_like(trial.values[i], draw=i + 1) for i in trial.positions}
        directions = {i: read_floats(tangent) for i, tangent in tangents.items()}
        pushed = trial.push(tangents)
        self._compare_value("forward mode", pushed.value, has_vectors=True)
        self._compare_memory("forward mode", pushed, has_vectors=True)
        pairs = [(read_floats(run.gradients[i]), direction) for i, direction in directions.items()]
        forward, backward = dot_products([(trial.weights, pushed.tangent)], pairs)
        rtol = _PLANS_RTOL_SINGLE if self._single else _MODES_RTOL
        np.testing.assert_allclose(
            forward.sum(),
            backward.sum(),
            rtol=0.0,
            atol=rtol * max(float(np.abs(backward).sum()), 1e-300),
            err_msg="forward and reverse mode differ",
        )

    def _compare_value(self, plan: str, value: Any, *, has_vectors: bool) -> None:
        wanted, _ = self._trial.plain
        assert self._same(value, wanted, has_vectors), f"value {value!r}, plain {wanted!r} (plan {plan})"

    def _same(self, found: Any, wanted: Any, has_vectors: bool) -> bool:
        if not self._exact:
            return self._rounded(found, wanted)
        return same_bits(found, wanted) or (has_vectors and self._rounded(found, wanted) and self._is_exact_by_numbers)

    @cached_property
    def _is_exact_by_numbers(self) -> bool:
        return self._trial.is_exact_by_numbers(Trial.reverse)

    def _compare_gradients(self, plan: str, run: Run) -> None:
        for position, wanted in zip(self._trial.positions, self._derivatives, strict=True):
            place = f"argument {position} (plan {plan})"
            assert_same_structure(run.gradients[position], self._trial.values[position], place)
            message = f"gradient with respect to {place}"
            leaves = read_floats(run.gradients[position])
            np.testing.assert_allclose(leaves, wanted, rtol=self._rtol, atol=self._atol, err_msg=message)

    def _compare_memory(self, plan: str, run: Run | ForwardRun, *, has_vectors: bool) -> None:
        for position, (found, wanted) in enumerate(zip(run.after, self._trial.plain[1], strict=True)):
            message = f"argument {position} after the derivative is not what the plain call leaves (plan {plan})"
            assert self._same(found, wanted, has_vectors), message


def assert_same_structure(found: Any, like: Any, place: str) -> None:
    """Assert that a gradient has the type of its argument, entry by entry; entries without floats may be None."""
    if is_structure(like):
        assert type(found) is type(like), f"{place}: {type(found).__name__} for {type(like).__name__}"
        assert [way for way, _ in members(found)] == [way for way, _ in members(like)], place
        for (way, a), (_, b) in zip(members(found), members(like), strict=True):
            assert_same_structure(a, b, f"{way} of {place}")
        return
    match like:
        case np.inexact() if like.dtype in (np.float32, np.complex64):
            assert type(found) is type(like), f"{place}: {type(found).__name__} for {type(like).__name__}"
        case np.ndarray() | np.generic() if has_floats(like):
            array = np.asarray(found)
            assert array.dtype == like.dtype, f"{place}: dtype {array.dtype} for {like.dtype}"
            assert array.shape == like.shape, f"{place}: shape {array.shape} for {like.shape}"
        case float() | complex():
            assert isinstance(found, type(like)), f"{place}: {type(found).__name__} for {type(like).__name__}"
        case _:
            pass


def _same_to_rounding(a: Any, b: Any, single: bool) -> bool:
    rtol = _PLANS_RTOL_SINGLE if single or holds_single(b) else _PLANS_RTOL
    x, y = read_floats(a), read_floats(b)
    return x.shape == y.shape and np.allclose(x, y, rtol, rtol * float(np.max(np.abs(y), initial=0.0)), equal_nan=True)
