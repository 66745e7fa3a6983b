from __future__ import annotations

import numba
import numpy as np
import pytest

import irad
from irad.decompile.names import Namer, demangle, python_name


def symbol_of(dispatcher, *args) -> str:
    kinds = tuple(map(numba.typeof, args))
    dispatcher.compile(kinds)
    return dispatcher.overloads[kinds].fndesc.mangled_name


@numba.njit
def first(x):
    return x


@numba.njit
def latent_capacity(x):
    return x


@numba.njit
def points_3d(x):
    return x


@numba.njit
def größe(x):
    return x


@pytest.mark.parametrize("function", [latent_capacity, points_3d, größe])
def test_names_that_look_like_escapes_and_letters_that_are_escaped(function):
    known = demangle(symbol_of(function, 1.0))
    assert known is not None
    assert known.name == function.py_func.__name__


class Methods:
    @staticmethod
    @numba.njit
    def second(x):
        return x


@pytest.mark.parametrize(
    ("args", "types"),
    [
        ((1.0,), ("float64",)),
        ((np.float32(1.0),), ("float32",)),
        ((1,), ("int64",)),
        ((True,), ("bool",)),
        ((None,), ("none",)),
        ((1j,), ("complex128",)),
        ((np.ones(3),), ("float64[::1]",)),
        ((np.ones((2, 3)),), ("float64[:, ::1]",)),
        ((np.ones((2, 3)).T,), ("float64[::1, :]",)),
        ((np.ones(6)[::2],), ("float64[:]",)),
        (((1, 2.0),), ("Tuple(int64, float64)",)),
    ],
)
def test_types_are_read(args, types):
    known = demangle(symbol_of(first, *args))
    assert known is not None
    assert (known.name, known.types) == ("first", types)


def test_names_of_inner_functions_and_methods():
    def make():
        @numba.njit
        def inner(x):
            return x

        return inner

    inner = demangle(symbol_of(make(), 1.0))
    assert inner is not None
    assert inner.name == "inner"
    method = demangle(symbol_of(Methods.second, 1.0))
    assert method is not None
    assert method.name.endswith("Methods.second")


def test_what_irad_appends_is_kept():
    symbol = symbol_of(first, 2.0)
    known = demangle(f"{symbol}.irad0.reverse")
    assert known is not None
    assert str(known) == "first(float64).irad0.reverse"
    assert (
        Namer([symbol]).shorten(f"call void @{symbol}.irad0.reverse(ptr %x)")
        == "call void @first.irad0.reverse(ptr %x)"
    )


def test_two_specialisations_have_two_names():
    symbols = [symbol_of(first, 2.0), symbol_of(first, 2)]
    namer = Namer(symbols)
    assert [namer.name(symbol) for symbol in symbols] == ["first(float64)", "first(int64)"]


def test_equal_names_stay_apart():
    def make():
        @numba.njit
        def same(x):
            return x

        return same

    symbols = [symbol_of(make(), 2.0), symbol_of(make(), 2.0)]
    assert len(set(symbols)) == 2
    names = {Namer(symbols).name(symbol) for symbol in symbols}
    assert len(names) == 2


@pytest.mark.parametrize("symbol", ["exp", "", "_Z", "_ZN", "_ZN3fo", "_ZNE", "NRT_incref", "_ZN3foo"])
def test_other_names_are_left_alone(symbol):
    assert demangle(symbol) is None
    assert Namer([symbol]).name(symbol) == symbol


def test_types_that_cannot_be_read_are_left_out():
    known = demangle("_ZN4main1fE5ArrayIdLi1")
    assert known is not None
    assert (known.name, known.types) == ("f", ())


@pytest.mark.parametrize(
    ("llvm", "python"),
    [("arg.x.4", "x"), ("arg.w", "w"), ("arg.x_1.5.0", "x_1"), ("retptr", "retptr"), (".190", ".190"), ("i", "i")],
)
def test_parameters_have_python_names(llvm, python):
    assert python_name(llvm) == python


def test_symbols_of_a_derivative_are_all_short():
    text = irad.inspect(first, 1.0).stage("adjoint")
    assert "_ZN" not in text
    assert "define i32 @first.irad0.augmented(" in text
