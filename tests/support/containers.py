"""Lists, sets, dictionaries, typed containers, strings."""

from __future__ import annotations

from tests.support.entries import Group, compiled, constant, yes

_DICT = "z = Dict(); z[1] = x[0]; z[2] = u * v; "
_TYPED = "z = List(); z.append(x[0]); z.append(u * v); z.append(v); "

LISTS = Group(
    "Python: lists",
    (
        yes("list.append list.extend list.insert", "z = [u, v]; z.append(u * v); z.extend(x); z.insert(1, x[0] * u); z[0] * z[1] + z[3] * z[4]"),
        yes("list.pop list.remove list.clear", "z = [u, v, u * v]; s = z.pop() * z.pop(0); z.remove(v); z.clear(); s + len(z)"),
        yes("list.copy list.reverse", "z = [u, v, u * v]; w = z.copy(); w.reverse(); z[0] * w[0]"),
        constant("list.count list.index", "z = [1, 2, n]; z.count(2) + z.index(2)"),
        yes("list.sort", "z = [v, u, u * v]; z.sort(); z[0] + 2.0 * z[1] + 3.0 * z[2]"),
    ),
    "Created inside the function or passed as arguments.",
)  # fmt: skip

TYPED_LISTS = Group(
    "Numba: typed.List",
    (
        yes("typed.List typed.List.append typed.List.pop", _TYPED + "z[0] * z.pop()"),
        yes("typed.List.extend typed.List.insert", _TYPED + "z.extend(z.copy()); z.insert(0, u); z[0] * z[-1]"),
        yes("typed.List.clear typed.List.remove", _TYPED + "s = z[0]; z.remove(z[1]); z.clear(); s"),
        yes("typed.List.copy typed.List.reverse typed.List.sort", _TYPED + "w = z.copy(); w.sort(); w.reverse(); w[0] * z[0]"),
        compiled(yes("typed.List.getitem_unchecked", _TYPED + "z.getitem_unchecked(1)")),
        constant("typed.List.count typed.List.index typed.List.empty_list", "z = List.empty_list(numba.int64); z.append(n); z.count(n) + z.index(n)"),
    ),
    "Created inside the function or passed as arguments.",
)  # fmt: skip

TYPED_DICTS = Group(
    "Numba: typed.Dict",
    (
        yes("typed.Dict typed.Dict.get typed.Dict.setdefault", _DICT + "z.get(2, u) * z.setdefault(1, v)"),
        yes("typed.Dict.pop typed.Dict.popitem typed.Dict.clear", _DICT + "s = z.pop(2); t = z.popitem()[1]; z.clear(); s * t"),
        yes("typed.Dict.copy typed.Dict.update", _DICT + "w = z.copy(); w.update(z); w[1] * w[2]"),
        yes("typed.Dict.items typed.Dict.values", _DICT + "s = 0.0;for a in z.values(): s += a * a;for i, a in z.items(): s += i * a;s"),
        constant("typed.Dict.keys typed.Dict.empty", "z = Dict.empty(numba.int64, numba.int64); z[1] = n; s = 0;for i in z.keys(): s += i;s"),
    ),
    "Created inside the function or passed as arguments.",
)  # fmt: skip

SETS = Group(
    "Python: sets; Numba: typed.Set",
    (
        yes("set.add set.clear set.copy set.discard set.pop set.remove set.update",
            "z = {x[0], u}; z.add(u * v); w = z.copy(); w.update({v}); w.discard(u); w.remove(x[0]); s = 0.0;for a in w: s += a * a;w.discard(v); s *= w.pop(); w.clear(); s + len(z)"),
        yes("set.difference set.intersection set.symmetric_difference set.union",
            "z = {u, v}; w = {u, u * v}; s = 0.0;for a in z.difference(w): s += a;for a in z.intersection(w): s += a * a;for a in z.union(w): s += a ** 3;for a in z.symmetric_difference(w): s += a * u;s"),
        yes("set.difference_update set.intersection_update set.symmetric_difference_update",
            "z = {u, v, x[0]}; w = {u, u * v}; z.difference_update({x[0]}); z.symmetric_difference_update(w); z.intersection_update({v, u * v, x[0]}); s = 0.0;for a in z: s += a * a;s"),
        constant("set.isdisjoint set.issubset set.issuperset", "z = {1, n}; w = {1, 3, n}; z.isdisjoint(w) + z.issubset(w) + z.issuperset(w)"),
        compiled(constant("typed.Set.add typed.Set.copy typed.Set.discard typed.Set.empty",
                 "z = Set.empty(numba.int64); z.add(n); w = z.copy(); w.discard(n); len(z) + 3 * len(w)")),
    ),
)  # fmt: skip

STRINGS = Group(
    "Python: strings and bytes",
    (
        constant("str.capitalize str.casefold str.lower str.swapcase str.title str.upper",
                 "len(t.capitalize() + t.casefold() + t.lower() + t.swapcase() + t.title() + t.upper())"),
        constant("str.center str.ljust str.rjust str.zfill str.expandtabs",
                 "len(t.center(20) + t.ljust(21) + t.rjust(22) + t.zfill(23) + t.expandtabs())"),
        constant("str.count str.find str.index str.rfind str.rindex str.endswith str.startswith",
                 "t.count('a') + t.find('d') + t.index('d') + t.rfind('e') + t.rindex('t') + t.endswith('t') + t.startswith('g')"),
        constant("str.isalnum str.isalpha str.isascii str.isdecimal str.isdigit str.isidentifier str.islower str.isnumeric "
                 "str.isprintable str.isspace str.istitle str.isupper",
                 "(t.isalnum() + t.isalpha() + t.isascii() + t.isdecimal() + t.isdigit() + t.isidentifier() + t.islower()"
                 " + t.isnumeric() + t.isprintable() + t.isspace() + t.istitle() + t.isupper())"),
        constant("str.join str.partition str.replace str.rpartition str.rsplit str.split str.splitlines",
                 "(len(t.join(['a', 'b'])) + len(t.partition('d')[0]) + len(t.replace('a', 'bb')) + len(t.rpartition('d')[2])"
                 " + len(t.rsplit('d')) + len(t.split('d')) + len(t.splitlines()))"),
        constant("str.lstrip str.rstrip str.strip", "len(t.lstrip('g')) + len(t.rstrip('t')) + len(t.strip('g'))"),
        constant("str-operators", "len(t + 'x') + len(t * 2) + len(t[1:3]) + ('d' in t) + (t == 'x') + (t < 'x') + len(f'{n}')"),
        compiled(constant("bytes.center bytes.endswith bytes.find bytes.isascii bytes.join bytes.ljust bytes.lstrip bytes.rfind "
                 "bytes.rjust bytes.rstrip bytes.split bytes.startswith bytes.strip bytes.zfill",
                 "z = b'gradient'; z.isascii() + len(z.strip())")),
        constant("memoryview.contiguous memoryview.c_contiguous memoryview.f_contiguous memoryview.itemsize memoryview.nbytes "
                 "memoryview.ndim memoryview.readonly memoryview.shape memoryview.strides",
                 "(M.contiguous + M.c_contiguous + M.f_contiguous + M.itemsize + M.nbytes + M.ndim + M.readonly + M.shape[0]"
                 " + M.strides[0])"),
    ),
    "Strings carry no derivative; any method may be used.",
)  # fmt: skip

GROUPS = (LISTS, TYPED_LISTS, TYPED_DICTS, SETS, STRINGS)
