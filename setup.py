"""Build step that pyproject.toml cannot state: in a source distribution irad/passes and irad/rules are links, too."""

from __future__ import annotations

import os
import shutil

from setuptools import setup
from setuptools.command.sdist import sdist


class SourceDistribution(sdist):
    """setuptools follows links, and so would put two copies of these folders into the archive."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """The folder that is packed."""
        super().make_release_tree(base_dir, files)
        for name in ("passes", "rules"):
            link = os.path.join(base_dir, "irad", name)
            shutil.rmtree(link)
            os.symlink(f"../{name}", link)


setup(cmdclass={"sdist": SourceDistribution})
