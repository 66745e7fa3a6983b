"""``check_gradient``: compares the derivatives of a function, and everything that comes with them, with a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numba.core import config

import irad
from irad.api.forward import with_direction
from irad.data.copies import copied, same_bits
from irad.data.floats import Vector, floats_only, has_floats, holds_single, in_types_of, read_floats, with_floats
from irad.data.structure import is_structure, members
from irad.frontend.packing.packed import packed
from irad.options import Options, PlanName
from irad.testing.gradients.objective import Objective

# How much Numba optimises, for code whose speed does not matter.

_LIMIT: Final = 1  # at 0 LLVM leaves so much code that machine code takes as long as is saved


@contextmanager
def optimisation_limited() -> Iterator[None]:
    """LLVM does little more than inline and simplify what Numba compiles meanwhile, and no vectors; in all threads."""
    before = config.OPT, config.LOOP_VECTORIZE
    config.OPT, config.LOOP_VECTORIZE = type(config.OPT)(min(config.OPT, _LIMIT)), 0
    try:
        yield
    finally:
        config.OPT, config.LOOP_VECTORIZE = before


# ``check_gradient``: compares the derivatives of a function, and everything that comes with them, with a reference.

_RTOL: Final = 1e-6
_RTOL_SINGLE: Final = 2e-4
_RTOL_ROUNDED: Final = 2e-3  # of differences of values that are rounded to single precision
_PLANS_RTOL: Final = 1e-11
_PLANS_RTOL_SINGLE: Final = 1e-4
_MODES_RTOL: Final = 1e-10


@dataclass(frozen=True, slots=True)
class PlainDerivatives:
    """What the plain function says.

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
        forward: check forward mode as well, in one direction: value and memory likewise, and that the product of the
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
        expected = reference(function, args, argnums, _RTOL if rtol is None else rtol, single=single)
    check = _GradientCheck(function, args, expected, rtol, atol, exact, single)
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
    """Whether a function was compiled with fastmath."""
    return bool(dispatcher.targetoptions.get("fastmath"))


def reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: Sequence[int] | None = None,
    rtol: float = _RTOL,
    *,
    single: bool = False,
) -> PlainDerivatives:
    """Call the plain function and differentiate it by finite differences, which have to be good to ``rtol``.

    Raises:
        AssertionError: the differences do not converge: ``f`` has a kink or a jump at ``args``.
    """

    def program(*arguments: Any) -> Any:
        return f(*map(packed, arguments))  # functions of numba.njit take no structures

    after = copied(args)
    value = program(*after)
    wanted = tuple(i for i, a in enumerate(args) if has_floats(a)) if argnums is None else tuple(argnums)
    seed = None if isinstance(value, (float, np.floating)) else random_like(value)
    weights = np.ones(1) if seed is None else read_floats(seed)
    objective = Objective(program, args, weights, {}, native=single)
    derivatives = tuple(objective.differences(i, rtol, single=single) for i in wanted)
    return PlainDerivatives(value, after, wanted, seed, derivatives)


def random_like(value: Any, draw: int = 0) -> Any:
    """A cotangent for ``value``: in its structure and precision, None in place of what holds no floats."""
    count = read_floats(value).size
    leaves = np.random.default_rng((count, draw) if draw else count).uniform(0.5, 1.5, count)
    return floats_only(in_types_of(with_floats(value, leaves), value))


