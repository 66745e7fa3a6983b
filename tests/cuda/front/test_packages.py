"""Importing irad does not import `numba.cuda`; where that cannot compile, the error says what to do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import irad
from irad.frontend.cuda import packages


def test_importing_irad_does_not_import_numba_cuda():
    code = "import sys, irad\nirad.grad(lambda x: x * x)(3.0)\nsys.exit('numba.cuda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_simulator_is_refused():
    code = "import irad.frontend.cuda.program"
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Numba simulates CUDA in this process" in done.stderr
    assert "unset NUMBA_ENABLE_CUDASIM" in done.stderr


def test_a_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch):
    def fails(name: str) -> None:
        raise RuntimeError("libcudart.so was not found")

    monkeypatch.setattr(packages.importlib, "import_module", fails)
    with pytest.raises(irad.BackendError, match=r"libcudart\.so was not found") as refused:
        packages.check_packages()
    assert "numba-cuda[cu13]" in refused.value.remedy
