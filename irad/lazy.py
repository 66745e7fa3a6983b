"""Names of a package that load on first use.

A package lists them in its stub, ``__init__.pyi``, as imports from where they are defined; that is the only table of
them, and type checkers, the reference and the running program read the same one::

    from irad import rules as rules
    from irad.api.grad import grad as grad

A package whose names are defined above it does not know of them: it has what `irad` offers for it, which Python always
imports first.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Final


class LazyNames:
    """The names in the stub of a package, for its ``__all__``, ``__getattr__`` and ``__dir__``.

    Args:
        package: its name.
        stub: its ``__init__.pyi``.
        loaded: called with the module that defines a name when that was asked for the first time.
    """

    def __init__(self, package: str, stub: Path, loaded: Callable[[str], None] = lambda _: None) -> None:
        self._package: Final = package
        self._stub: Final = stub
        self._loaded: Final = loaded

    @cached_property
    def origins(self) -> dict[str, str]:
        """Module that defines each name; the package itself, where the name is that of a module in it."""
        stub = ast.parse(self._stub.read_text(encoding="utf-8"))
        imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: node.module or "" for node in imports for alias in node.names}

    def load(self, name: str) -> object:
        """Value of a name; from then on the package has it.

        Raises:
            AttributeError: it is not in the stub.
        """
        origin = self.origins.get(name)
        if origin is None:
            package = sys.modules[self._package]  # Python looks in it for a name that is spelt like this one
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}", name=name, obj=package)
        if origin == self._package:
            module = import_module(f"{origin}.{name}")
            self._loaded(f"{origin}.{name}")
            return module
        value: object = getattr(import_module(origin), name)
        self._loaded(origin)
        setattr(sys.modules[self._package], name, value)
        return value

    def listed(self) -> list[str]:
        """All names of the package, loaded or not."""
        return sorted({*vars(sys.modules[self._package]), *self.origins})


_offered: Final[dict[str, LazyNames]] = {}


def offer(package: str, folder: Path, loaded: Callable[[str], None]) -> LazyNames:
    """Makes the names in the stub in a folder known as those of a package; ``loaded`` is that of `LazyNames`."""
    return _offered.setdefault(package, LazyNames(package, folder / "__init__.pyi", loaded))


def offered(package: str) -> LazyNames:
    """The names that are offered as those of a package."""
    return _offered[package]
