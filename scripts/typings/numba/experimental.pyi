"""Classes for compiled code."""

from typing import Any

structref: Any

def jitclass(cls_or_spec: Any = ..., spec: Any = ...) -> Any: ...
