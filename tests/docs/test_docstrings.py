"""Every public name has an example in its docstring, and the example gives what it says.

Exempt are errors and warnings, which docs/errors.md shows by programs that cause them, and what has no docstring of its
own: modules and plain data.
"""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

import irad
import irad.data
import irad.rules
import irad.testing


def _public() -> dict[str, object]:
    modules = (irad, irad.data, irad.rules, irad.testing)
    return {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}


def _is_exempt(member: object) -> bool:
    if isinstance(member, type) and issubclass(member, Exception):
        return True
    return isinstance(member, ModuleType | str | tuple)


EXPLAINED = {name: inspect.getdoc(member) or "" for name, member in _public().items() if not _is_exempt(member)}


def test_only_data_and_modules_have_no_example():
    exempt = {name for name, member in _public().items() if not isinstance(member, type) and _is_exempt(member)}
    assert exempt == {"irad.__version__", "irad.data", "irad.rules", "irad.rules.ALL", "irad.testing"}


@pytest.mark.parametrize("name", EXPLAINED)
def test_example(name: str):
    test = doctest.DocTestParser().get_doctest(EXPLAINED[name], {}, name, None, None)
    assert test.examples, f"the docstring of {name} has no example"
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)
