"""Checks samples of one package, one after the other; `run` starts a process of this module for each package.

    python -m tests.corpus.outcome numba_stats 0 1 2

prints a line of JSON before and after each sample, so that the reader knows which one ended the process.
"""

from __future__ import annotations

import enum
import importlib
import json
import sys
import time
import traceback
import warnings
from typing import Any, Final

import numpy as np
from numba.core.errors import NumbaError

import irad
from irad.data.copies import copied, same_bits
from irad.data.floats import read_floats
from irad.errors import ActivityError, IradError, SignatureError, UnsupportedError
from irad.options import Options
from irad.testing.check_gradient import check_gradient, compiled
from irad.testing.gradients.trial import random_like
from tests.corpus.sample import Package, Sample

_RTOL: Final = 1e-10
_RTOL_SINGLE: Final = 2e-3


class Outcome(enum.StrEnum):
    """What became of a sample. The first three are what irad promises; the last two are not irad's fault."""

    RIGHT = "right"
    REFUSED = "refused"
    NOT_SMOOTH = "not smooth"  # differences do not converge, but both plans agree
    WRONG = "wrong"
    CRASHED = "crashed"
    HUNG = "hung"
    NOT_COMPILED = "not compiled"  # by Numba
    RAISED = "raised"  # by the function itself, at this point


def table_of(name: str) -> Package:
    """The table of the package ``name``."""
    package: Package = importlib.import_module(f"tests.corpus.packages.{name}").PACKAGE
    return package


def check(sample: Sample, exact: bool = True) -> tuple[Outcome, str]:
    """The outcome of a sample, and details; ``exact`` as in ``check_gradient``."""
    try:
        function, args = sample.program(), sample.arguments()
        value = compiled(function)(*copied(args))
    except NumbaError as error:
        return Outcome.NOT_COMPILED, str(error)
    except Exception:
        return Outcome.RAISED, traceback.format_exc()
    try:
        return _differentiate(sample, exact, function, args, value)
    except (UnsupportedError, ActivityError, SignatureError) as error:
        return Outcome.REFUSED, str(error)
    except AssertionError as error:
        return Outcome.WRONG, str(error) or traceback.format_exc()
    except IradError as error:
        return Outcome.CRASHED, str(error)
    except Exception:
        return Outcome.CRASHED, traceback.format_exc()


def _differentiate(
    sample: Sample, exact: bool, function: Any, args: tuple[Any, ...], value: Any
) -> tuple[Outcome, str]:
    if sample.known.startswith("not smooth"):
        _compare_plans(function, args, value, exact)
        return Outcome.NOT_SMOOTH, sample.known
    try:
        check_gradient(function, *args, exact=exact, **sample.options)
    except AssertionError as error:
        if "do not converge" not in str(error):
            raise
    except (NumbaError, TypeError):  # written for single precision: does not compile for the doubles of the reference
        pass
    else:
        return Outcome.RIGHT, ""
    try:
        check_gradient(function, *args, exact=exact, single=True, argnums=sample.options.get("argnums"))
    except AssertionError as error:
        if "do not converge" not in str(error):
            raise
        _compare_plans(function, args, value, exact)
        return Outcome.NOT_SMOOTH, str(error)
    return Outcome.RIGHT, "in single precision"


def _compare_plans(function: Any, args: tuple[Any, ...], value: Any, exact: bool) -> None:
    """Where differences say nothing, the oracle plan still does."""
    seed = random_like(value)
    found = []
    for plan in ("default", "save_all"):
        result, pullback = irad.vjp(function, *copied(args), options=Options(plan=plan))
        assert not exact or same_bits(result, value), f"value {result!r}, plain {value!r} (plan {plan})"
        found.append(np.concatenate([read_floats(gradient) for gradient in pullback(seed)]))
    scale = float(np.max(np.abs(found[1]), initial=1e-300))
    rtol = _RTOL_SINGLE if _is_single(args) else _RTOL
    np.testing.assert_allclose(found[0], found[1], rtol, rtol * scale, err_msg="the plans differ")


def _is_single(args: tuple[Any, ...]) -> bool:
    return any(getattr(argument, "dtype", None) == np.float32 for argument in args)


def main(name: str, *numbers: str) -> None:
    """Check the samples with these numbers in the table of a package."""
    warnings.simplefilter("ignore")
    package = table_of(name)
    for number in map(int, numbers):
        print(json.dumps({"number": number}), flush=True)
        before = time.process_time()
        outcome, details = check(package.samples[number], exact=not package.fastmath)
        seconds = time.process_time() - before
        result = {"number": number, "outcome": outcome, "details": details, "seconds": seconds}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
