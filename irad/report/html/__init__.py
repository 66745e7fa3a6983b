"""A report as one HTML page that needs nothing else: no network, no server, no files beside it.

    page.html           what is drawn at once: heading, panels, call graph (Jinja2)
    style.css           both themes
    *.js                the parts that move, in the order of `_SCRIPTS`; no framework
    payload, graph      the data of the page, the drawing of the call graph

The page forbids itself every request (Content-Security-Policy), so what it shows stays on the machine.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from irad.errors import IradError
from irad.options import Options
from irad.report.html import payload
from irad.report.model import KernelCode, Report
from irad.report.shown.amounts import count, format_bytes, format_seconds, short_signature
from irad.report.tape_size import formula, tape_total
from irad.versions import install

_HERE = Path(__file__).parent
_SCRIPTS = ("text.js", "list.js", "source.js", "stages.js", "details.js", "search.js", "main.js")


def render(report: Report) -> str:
    """The page of a report.

    Raises:
        IradError: Jinja2 is not installed.
    """
    template = _environment().get_template("page.html")
    return str(
        template.render(
            report=report,
            drawing=payload.draw(report.functions),
            summary=summary(report),
            options="" if report.options == str(Options()) else report.options,
            signature=short_signature(report.signature),
            head=_raw(payload.script_json(payload.head(report))),
            blocks={name: _raw(text) for name, text in payload.blocks(report).items()},
            style=_raw(_read("style.css")),
            script=_raw("\n".join(_read(name) for name in _SCRIPTS)),
        )
    )


def notebook(report: Report, height: int = 760) -> str:
    """The page as an element of another one, as notebooks show it; what it runs cannot reach the page around."""
    page = html.escape(render(report), quote=True)
    frame = f"width:100%;height:{height}px;border:1px solid #8884;border-radius:6px"
    return f'<iframe title="irad report" sandbox="allow-scripts" style="{frame}" srcdoc="{page}"></iframe>'


def summary(report: Report) -> list[tuple[str, str]]:
    """Figures in the heading of the page: pairs of a name and a number."""
    if report.refusals:
        return [("not differentiated", count(len(report.refusals), "problem"))]
    total = tape_total(report)
    known = report.functions and total is not None
    tape = ("tape of this call", format_bytes(total or 0)) if known else ("tape", " + ".join(formula(report)))
    return [*_times(report), tape, *((code.arch, _code(code)) for code in report.code)]


def _code(code: KernelCode) -> str:
    spilled = f", {format_bytes(code.spilled)} spilled" if code.spilled else ""
    return f"{code.registers} registers{spilled}"


def _times(report: Report) -> list[tuple[str, str]]:
    """Duration of a profiled call, in each sweep, and beside the plain function."""
    times = report.times
    if times is None:
        return []
    forward, reverse = (times.seconds * share for share in (1.0 - times.reverse_share, times.reverse_share))
    return [
        ("gradient", format_seconds(times.seconds)),
        ("forward / reverse", f"{format_seconds(forward)} / {format_seconds(reverse)}"),
        (
            "times the function",
            f"{times.ratio:{'.1f' if times.ratio >= 0.1 else '.2g'}}× of {format_seconds(times.primal_seconds)}",
        ),
    ]


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _raw(text: str) -> Any:
    """Text that is inserted as it stands."""
    from markupsafe import Markup  # of Jinja2, which is optional

    return Markup(text)


def _environment() -> Any:
    try:
        import jinja2  # only the page needs it
    except ImportError as error:
        raise IradError(
            "the HTML report needs Jinja2",
            f"install it: {install('report')}",
            "the page is written from a template",
        ) from error
    loader = jinja2.FileSystemLoader(_HERE)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
