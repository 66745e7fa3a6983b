"""The names of irad.nn."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from irad import nn
from irad.frontend.custom import catalogue


def test_no_module_hides_a_function():
    assert {module.name for module in pkgutil.iter_modules(nn.__path__)}.isdisjoint(nn.__all__)


def test_it_is_loaded_on_first_use_even_while_a_function_is_compiled():
    code = (
        "import sys, numpy as np, irad\n"
        "assert 'irad.nn' not in sys.modules\n"
        "print(irad.grad(lambda x: irad.nn.softmax(x, 0)[0])(np.zeros(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[0.25, -0.25]\n", done.stderr


# The functions that NNlib has Enzyme rules for (NNlibEnzymeCoreExt), without the "!" of those that write to arguments,
# and what they are called here; those for depthwise filters are the general ones, with as many groups as channels.
ENZYME_RULES = {
    "conv": nn.conv,
    "∇conv_data": nn.conv_data,
    "∇conv_filter": nn.conv_filter,
    "depthwiseconv": nn.depthwiseconv,
    "gather": nn.gather,
    "scatter": nn.scatter,
    "maxpool": nn.maxpool,
    "meanpool": nn.meanpool,
    "lpnormpool": nn.lpnormpool,
    "dropout": nn.dropout,
    "batched_mul": nn.batched_mul,
}


def _with_rules() -> set[Any]:
    return {rule.key[0] for rule in catalogue.rules() if rule.is_for_reverse and rule.is_for_forward}


def _kernels_of(f: Any, found: set[Any]) -> set[Any]:
    """The compiled functions of irad.nn that a function calls, and those that these call."""
    code = f.py_func.__code__
    for name in code.co_names:
        callee = f.py_func.__globals__.get(name)
        if isinstance(callee, Dispatcher) and callee not in found and callee.py_func.__module__.startswith("irad.nn"):
            found.add(callee)
            _kernels_of(callee, found)
    return found


@pytest.mark.parametrize("name", ENZYME_RULES)
def test_what_nnlib_has_enzyme_rules_for_has_rules_here(name: str):
    function = ENZYME_RULES[name]
    assert function.py_func.__name__ == name.removeprefix("∇")
    assert _kernels_of(function, {function}) & _with_rules()


def test_this_test_sees_what_has_no_rule():
    assert not _kernels_of(nn.hann_window, {nn.hann_window}) & _with_rules()
