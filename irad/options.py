"""Options of a derivation; the only reader of ``IRAD_*`` environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Final, Literal, TypeAlias, get_args

from irad.errors import IradError, SourceLocation, without_source

PlanName: TypeAlias = Literal["default", "save_all"]
ZeroTimesInfinity: TypeAlias = Literal["cotangent", "zero", "nan"]

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})
_NO_LIMIT = 1 << 62
_PATIENCE = 300.0  # seconds: longer than compilations take, shorter than a night
_WHICH_WINS: Final[dict[str, ZeroTimesInfinity]] = {"cotangent": "cotangent", "zero": "zero", "nan": "nan"}
_FLAGS = ("strict", "verify", "debug", "measure_tape", "boundscheck", "vector_math", "speculative", "cache")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of derivatives; equal options give the same code for the same function and the same first call.

    Attributes:
        plan: ``"default"`` chooses for each value between saving and recomputing; ``"save_all"`` saves every value that
            is needed, which is slow and simple: a reference for the other.
        strict: keep the order of every sum of the adjoint, and divide cotangents. Otherwise sums may be reordered, so
            that they vectorise, and cotangents are multiplied by reciprocals.
        verify: check the module after every pass, and that both sweeps of a derivative make the same decisions.
        debug: watch for NaNs, infinities and ties while the derivative runs, and report where they began.
        max_tape_bytes: bytes that the tape of a call may take; a larger one raises `irad.TapeLimitError`. None for no
            limit.
        boundscheck: raise `irad.BoundsError` if an index is out of bounds, in the function and in all that it calls;
            parallel loops run serially. Without it, as in Numba, nothing is checked: such an access reads and writes
            memory that belongs to something else, and so does its derivative.
        zero_times_infinity: the product of a cotangent and a partial derivative if one is zero and the other infinite
            or NaN. ``"cotangent"``: zero if the cotangent is zero, so that parts that do not contribute to the result
            spoil no gradient; NaN if the partial derivative is zero. ``"zero"``: zero in both cases (NaN stays NaN).
            ``"nan"``: NaN in both cases, as in arithmetic, and as in JAX and PyTorch.
        vector_math: let loops with `exp`, `sin`, … use the C library's vector functions, whose results differ from the
            scalar ones in the last digits; values then differ from those of the plain function in the same way.
            Solutions of a linear system whose matrix was factorised before, for `slogdet` say, may also differ if BLAS
            uses several threads. Without it, and with ``strict``, ``debug`` or ``plan="save_all"``, such loops stay
            scalar, each call factorises, and values equal those of the plain function to the bit.
        speculative: compute gradients called from Python without the comparisons that turn zero times infinity into
            zero, until a result is NaN; that call, and all later ones, are computed with them. Only for functions that
            do not write to the caller's memory and have no other effects, and not with ``strict``, ``debug``,
            ``plan="save_all"``, ``zero_times_infinity="zero"`` or a tape that is limited or measured.
        measure_tape: record the memory of the tape in each call, line by line; see `irad.tape_report`.
        cache: keep compiled derivatives on disk, where later processes load them; see `docs/cache.md`.

    Raises:
        IradError: a setting has an invalid value.

    `from_environment` reads them from environment variables.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def beyond(x):
        ...     return x[x.size]
        >>> irad.grad(beyond, options=irad.Options(boundscheck=True))(np.ones(2))
        Traceback (most recent call last):
        ...
        irad.BoundsError: index 2 is out of bounds: x has 2 elements along axis 0
        ...
    """

    plan: PlanName = "default"
    strict: bool = False
    verify: bool = False
    debug: bool = False
    max_tape_bytes: int | None = None
    measure_tape: bool = False
    boundscheck: bool = False
    zero_times_infinity: ZeroTimesInfinity = "cotangent"
    vector_math: bool = True
    speculative: bool = True
    cache: bool = False

    def __post_init__(self) -> None:
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise IradError(
                    f"{name}={getattr(self, name)!r} is neither True nor False",
                    f"(a) {name}=True or (b) {name}=False",
                    "this option is on or off",
                    SourceLocation.here(),
                )
        if self.plan not in get_args(PlanName):
            raise IradError(
                f"unknown plan {self.plan!r}",
                '(a) plan="default" or (b) plan="save_all", which is slow and simple',
                "a plan decides which values are saved for the reverse sweep and which are recomputed",
                SourceLocation.here(),
            )
        if self.zero_times_infinity not in get_args(ZeroTimesInfinity):
            raise IradError(
                f"unknown zero_times_infinity {self.zero_times_infinity!r}",
                '(a) zero_times_infinity="cotangent" or (b) "zero" or (c) "nan"',
                "it decides which zeros win over an infinity: cotangents, all, or none",
                SourceLocation.here(),
            )
        limit = self.max_tape_bytes
        if limit is not None and (type(limit) is not int or not 0 <= limit < _NO_LIMIT):
            raise IradError(
                f"max_tape_bytes={limit!r} is not a number of bytes",
                "pass a non-negative int, or None",
                "the tape is counted in whole bytes; None means no limit",
                SourceLocation.here(),
            )

    @property
    def tape_limit(self) -> int | None:
        """The limit that the code compares with; None where nothing is counted."""
        if self.max_tape_bytes is None:
            return _NO_LIMIT if self.measure_tape else None
        return self.max_tape_bytes

    @property
    def promotes(self) -> bool:
        """True if small arrays become values: not for the oracle, nor where each is watched."""
        return self.plan == "default" and not self.debug

    @property
    def has_vector_math(self) -> bool:
        """True if loops may call functions for vectors; not where values have to be those of the plain function."""
        return self.vector_math and self._is_free

    @property
    def speculates(self) -> bool:
        """True if a gradient may be computed a second time."""
        is_counted = self.tape_limit is not None
        return self.speculative and self._is_free and not is_counted and self.zero_times_infinity == "cotangent"

    @property
    def _is_free(self) -> bool:
        """True if arithmetic need not be that of the plain function, operation by operation."""
        return self.plan == "default" and not (self.strict or self.debug)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Options:
        """The options that environment variables ask for.

        The variables are IRAD_PLAN, IRAD_STRICT, IRAD_VERIFY, IRAD_DEBUG, IRAD_BOUNDSCHECK, IRAD_MAX_TAPE_BYTES,
        IRAD_VECTOR_MATH, IRAD_SPECULATIVE, IRAD_ZERO_TIMES_INFINITY and IRAD_CACHE.

        Args:
            environment: variables and their values; by default ``os.environ``.

        Returns:
            The options; variables that are not set leave the defaults.

        Raises:
            IradError: a variable has an invalid value.

        Examples:
            >>> import irad
            >>> irad.Options.from_environment({"IRAD_DEBUG": "1"}).debug
            True
        """
        variables = os.environ if environment is None else environment
        plan = variables.get("IRAD_PLAN", "") or "default"
        if plan not in get_args(PlanName):
            raise IradError(
                f"IRAD_PLAN={plan} is not a plan",
                "(a) IRAD_PLAN=default or (b) IRAD_PLAN=save_all",
                "irad reads this environment variable when a derivative is created without options",
            )
        zero_times_infinity = variables.get("IRAD_ZERO_TIMES_INFINITY", "").strip().lower() or "cotangent"
        if zero_times_infinity not in get_args(ZeroTimesInfinity):
            raise IradError(
                f"IRAD_ZERO_TIMES_INFINITY={zero_times_infinity} is not one of cotangent, zero and nan",
                "(a) IRAD_ZERO_TIMES_INFINITY=cotangent or (b) =zero or (c) =nan",
                "irad reads this environment variable when a derivative is created without options",
            )
        _check_errors_setting(variables)
        cache_patience(variables)
        return cls(
            plan="save_all" if plan == "save_all" else "default",
            strict=_read_flag(variables, "IRAD_STRICT"),
            verify=_read_flag(variables, "IRAD_VERIFY"),
            debug=_read_flag(variables, "IRAD_DEBUG"),
            boundscheck=_read_flag(variables, "IRAD_BOUNDSCHECK"),
            vector_math=_read_flag(variables, "IRAD_VECTOR_MATH", default=True),
            speculative=_read_flag(variables, "IRAD_SPECULATIVE", default=True),
            cache=_read_flag(variables, "IRAD_CACHE"),
            max_tape_bytes=_read_bytes(variables, "IRAD_MAX_TAPE_BYTES"),
            zero_times_infinity=_WHICH_WINS[zero_times_infinity],
        )


