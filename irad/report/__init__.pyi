"""The names of irad.report. This is what `irad.lazy` reads, so each name is written once."""

from irad.report.inspection import Inspection as Inspection, inspect as inspect

__all__: list[str]
