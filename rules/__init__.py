"""The built-in rules. ``ALL`` is what a default registry holds; `irad.rules.builtin` is that registry.

``irad.rules`` is also where users find what they need to write rules of their own; see `irad.api.custom`. The names
are those of the stub beside this file, and load on first use, since the rules themselves know nothing of a compiler.
"""

from __future__ import annotations

from irad.lazy import offered

_NAMES = offered(__name__)
__all__ = sorted(_NAMES.origins)
__dir__ = _NAMES.listed
__getattr__ = _NAMES.load
