"""Factors that calls share: LU factorisations of one matrix, as of `np.linalg.solve(a, b)` and `np.linalg.slogdet(a)`.

Numba's functions each copy their matrix and factorise the copy. Of two such calls in one function, the first leaves the
matrix and its factors on the tape; the second compares, bit by bit, and takes the factors over where they are of the
same matrix. A copy and a comparison take n² steps.

The routine that factorises computes the same bits again, so no number changes. The one that also solves shares only
where the last places of values may differ from those of the plain function (`Context.is_exact`): with several threads
OpenBLAS divides the work of the two in different ways.

Derivatives are those of each call by itself: equal matrices may depend on arguments in different ways. In code that is
differentiated again calls share nothing, since what is copied there takes its derivative along.

Which calls are worth it: the element type is the same, and both copies are made from the same array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, GetElementPtr, Load, Store
from irad.ir.values import ConstantInt, TrackedValue, Value, const_int, zero
from irad.records import dataclass
from irad.rules.dense.elements import ElementType, element_of
from irad.rules.dense.kernel import I1, I64, NONE, PTR, TRUE, Kernel
from irad.rules.dense.library import scipy_lapack
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.saved import copied, kept_pivots, kept_result, same
from irad.rules.dense.triangular import has_wide_pivots
from irad.ruleset.interface import AugmentedContext, CallRule, Context, ReverseContext

_PARAMETERS: Final = {"numba_xgesv": "kind n nrhs a lda ipiv b ldb", "numba_xxgetrf": "kind m n a lda ipiv"}
_RECORD: Final = ("matrix", "factors", "row exchanges", "whether these had 64 bits", "order")
"""Memory of a function for a factorisation: null first where there is none that succeeded."""


@dataclass(frozen=True, slots=True)
class _Factorisation:
    """A call that factorises a square matrix without gaps."""

    call: CallSite
    arguments: dict[str, Value]

    @classmethod
    def of(cls, call: CallSite) -> _Factorisation | None:
        """The factorisation that a call is; None for other calls."""
        names = _PARAMETERS.get(call.callee.name or "")
        if names is None:
            return None
        arguments = dict(zip(names.split(), call.arguments, strict=True))
        n = arguments["n"]
        is_dense = same(n, arguments["lda"]) and same(n, arguments.get("m", n))
        return cls(call, arguments) if is_dense and isinstance(arguments["kind"], ConstantInt) else None

    @property
    def element(self) -> ElementType:
        """Type of the elements."""
        return element_of(self.arguments["kind"], "factorisation")

    def count(self, context: AugmentedContext) -> Value:
        """The number of elements of the matrix."""
        n = context.value(self.arguments["n"])
        return context.before.mul(n, n)

    @property
    def solves(self) -> bool:
        """True if the routine also solves a system."""
        return "b" in self.arguments

    def others(self, context: Context) -> Iterator[_Factorisation]:
        """Other factorisations in the function that are worth a comparison."""
        is_exact = context.is_exact
        block, source = self.call.block, _source(self.arguments["a"])
        assert block is not None
        assert block.function is not None
        for inst in block.function.instructions() if source is not None else ():
            found = _Factorisation.of(inst) if isinstance(inst, CallSite) and inst is not self.call else None
            if (
                found is not None
                and not (is_exact and (self.solves or found.solves))
                and same(self.arguments["kind"], found.arguments["kind"])
                and _source(found.arguments["a"]) == source
            ):
                yield found


def _source(data: Value) -> tuple[Value, bool] | None:
    """The array that an array is a copy of, and whether it was copied as a whole; None where that is not to be seen.

    A matrix and its transpose are copied in different ways.
    """
    sources: set[tuple[Value, bool]] = set()
    pending = [data]
    while pending:
        pointer = pending.pop()
        for user in pointer.users if isinstance(pointer, TrackedValue) else ():
            match user:
                case GetElementPtr() if user.operands[0] is pointer:
                    pending.append(user)
                case Store(operands=[Load(operands=[origin]), target]) if target is pointer:
                    sources.add((_root(origin), False))
                case Store():
                    return None
                case CallSite() if (user.callee.name or "").startswith("llvm.memcpy.") and user.arguments[0] is pointer:
                    sources.add((_root(user.arguments[1]), True))
                case _:
                    pass
    return next(iter(sources)) if len(sources) == 1 else None


def _root(pointer: Value) -> Value:
    while isinstance(pointer, GetElementPtr):
        pointer = pointer.operands[0]
    return pointer


# ------------------------------------------------------------------------------------------------ the rule


def sharing(rule: CallRule) -> CallRule:
    """The rule of a factorisation, which takes factors over from earlier calls and leaves its own to later ones."""

    def augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        found = None if context.before.module.opaque_guards else _Factorisation.of(call)
        others = [] if found is None else list(found.others(context))
        if found is None or not others:
            return rule.augmented(context, call)
        _take(context, found, others)
        record = _offer(context, found)
        return [*rule.augmented(context, call), record]

    def reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
        found = None if context.builder.module.opaque_guards else _Factorisation.of(call)
        if found is not None and any(True for _ in found.others(context)):
            saved = saved[:-1]
        rule.reverse(context, call, saved)

    return replace(rule, augmented=augmented, reverse=reverse)


def _offer(context: AugmentedContext, found: _Factorisation) -> Value:
    """Keeps the matrix, its factors and the row exchanges; returns the record of where they are."""
    a, ipiv, n = (found.arguments[name] for name in ("a", "ipiv", "n"))
    start = Builder.at_start(context.before.function.entry)
    record = start.alloca(types.array_type(len(_RECORD), PTR))
    start.store(zero(PTR), record)
    matrix = copied(context, context.before, a, found.element, found.count(context))
    factors = kept_result(context, a, found.element, found.count(context))
    rows = kept_pivots(context, ipiv, context.value(n))
    build = context.after
    wide = build.zext(has_wide_pivots(build, context.value(n), context.value(ipiv)), I64)
    succeeded = build.icmp("eq", context.value(found.call), const_int(types.I32, 0))
    kept = (
        build.select(succeeded, matrix, zero(PTR)),
        factors,
        rows,
        build.inttoptr(wide, PTR),
        build.inttoptr(context.value(n), PTR),
    )
    for number, value in enumerate(kept):
        build.store(value, build.gep(PTR, record, [const_int(I64, number)]))
    return record


def _take(context: AugmentedContext, found: _Factorisation, others: Sequence[_Factorisation]) -> None:
    """Takes factors over from the first call that has factorised the same matrix: LAPACK is given one without rows."""
    solves = found.solves
    names = ("n", "a", "ipiv", *(("nrhs", "b", "ldb") if solves else ()))
    given = [context.value(found.arguments[name]) for name in names]
    taken: Value | None = None
    for other in others:
        made = context.earlier(other.call)
        if made:
            taken = Kernel(context.before, found.element).outline(
                "take_factors_and_solve" if solves else "take_factors",
                partial(_taken, solves),
                const_int(I1, 0) if taken is None else taken,
                made[-1],
                *given,
                result=I1,
            )
    for name in ("n", "m"):
        if taken is not None and name in found.arguments:
            context.restate(list(found.arguments).index(name), context.before.select(taken, NONE, given[0]))


def _taken(
    solves: bool,
    k: Kernel,
    done: Value,
    record: Value,
    n: Value,
    a: Value,
    ipiv: Value,
    *system: Value,
) -> Value:
    """Takes the factors over if they are of the same matrix; returns whether that was done, or before (``done``)."""
    build, count = k.build, k.build.mul(n, n)
    k.return_if(done, TRUE)
    matrix, factors, rows, wide, order = (
        build.load(PTR, build.gep(PTR, record, [const_int(I64, number)])) for number, _ in enumerate(_RECORD)
    )
    k.return_if(build.icmp("eq", build.ptrtoint(matrix, I64), NONE), const_int(I1, 0))
    k.return_if(build.icmp("ne", build.ptrtoint(order, I64), n), const_int(I1, 0))
    k.return_if(build.icmp("slt", n, const_int(I64, 2)), const_int(I1, 0))  # the width of one integer is not to be seen
    word = types.int_type(8 * types.size_of(k.element.scalar))
    words = build.mul(count, const_int(I64, k.element.size * 8 // word.bits))
    with k.loop(words) as i:
        ours, theirs = (build.load(word, build.gep(word, data, [i])) for data in (a, matrix))
        k.return_if(build.icmp("ne", ours, theirs), const_int(I1, 0))
    size = build.mul(count, const_int(I64, k.element.size))
    build.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [a, factors, size, const_int(I1, 0)])
    with k.loop(n) as i:
        row = build.load(I64, build.gep(I64, rows, [i]))
        is_wide = build.icmp("ne", build.ptrtoint(wide, I64), NONE)
        with k.when(is_wide):
            build.store(row, build.gep(I64, ipiv, [i]))
        with k.unless(is_wide):
            build.store(build.trunc(row, types.I32), build.gep(types.I32, ipiv, [i]))
    if solves:
        sides, b, leading = system
        info = k.slot(I64)
        right = Matrix(k, b, n, sides, leading)
        scipy_lapack(k.element).call(k, "getrs", "n", n, sides, Matrix.dense(k, a, n, n), ipiv, right, info)
    return TRUE
