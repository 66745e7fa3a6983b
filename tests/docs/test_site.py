"""The site is built as it is published: no dead link, nothing from elsewhere."""

from __future__ import annotations

import html
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


def test_anchors_within_the_site_exist(site: Path):
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    dead = []
    for page, text in pages.items():
        for target, anchor in re.findall(r'href="([^":#]*)#([^"]+)"', text):
            goal = (page.parent / target).resolve() if target else page
            if page.name != "404.html" and not anchor.startswith("__") and anchor not in anchors.get(goal, {anchor}):
                dead.append(f"{page.relative_to(site)} → {target}#{anchor}")
    assert dead == []


ENTRY = re.compile(r'<h3 id="(irad\.[^"]+)"')


def test_every_entry_has_an_example_and_a_guide(site: Path):
    bare = []
    for page in sorted((site / "reference").glob("*.html")):
        _, *parts = ENTRY.split(page.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if "&gt;&gt;&gt;" not in text or "See also: <a" not in text:
                bare.append(name)
    assert bare == []


def test_the_reference_shows_no_module_and_no_inner_function(site: Path):
    pages = [page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")]
    shown = [name for page in pages for name in ENTRY.findall(page)]
    listed = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").iterdir())
    assert sorted(shown) == sorted(re.findall(r"^::: (\S+)$", listed, re.MULTILINE))
    assert not any("doc-module" in page for page in pages)


def test_signatures_are_wrapped(site: Path):
    """Ruff formats them: a long one has a parameter on each line, which fits beside both side bars."""
    for page in (site / "reference").glob("*.html"):
        for signature in re.findall(
            r'class="doc-signature[^>]*>(.*?)</code>', page.read_text(encoding="utf-8"), re.DOTALL
        ):
            lines = html.unescape(re.sub(r"<[^>]+>", "", signature)).splitlines()
            assert max(map(len, lines)) <= 80, lines


def test_guides_and_reference_link_each_other(site: Path):
    guide = (site / "how_to" / "jacobians.html").read_text(encoding="utf-8")
    assert 'href="../reference/derivatives.html#irad.jacobian"' in guide
    entry = (site / "reference" / "derivatives.html").read_text(encoding="utf-8").partition('<h3 id="irad.jacobian"')[2]
    assert 'href="../how_to/jacobians.html"' in entry.partition("<h3")[0]
    assert "Used here: <a" in (site / "tutorial.html").read_text(encoding="utf-8")


def test_the_reference_shows_what_the_docstrings_say(site: Path):
    page = (site / "reference" / "derivatives.html").read_text(encoding="utf-8")
    assert "has_aux" in page
    assert "SignatureError" in page


def test_the_reference_shows_examples_as_code(site: Path):
    pages = [page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")]
    assert not any("<blockquote>" in page for page in pages), "mkdocstrings knows Examples:, not Example:"
    assert sum(page.count('<span class="gp">&gt;&gt;&gt; </span>') for page in pages) > 100