def _without_frames(initialise: Callable[..., None]) -> Callable[..., None]:
    """Lets tracebacks end at the line that creates the options."""

    @wraps(initialise)
    def checked(self: Options, *args: object, **fields: object) -> None:
        try:
            initialise(self, *args, **fields)
        except IradError as error:
            raise error.with_traceback(None)  # noqa: B904

    return without_source(checked, "Options")


Options.__init__ = _without_frames(Options.__init__)  # type: ignore[method-assign]


def errors_show_llvm(environment: Mapping[str, str] | None = None) -> bool:
    """True if IRAD_ERRORS asks for errors with LLVM text and whole tracebacks.

    Args:
        environment: read in place of ``os.environ``.
    """
    variables = os.environ if environment is None else environment
    return _errors_setting(variables) == "llvm"


def uses_cuda_executor(environment: Mapping[str, str] | None = None) -> bool:
    """True if IRAD_CUDA_EXECUTOR asks that CUDA kernels run on the CPU.

    Args:
        environment: read in place of ``os.environ``.

    Raises:
        IradError: the variable has a value that means nothing.
    """
    return _read_flag(os.environ if environment is None else environment, "IRAD_CUDA_EXECUTOR")


def cache_patience(environment: Mapping[str, str] | None = None) -> float:
    """For how many seconds a process waits for another one that compiles what it needs: IRAD_CACHE_WAIT, else 300.

    Args:
        environment: read in place of ``os.environ``.

    Raises:
        IradError: the variable has a value that means nothing.
    """
    text = (os.environ if environment is None else environment).get("IRAD_CACHE_WAIT", "").strip()
    if not text:
        return _PATIENCE
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0.0:
        raise IradError(
            f"IRAD_CACHE_WAIT={text} is not a number of seconds",
            "(a) IRAD_CACHE_WAIT=600 or (b) IRAD_CACHE_WAIT=0, so that each process compiles for itself",
            "it limits how long a process waits for another one that compiles the same derivative",
        )
    return seconds


