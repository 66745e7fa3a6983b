"""A hook of MkDocs: names of irad in the pages and docstrings become links to their entries in the reference, and back.

Pages stay plain Markdown. A page links a name where its text first mentions it; the names that only its examples use
stand in a line at its end. Each entry of the reference ends with the guides that its section, or its page, names under
"See also".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
ENTRY = re.compile(r"^::: (\S+)\n(?: +\S.*\n)*", re.MULTILINE)
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_SEE_ALSO = re.compile(r"^See also: .*?(?=\n\n)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^from (irad[\w.]*) import (.+)$", re.MULTILINE)
_NAME = re.compile(r"\birad(?:\.\w+)+")
_HTML = re.compile(
    r"(<pre.*?</pre>|<a[ >].*?</a>|<h[1-6].*?</h[1-6]>|<code>irad(?:\.\w+)+(?:\([^<]*\))?</code>)", re.DOTALL
)


def public(identifier: str) -> str:
    """The name that users write: a function in a module of the same name is imported from the package."""
    return re.sub(r"\.(\w+)\.\1$", r".\1", identifier)


def entries() -> dict[str, tuple[str, str]]:
    """The page and the anchor of each entry of the reference, by its public name."""
    return {
        public(match[1]): (f"reference/{page.name}", match[1])
        for page in sorted(REFERENCE.glob("*.md"))
        for match in ENTRY.finditer(page.read_text(encoding="utf-8"))
    }


def names_in_examples(markdown: str) -> set[str]:
    """Public names that the examples of a page use."""
    found = set()
    for example in _EXAMPLE.findall(markdown):
        names = _NAME.findall(example)
        names += [
            f"{module}.{name.strip()}" for module, listed in _IMPORT.findall(example) for name in listed.split(",")
        ]
        found |= {entry for name in names for entry in _prefixes(name)[:1]}
    return found


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Adds to the entries of the reference the guides, and to a guide the names that only its examples use."""
    uri = page.file.src_uri
    if uri.startswith("reference/"):
        return "".join(_with_guides(section, markdown) for section in _SECTION.split(markdown))
    mentioned = set(re.findall(r"`(irad(?:\.\w+)+)(?:\([^`]*\))?`", _EXAMPLE.sub("", markdown)))
    only_used = sorted(names_in_examples(markdown) - mentioned)
    if not only_used:
        return markdown
    return f"{markdown}\n\n---\n\nUsed here: {', '.join(f'`{name}`' for name in only_used)}.\n"


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Makes links of names: in the reference of all, in a guide of the first mention of each."""
    uri, seen = page.file.src_uri, set()

    def linked(part: str) -> str:
        name = part.removeprefix("<code>").removesuffix("</code>").partition("(")[0]
        found = _prefixes(name)[:1] if part.startswith("<code>") else []
        if not found or (found[0] in seen and not uri.startswith("reference/")):
            return part
        seen.add(found[0])
        target, anchor = _ENTRIES[found[0]]
        url = get_relative_url(files.get_file_from_path(target).url, page.url)
        return f'<a href="{url}#{anchor}">{part}</a>'

    return "".join(map(linked, _HTML.split(html)))


def _with_guides(section: str, page: str) -> str:
    """A section of the reference with its guides, or those of the page, below each of its entries."""
    guides = _SEE_ALSO.search(section) or _SEE_ALSO.search(page)
    if guides is None or ENTRY.search(section) is None:
        return section
    return ENTRY.sub(lambda entry: f"{entry[0]}\n{guides[0]}\n\n", section.replace(guides[0], "", 1))


def _prefixes(name: str) -> list[str]:
    """The entries that a name belongs to, the longest first: of ``irad.Reverse.is_forward`` it is ``irad.Reverse``."""
    return [prefix for prefix in _shortened(name) if prefix in _ENTRIES]


def _shortened(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


_ENTRIES = entries()
