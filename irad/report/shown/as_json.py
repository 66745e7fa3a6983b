"""Reports as JSON. The schema is the model: objects have the fields of its classes, places are objects, too.

`FORMAT` changes when a field is renamed, removed or means something else; a new field does not change it.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping
from typing import Any

from irad.report.model import Report

FORMAT = 2


def to_json(report: Report, **more: Any) -> str:
    """A report as JSON text.

    Args:
        report: the report.
        more: further members of the outermost object.
    """
    return json.dumps({"format": FORMAT, **_plain(report), **_plain(more)}, indent=1, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
