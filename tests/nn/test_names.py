"""The names of irad.nn."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

from irad import nn


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
