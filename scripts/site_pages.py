"""A hook of MkDocs: what the guides link to outside of docs/ becomes part of the site.

The READMEs of folders become pages of their own, in ``folders/``. Links to other files of the repository, which a
reader of the site does not have, become the names of these files. The reports in ``reports/`` are made by irad.
"""

from __future__ import annotations

import functools
import os.path
import re
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_REPORTS = {  # arguments of `irad inspect`; a page of 100 kB each, too much for the repository
    "reports/energy.html": ("docs/examples/energy.py:energy", "--args", "np.linspace(0.0, 1.0, 100_000)", "--profile"),
}


def on_files(files: Any, config: Any) -> Any:
    """Adds the reports, and a page for each README that a page links to, directly or through another."""
    for uri, arguments in _REPORTS.items():
        files.append(File.generated(config, uri, content=_report(arguments)))
    pending = [(file.src_uri, Path(file.abs_src_path).read_text(encoding="utf-8")) for file in files if _is_page(file)]
    while pending:
        uri, text = pending.pop()
        for _, target, _ in _LINK.findall(_CODE.sub("", text)):
            path = _repository_path(uri, target)
            page = _page_of(path)
            if page is not None and files.get_file_from_path(page) is None:
                content = (ROOT / path).read_text(encoding="utf-8")
                files.append(File.generated(config, page, content=content))
                pending.append((page, content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Makes links point to pages of the site."""
    uri = page.file.src_uri

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = _repository_path(uri, target)
        inside = path[len("docs/") :] if path.startswith("docs/") else _page_of(path)
        if inside is None:
            return text if text.startswith("`") else f"{text} (`{path}`)"
        return f"[{text}]({os.path.relpath(inside, os.path.dirname(uri) or '.')}{anchor or ''})"

    parts = re.split(f"({_CODE.pattern})", markdown, flags=re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(replaced, part) for part in parts)


@functools.cache  # `mkdocs serve` builds again after each change
def _report(arguments: tuple[str, ...]) -> str:
    """The page that `irad inspect` makes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        command = [sys.executable, "-m", "irad", "inspect", *arguments, "--html", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PluginError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return file.read_text(encoding="utf-8")


def _is_page(file: Any) -> bool:
    return bool(file.src_uri.endswith(".md")) and file.abs_src_path is not None


def _repository_path(uri: str, target: str) -> str:
    """The file in the repository that a link of a page points to."""
    return os.path.normpath(os.path.join(os.path.dirname(_home_of(uri)), target))


def _home_of(uri: str) -> str:
    """The file in the repository that a page is made of."""
    if not uri.startswith("folders/"):
        return f"docs/{uri}"
    stem = PurePosixPath(uri).stem
    return "README.md" if stem == "readme" else f"{stem.replace('.', '/')}/README.md"


def _page_of(path: str) -> str | None:
    """The page that a README outside of docs/ becomes; None for other files, and for what is not there."""
    if path.startswith("docs/") or not path.endswith("README.md") or not (ROOT / path).is_file():
        return None
    folder = path.removesuffix("README.md").strip("/")
    return f"folders/{folder.replace('/', '.') or 'readme'}.md"
