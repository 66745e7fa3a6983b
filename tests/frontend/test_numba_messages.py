"""Numba's refusals, explained. A release of Numba that words one in another way fails here; users see its own words."""

from __future__ import annotations

import time

import numba
import numpy as np
import pytest
from numba import njit
from numba.typed import List

import irad
from irad.frontend.calls.untypable import untypable
from irad.frontend.numba.messages import described, explanation, readable

LABELS = {"a": 1.0}
TABLE = np.zeros(3)


def plain(x):
    return x


def calls_plain(x):
    return plain(x)


def misspelled(x):
    return xx  # noqa: F821


def writes_a_global(x):
    TABLE[0] = x
    return x


def unknown_of_a_module(x):
    return x * time.time()


def unsupported_of_numpy(x):
    return np.einsum("i->", x)


def unknown_attribute(x):
    return x.nothing


def two_types(x):
    if x > 0.0:
        y = 1.0
    else:
        y = "no"
    return x, y


def expression_of_two_types(x):
    return (1.0 if x > 0.0 else "no"), x


def returns_two_types(x):
    if x > 0:
        return 1.0
    return "no"


def adds_words(x):
    return x + "kg"


def indexes_a_number(x):
    return x[0]


def calls_with_wrong_types(x):
    return np.dot("a", x)


def uses_a_dictionary(x):
    return x * LABELS["a"]


def with_block(x):
    with open("/dev/null") as file:
        return x * file.fileno()


EXPLAINED = [
    (calls_plain, 1.0, "it calls plain, which is a plain Python function", "return plain"),
    (misspelled, 1.0, "the name xx is not defined", "return xx"),
    (writes_a_global, 1.0, "it writes to an array that is read-only", "TABLE[0] ="),
    (unknown_of_a_module, 1.0, "it uses time.time, which Numba does not support", "return"),
    (unsupported_of_numpy, np.ones(3), "it uses np.einsum, which Numba does not support", "return"),
    (unknown_attribute, 1.0, "a value of type float64 has no attribute nothing", "return"),
    (two_types, 1.0, "the variable y is float64 in one place and str in another", None),
    (expression_of_two_types, 1.0, "an expression is float64 in one case and str in another", "return"),
    (returns_two_types, 1.0, "it returns values of different types", None),
    (adds_words, 1.0, "+ is not defined for the types (float64, str)", "return"),
    (indexes_a_number, 1.0, "indexing is not defined for the types (float64, int", "return"),
    (calls_with_wrong_types, np.ones(2), "dot is not defined for the types (str, float64[::1])", "return"),
    (uses_a_dictionary, 1.0, "it uses LABELS, an object of type dict", "return"),
    (with_block, 1.0, "it uses a with statement", None),
]


@pytest.mark.parametrize(
    ("function", "argument", "words", "line"), EXPLAINED, ids=lambda v: getattr(v, "__name__", None)
)
def test_a_refusal(function, argument, words, line):
    with pytest.raises(irad.BackendError) as caught:
        irad.grad(njit(function))(argument)
    error = caught.value
    assert error.problem.startswith(f"Numba cannot compile {function.__name__}: ")
    assert words in error.problem
    assert error.reason
    assert error.remedy
    assert error.location.file == __file__
    shown = str(error).splitlines()[2].strip()
    assert shown.startswith(line or ""), shown
    assert "0x" not in str(error)


def test_in_a_function_that_is_called():
    inner = njit(unknown_attribute)

    @njit
    def outer(x):
        return 2.0 * inner(x)

    with pytest.raises(irad.BackendError) as caught:
        irad.grad(outer)(1.0)
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert lines[2] == "return x.nothing"
    assert lines[3] == "^^^^^^^" or "called from" in lines[3]
    assert "return 2.0 * inner(x)" in lines


class Plain:
    pass


class Frame(Plain):
    def to_numpy(self):
        return np.ones(2)


UNTYPABLE = [
    ({"a": 1.0}, "a dict", "numba.typed.Dict"),
    ([], "an empty list", "empty_list"),
    ([1.0, "a"], "different types: float, str", "tuple"),
    ([1.0, 2], "different types: float, int", "array"),
    (np.array([Plain()]), "an array of object", "astype(float)"),
    (plain, "a function", "numba.njit(plain)"),
    (Frame(), "a Frame", "x.to_numpy()"),
    (Plain(), "a Plain", "jitclass"),
    ((1.0, Plain()), "a tuple", "jitclass"),
]


@pytest.mark.parametrize(("value", "words", "remedy"), UNTYPABLE, ids=[case[1] for case in UNTYPABLE])
def test_an_argument_that_numba_cannot_hold(value, words, remedy):
    error = untypable(lambda y, x: x, {"y": 1.0, "x": value})
    assert error is not None
    assert error.problem.startswith("argument 1 (x) of ")
    assert words in error.problem
    assert remedy in error.remedy


@pytest.mark.parametrize(
    "value", [1.0, 1, None, "a", (1.0, "a"), [1.0], List([1.0]), np.ones(2), numba.float64, njit(plain)]
)
def test_arguments_that_numba_holds(value):
    assert untypable(lambda x: x, {"x": value}) is None


def test_what_the_primal_raises_passes():
    @njit
    def raising(x):
        if x > 0.0:
            raise TypeError("mine")
        return x

    with pytest.raises(TypeError, match="mine"):
        irad.grad(raising)(1.0)


def test_names_of_types():
    assert readable("Literal[str](kg)") == "str"
    assert readable("reflected list(float64)<iv=None>") == "list(float64)"
    assert readable("unicode_type") == "str"
    assert described(numba.types.none) == "None"
    assert described(numba.int64) == "an int64"
    assert described(numba.float64[:]) == "a float64[:] array"
    assert described(numba.types.UniTuple(numba.float64[:, ::1], 2)) == "a UniTuple(float64[:, ::1] x 2)"


def test_messages_that_are_highlighted():
    """Numba highlights them where colorama is installed."""
    plain_text = "Untyped global name 'plain': Cannot determine Numba type of <class 'function'>"
    highlighted = f"\x1b[1m\x1b[1mUntyped global name 'plain':\x1b[0m \x1b[1m{plain_text.partition(': ')[2]}\x1b[0m"
    found = explanation(numba.errors.TypingError(highlighted))
    assert found == explanation(numba.errors.TypingError(plain_text))
    assert found.problem == "it calls plain, which is a plain Python function"
    assert "\x1b" not in explanation(numba.errors.TypingError("\x1b[1munheard of\x1b[0m")).problem


@pytest.mark.parametrize("argument", [{"a": np.ones(2)}, [np.ones(2), 2.0]], ids=["dictionary", "list"])
def test_what_is_wrong_in_the_function_is_told_of_structures_too(argument: object):
    key = "a" if isinstance(argument, dict) else 0

    def misspelled(values):
        return np.summ(values[key])

    with pytest.raises(irad.BackendError, match=r"np\.summ does not exist"):
        irad.grad(misspelled)(argument)


class Tensor:
    __module__ = "torch"


@pytest.mark.parametrize(
    ("argument", "way"), [([Tensor()], "x[0]"), ((1.0, Tensor()), "x[1]"), ((1.0, [Tensor()]), "x[1][0]")]
)
def test_arrays_of_other_libraries_are_found_in_lists_and_tuples(argument: object, way: str):
    error = untypable(plain, {"x": argument})
    assert error is not None
    assert f": {way} is " in error.problem
