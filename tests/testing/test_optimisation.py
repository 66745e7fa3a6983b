from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core import config

from irad.testing.gradients.trial import optimisation_limited


def double(x):
    for i in range(x.size):
        x[i] *= 2.0


def vectors_in(function) -> bool:
    x = np.arange(5.0)
    function(x)
    np.testing.assert_array_equal(x, [0.0, 2.0, 4.0, 6.0, 8.0])
    return "x double>" in function.inspect_llvm(function.signatures[0])


def test_code_is_not_vectorised():
    with optimisation_limited():
        assert not vectors_in(njit(error_model="numpy")(double))
    assert vectors_in(njit(error_model="numpy")(double))


def test_an_exception_ends_it():
    before = config.OPT
    with pytest.raises(ZeroDivisionError), optimisation_limited():
        raise ZeroDivisionError
    assert config.OPT is before


def test_a_lower_level_stays(monkeypatch):
    monkeypatch.setattr(config, "OPT", type(config.OPT)(0))
    with optimisation_limited():
        assert config.OPT == 0
