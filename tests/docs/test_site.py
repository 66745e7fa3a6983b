"""The site is built as it is published: no dead link, nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the site needs irad[docs]")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_pages_are_there(site: Path):
    assert (site / "index.html").is_file()
    assert (site / "folders" / "passes.html").is_file(), "a README that a guide links to"


def test_the_gallery_embeds_a_report(site: Path):
    assert '<iframe src="reports/energy.html"' in (site / "gallery.html").read_text(encoding="utf-8")
    report = (site / "reports" / "energy.html").read_text(encoding="utf-8")
    assert len(report) < 300_000
    assert "total += np.exp(x[i]) * x[i]" in report


def test_links_within_the_site_lead_somewhere(site: Path):
    missing = []
    for page in site.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if "://" not in target and not target.startswith(("data:", "mailto:", "/")):
                if not (page.parent / target).exists() and page.name != "404.html":
                    missing.append(f"{page.relative_to(site)} → {target}")
    assert missing == []


def test_pages_are_plain_markdown():
    """No admonitions, tabs, attributes or icons of one generator; the reference names what mkdocstrings is to show."""
    special = re.compile(r"^\s*(!!!|\?\?\?|=== \")|^[^`]*\{ ?[:.#][\w-]|:material-", re.MULTILINE)
    pages = (ROOT / "docs").rglob("*.md")
    texts = {page.name: re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL) for page in pages}
    assert [name for name, text in texts.items() if special.search(text)] == []


def test_pages_load_nothing_from_elsewhere(site: Path):
    loads = re.compile(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="(https?:)?//')
    assert [page.name for page in site.rglob("*.html") if loads.search(page.read_text(encoding="utf-8"))] == []


def test_the_reference_shows_what_the_docstrings_say(site: Path):
    page = (site / "reference" / "derivatives.html").read_text(encoding="utf-8")
    assert "has_aux" in page
    assert "SignatureError" in page


def test_the_reference_shows_examples_as_code(site: Path):
    pages = [page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")]
    assert not any("<blockquote>" in page for page in pages), "mkdocstrings knows Examples:, not Example:"
    assert sum(page.count('<span class="gp">&gt;&gt;&gt; </span>') for page in pages) > 100