def _errors_setting(variables: Mapping[str, str]) -> str:
    return variables.get("IRAD_ERRORS", "").strip().lower()


def _check_errors_setting(variables: Mapping[str, str]) -> None:
    """Raises for a value that means nothing: here and not while an error is on its way, which that would hide."""
    if _errors_setting(variables) not in ("", "short", "llvm"):
        raise IradError(
            f"IRAD_ERRORS={variables['IRAD_ERRORS']} is not a format for errors",
            "(a) IRAD_ERRORS=short or (b) IRAD_ERRORS=llvm, which shows LLVM's text and full tracebacks",
            "irad reads this environment variable when a derivative is created without options",
        )


def _read_flag(variables: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = variables.get(name, "").strip().lower()
    if not text:
        return default
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise IradError(
        f"{name}={text} is neither true nor false",
        f"(a) {name}=1 or (b) {name}=0",
        "irad reads this environment variable when a derivative is created without options",
    )


def _read_bytes(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "").strip()
    if not text:
        return None
    if text.isascii() and text.isdecimal() and int(text) < _NO_LIMIT:
        return int(text)
    raise IradError(
        f"{name}={text} is not a number of bytes",
        f"(a) {name}=1000000000 or (b) leave {name} unset",
        "the tape is counted in whole bytes; without the variable there is no limit",
    )
