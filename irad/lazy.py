"""Names of a package that load on first use.

A package states them in its stub, ``__init__.pyi``, as imports from where they are defined; that is the only table of
them, and type checkers, the reference and the running program read the same one::

    from irad import rules as rules
    from irad.api.grad import grad as grad
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Final


class LazyNames:
    """The names in the stub of a package, for its ``__all__``, ``__getattr__`` and ``__dir__``.

    Attributes:
        homes: of each name the module that defines it; the package itself, where the name is that of a module in it.

    Args:
        package: its name.
        file: its ``__init__.py``.
    """

    def __init__(self, package: str, file: str) -> None:
        stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
        imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        self._package: Final = package
        self.homes: Final = {alias.name: node.module or "" for node in imports for alias in node.names}

    def load(self, name: str) -> object:
        """What a name stands for; from then on the package has it.

        Raises:
            AttributeError: it is not in the stub.
        """
        home = self.homes.get(name)
        if home is None:
            package = sys.modules[self._package]  # Python looks in it for a name that is spelt like this one
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}", name=name, obj=package)
        if home == self._package:
            return import_module(f"{home}.{name}")
        value: object = getattr(import_module(home), name)
        setattr(sys.modules[self._package], name, value)
        return value

    def listed(self) -> list[str]:
        """All names of the package, loaded or not."""
        return sorted({*vars(sys.modules[self._package]), *self.homes})
