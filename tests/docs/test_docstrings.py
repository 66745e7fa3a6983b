"""The examples in public docstrings give what they say."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

import irad
import irad.rules
import irad.testing


def documented() -> dict[str, object]:
    """The public objects whose docstrings carry an example."""
    found: dict[str, object] = {}
    for module in (irad, irad.rules, irad.testing):
        for name in module.__all__:
            member = getattr(module, name)
            if not isinstance(member, ModuleType) and ">>> " in (inspect.getdoc(member) or ""):
                found[f"{module.__name__}.{name}"] = member
    return found


def test_functions_that_make_derivatives_have_examples():
    wanted = {
        "grad",
        "value_and_grad",
        "value_and_grad_into",
        "vjp",
        "autodiff",
        "jit",
        "check",
        "tape_report",
        "inspect",
    }
    wanted = {f"irad.{name}" for name in wanted} | {"irad.Options", "irad.testing.gradcheck"}
    wanted |= {
        f"irad.rules.{name}"
        for name in ("augmented_primal", "easy_rule", "inactive", "inactive_arg", "has_rule", "stop_gradient")
    }
    assert wanted <= documented().keys()


@pytest.mark.parametrize("name", documented())
def test_example(name: str):
    text = inspect.getdoc(documented()[name])
    test = doctest.DocTestParser().get_doctest(text or "", {}, name, None, None)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test, out=printed.append)
    assert (runner.failures, runner.tries > 0) == (0, True), "".join(printed)
