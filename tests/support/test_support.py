"""Every line of the catalogue; the table in docs/ says the same; nothing of Numba's reference is missing.

``IRAD_SUPPORT=all`` tests all lines under both plans (minutes). By default every sixth line is tested under one.
"""

from __future__ import annotations

import os

import pytest

from tests.support.entries import Entry
from tests.support.reference import names
from tests.support.table import GROUPS, PATH, table
from tests.support.uses import check

COMPLETE = os.environ.get("IRAD_SUPPORT") == "all"
ENTRIES = [entry for group in GROUPS for entry in group.entries]


@pytest.mark.parametrize("entry", ENTRIES if COMPLETE else ENTRIES[::6], ids=str)
def test_entry(entry: Entry):
    check(entry, plans=("default", "save_all") if COMPLETE else ("default",))


def test_the_table_says_what_is_tested():
    assert PATH.read_text() == table(), "run scripts/make_support_table.py"


def test_nothing_of_numba_is_missing():
    listed = {name for entry in ENTRIES for name in entry.names}
    assert sorted(names() - listed) == []


def test_names_are_listed_once():
    listed = [name for entry in ENTRIES for name in entry.names]
    assert sorted(name for name in set(listed) if listed.count(name) > 1) == []
