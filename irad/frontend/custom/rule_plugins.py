"""Rules that other distributions ship: entry points of the group ``irad.rules``, loaded before the first derivative.

Input   the entry points of the installed distributions. Each names a module, which registers rules when it is imported,
        or a function in one, which registers them when it is called.
Output  the rules in the catalogue.
Method  once in a process, in the order of the distributions' names. Rules registered by hand before that win over
        plug-ins; of two plug-ins with a rule for one function the first wins, with a warning. If a plug-in raises,
        everything that it registered is withdrawn, with a warning; the others are still loaded.

So a distribution has rules without depending on irad: nothing else imports its module.
"""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import name_of

GROUP: Final = "irad.rules"

_loaded: Final[list[EntryPoint]] = []
_begun: Final[list[bool]] = []


class PackWarning(UserWarning):
    """Rules of an installed distribution are not used."""


def load() -> None:
    """Loads all plug-ins, once."""
    if _begun:  # a plug-in may itself take derivatives while it is imported
        return
    _begun.append(True)
    owners: dict[object, EntryPoint] = {}
    for plugin in sorted(entry_points(group=GROUP), key=lambda each: (distribution_of(each), each.name)):
        _load_one(plugin, owners)


def loaded() -> tuple[str, ...]:
    """Distributions whose plug-ins were loaded."""
    return tuple(dict.fromkeys(map(distribution_of, _loaded)))


def distribution_of(plugin: EntryPoint) -> str:
    """The name of the distribution that an entry point belongs to."""
    return plugin.dist.name if plugin.dist is not None else "?"


def _load_one(plugin: EntryPoint, owners: dict[object, EntryPoint]) -> None:
    try:
        with catalogue.empty() as declared:
            found = plugin.load()
            if plugin.attr:
                found()
    except Exception as error:  # whatever a stranger's module raises must not keep others from being differentiated
        warnings.warn(
            f"the rules of the distribution {distribution_of(plugin)!r} (entry point {plugin.name} = {plugin.value}) "
            f"cannot be loaded: {type(error).__name__}: {error}. Functions are differentiated without them; correct, "
            f"update or uninstall {distribution_of(plugin)}",
            PackWarning,
            stacklevel=2,
        )
        return
    _loaded.append(plugin)
    known = {rule.target for rule in catalogue.rules()}
    for target, table in declared.items():
        if target not in known:
            owners[target] = plugin
            catalogue.add(target, table)
        elif target in owners:
            warnings.warn(
                f"the distributions {distribution_of(owners[target])!r} and {distribution_of(plugin)!r} both have a "
                f"rule for {name_of(target)}; that of {distribution_of(owners[target])!r} is used",
                PackWarning,
                stacklevel=2,
            )