class _GradientCheck:
    """The comparison of one function at one point."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        expected: PlainDerivatives,
        rtol: float | None,
        atol: float | None,
        exact: bool,
        single: bool,
    ) -> None:
        self._f, self._args, self._expected = f, args, expected
        self._single = single or any(map(holds_single, (*args, expected.value)))
        self._exact, self._rounded = exact, partial(_same_to_rounding, single=self._single)
        self._rtol = rtol if rtol is not None else _RTOL_SINGLE if self._single else _RTOL
        largest = max((float(np.max(np.abs(d), initial=0.0)) for d in expected.derivatives), default=0.0)
        self._atol = atol if atol is not None else self._rtol * max(largest, 1e-3)

    def plan(self, plan: PlanName, *, with_value: bool = True) -> tuple[Any, ...]:
        """Check the derivatives made under ``plan``, and the value unless a function without it is asked for.

        Returns:
            The gradients.
        """
        options = Options(plan=plan, verify=True)
        if self._expected.seed is not None:
            return self._check_pullback(options)
        if with_value:
            return self._check_scalar(options)
        gradients, arguments = self._alone(options)
        self._compare_memory(plan, arguments, has_vectors=options.has_vector_math)
        self._compare_gradients(plan, gradients)
        return gradients

    def grad_agrees(self, plan: PlanName, gradients: tuple[Any, ...]) -> None:
        """Assert that `irad.grad`, which runs the same derivative without the value, gives the same gradients.

        Without the value fastmath may form other sums, so those may differ by rounding.
        """
        if self._expected.seed is None:
            options = Options(plan=plan, verify=True)
            alone, arguments = self._alone(options)
            if _is_fast(self._f):
                self.plans_agree(f"{plan} (with the value)", gradients, f"{plan} (without)", alone)
            else:
                assert same_bits(alone, gradients), f"grad and value_and_grad differ (plan {plan})"
            self._compare_memory(plan, arguments, has_vectors=options.has_vector_math)

    def plans_agree(self, plan: str, gradients: tuple[Any, ...], other: str, others: tuple[Any, ...]) -> None:
        """Assert that two plans gave the same gradients, up to the order of sums."""
        rtol = _PLANS_RTOL_SINGLE if self._single else _PLANS_RTOL
        for position, a, b in zip(self._expected.argnums, gradients, others, strict=True):
            x, y = read_floats(a), read_floats(b)
            scale = max(float(np.max(np.abs(y), initial=0.0)), 1e-300)
            message = f"plans {plan} and {other} differ by argument {position}"
            np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * scale, err_msg=message)

    def forward_agrees(self, gradients: tuple[Any, ...]) -> None:
        """Assert that forward mode has the same derivative in a direction as the gradients have."""
        argnums = self._expected.argnums
        arguments = copied(self._args)
        tangents = tuple(random_like(arguments[i], draw=i + 1) for i in argnums)
        direction = [read_floats(tangent) for tangent in tangents]
        value, tangent = irad.pushforward(self._f, argnums)(*with_direction(arguments, argnums, tangents))
        self._compare_results("forward mode", value, arguments, has_vectors=True)
        weights = np.ones(1) if self._expected.seed is None else read_floats(self._expected.seed)
        parts = [(read_floats(g), d) for g, d in zip(gradients, direction, strict=True)]
        scale = sum(float(np.abs(g) @ np.abs(d)) for g, d in parts)
        rtol = _PLANS_RTOL_SINGLE if self._single else _MODES_RTOL
        np.testing.assert_allclose(
            weights @ read_floats(tangent),
            sum(float(g @ d) for g, d in parts),
            rtol=0.0,
            atol=rtol * max(scale, 1e-300),
            err_msg="forward and reverse mode differ",
        )

    def _check_scalar(self, options: Options) -> tuple[Any, ...]:
        argnums = self._expected.argnums
        arguments = copied(self._args)
        value, gradients = irad.value_and_grad(self._f, argnums, options=options)(*arguments)
        self._compare_results(options.plan, value, arguments, has_vectors=options.has_vector_math)
        self._compare_gradients(options.plan, gradients)
        return tuple(gradients)

    def _alone(self, options: Options) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The gradients without the value, and the arguments after the call."""
        arguments = copied(self._args)
        gradients = irad.grad(self._f, self._expected.argnums, options=options)(*arguments)
        return tuple(gradients), arguments

    def _check_pullback(self, options: Options) -> tuple[Any, ...]:
        arguments = copied(self._args)
        value, pullback = irad.vjp(self._f, *arguments, options=options)
        first, second = pullback(self._expected.seed), pullback(self._expected.seed)
        gradients = tuple(first[i] for i in self._expected.argnums)
        assert same_bits(gradients, tuple(second[i] for i in self._expected.argnums)), "the second pullback differs"
        self._compare_results(options.plan, value, arguments, has_vectors=options.has_vector_math)
        self._compare_gradients(options.plan, gradients)
        return gradients

    def _compare_results(self, plan: str, value: Any, arguments: tuple[Any, ...], *, has_vectors: bool) -> None:
        wanted = self._expected.value
        assert self._same(value, wanted, has_vectors), f"value {value!r}, plain {wanted!r} (plan {plan})"
        self._compare_memory(plan, arguments, has_vectors=has_vectors)

    def _same(self, found: Any, wanted: Any, has_vectors: bool) -> bool:
        if not self._exact:
            return self._rounded(found, wanted)
        return same_bits(found, wanted) or (has_vectors and self._rounded(found, wanted) and self._is_exact_by_numbers)

    @cached_property
    def _is_exact_by_numbers(self) -> bool:
        """Whether value and memory are the plain call's to the bit where no loop calls functions for vectors."""
        arguments, options = copied(self._args), Options(vector_math=False)
        if self._expected.seed is None:
            value = irad.value_and_grad(self._f, self._expected.argnums, options=options)(*arguments)[0]
        else:
            value = irad.vjp(self._f, *arguments, options=options)[0]
        return same_bits(value, self._expected.value) and all(map(same_bits, arguments, self._expected.after))

    def _compare_gradients(self, plan: str, gradients: Sequence[Any]) -> None:
        for position, found, wanted in zip(self._expected.argnums, gradients, self._expected.derivatives, strict=True):
            place = f"argument {position} (plan {plan})"
            assert_same_structure(found, self._args[position], place)
            message = f"gradient with respect to {place}"
            leaves = read_floats(found)
            np.testing.assert_allclose(leaves, wanted, rtol=self._rtol, atol=self._atol, err_msg=message)

    def _compare_memory(self, plan: str, arguments: tuple[Any, ...], *, has_vectors: bool) -> None:
        for position, (found, wanted) in enumerate(zip(arguments, self._expected.after, strict=True)):
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
