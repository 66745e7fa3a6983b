"""Writes the code of a function over structures: out of place, in place, or reading only.

Input   what the first structure holds, the names of all structures, what is done for a vector.
Output  statements, and the names of the results.
Method  the fold of `irad.data.recursive.fold` over the tree of the type of the first structure. Tuples are taken apart,
        lists and dictionaries get a loop. An object that may be found twice is looked up among those of its type,
        and its result is reused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from numba.core import types
from numba.typed import List

from irad.data.recursive.fold import Form, Treatment, steps
from irad.frontend.generated import function_from
from irad.frontend.structures import identity, kinds, vectors
from irad.frontend.structures.kinds import NUMBER, OPTIONAL, is_storage, kind_of, members_of
from irad.frontend.values import instances, tree
from irad.records import dataclass

# The text of a function that is being written.


class Source:
    """Lines of a function, with the names that they use.

    Args:
        head: the parameters as they are written.
        scope: names that the code can use.
    """

    def __init__(self, head: str, scope: dict[str, Any]) -> None:
        self._lines = [f"def structured({head}):"]
        self._depth, self._count = 1, 0
        self._scope = dict(scope)
        self._constants: dict[Any, str] = {}

    def line(self, text: str) -> None:
        """Adds a statement, if there is one."""
        if text:
            self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Indents what is added within below a header."""
        self.line(header)
        self._depth += 1
        at = len(self._lines)
        yield
        if len(self._lines) == at:
            self.line("pass")
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self._count += 1
        return f"{prefix}_{self._count}"

    def variable(self, prefix: str, text: str) -> str:
        """The name of a new variable with a value."""
        name = self.fresh(prefix)
        self.line(f"{name} = {text}")
        return name

    def constant(self, value: Any, prefix: str) -> str:
        """The name of something that is known when the function is written."""
        if value not in self._constants:
            self._constants[value] = self.fresh(prefix)
            self._scope[self._constants[value]] = value
        return self._constants[value]

    def text(self) -> str:
        """The function as it is by now."""
        return "\n".join(self._lines) + "\n"

    def function(self, file: str) -> Callable[..., Any]:
        """The function."""
        return function_from("structured", self.text(), file, self._scope)


_MOST_COMPARED: Final = 8  # objects of one type, which are compared one by one

_HELPERS: Final = (
    *(identity.key, identity.same, identity.holds_nothing, identity.row_of, identity.enter, identity.is_entered),
    *(
        identity.roomy,
        kinds.check_input,
        kinds.check_output,
        kinds.check_read,
        kinds.check_members,
        kinds.in_layout_of,
    ),
    *(identity.as_type, identity.stack_words, instances.copied_instance, vectors.copied, List),
)
SCOPE: Final[dict[str, Any]] = {helper.__name__: helper for helper in _HELPERS}
"""Functions that the written code calls, by name."""


@dataclass(frozen=True)
class Operation:
    """An operation on the vectors at one place, as functions from the type of a vector to code.

    In it, ``{0}`` is the vector of the first structure, ``{1}`` that of the second one.

    Attributes:
        number: the expression of the result from numbers; a tuple, where there are several results.
        array: that of a new array.
        write: the statement that overwrites the array ``{out}``.
        read: a statement for vectors, where there are no results.
        then: a statement that follows in any case.
    """

    number: Callable[[Any], str] = lambda numba_type: ""
    array: Callable[[Any], str] = lambda numba_type: ""
    write: Callable[[Any], str] = lambda numba_type: ""
    read: Callable[[Any], str] = lambda numba_type: ""
    then: str = ""


@dataclass
class _Group:
    """The objects of one type.

    Attributes:
        type: type of the result for the first one.
        places: number of places for them in the structure.
        is_counted: whether there is just one at each place, known before the code runs.
        is_made: whether new ones are made.
        met: the names of those that have been met, and of their results.
        rows: the name of the table.
        owners: that of the table of objects that are overwritten, with the numbers of their places in the other table.
        made: the names of the lists of results.
    """

    type: Any
    places: int = 0
    is_counted: bool = True
    is_made: bool = False
    met: list[tuple[Sequence[str], Sequence[str]]] = field(default_factory=list)
    rows: str = ""
    owners: str = ""
    made: Sequence[str] = ()

    @property
    def is_single(self) -> bool:
        return self.places == 1 and self.is_counted

    @property
    def has_table(self) -> bool:
        return not self.is_counted or self.places > _MOST_COMPARED


@dataclass
class _Place:
    """A part of the first structure, with the code of what is there in all structures.

    Attributes:
        content: its description.
        inputs: expressions of the part in all structures that are read.
        outputs: those in the ones that are overwritten; None where new ones are made.
        code: the way to it from what holds it.
        stays: whether outputs keep what they hold there.
        results: expressions of what takes its place, once they are known.
    """

    content: tree.Content
    inputs: Sequence[str]
    outputs: Sequence[str] | None
    code: str = ""
    stays: bool = False
    results: Sequence[str] = ()


class Walk(Form[_Place, _Place, Sequence[str]]):
    """One walk.

    Args:
        source: the text that is written to.
        operation: operation on vectors.
        first: the value in the first structure.
        values: number of structures read.
        results: number of structures made or overwritten.
        is_checked: whether the code checks that they are alike and share the same.
        is_written: whether some are going to be overwritten.
        checked_outputs: how many these are, the last ones of all; none means that it is the first one.
        in_place: whether outputs are given.
        keeps: whether numbers in tuples, and read-only arrays, stay as they are.
    """

    def __init__(
        self,
        source: Source,
        operation: Operation,
        first: tree.Content,
        *,
        values: int = 1,
        results: int = 0,
        is_checked: bool = False,
        is_written: bool = False,
        checked_outputs: int = 0,
        in_place: bool = False,
        keeps: bool = False,
    ) -> None:
        self._source, self._operation, self._results = source, operation, results
        self._values, self._outputs, self._is_checked, self._keeps = values, checked_outputs, is_checked, keeps
        self._is_written, self._is_read_again, self._in_place = is_written, False, in_place
        self._groups: dict[Any, _Group] = {}
        self._count(first, True)
        for group in self._groups.values():
            if group.has_table:
                self._open(group)

    def visit(self, content: tree.Content, inputs: Sequence[str], outputs: Sequence[str] | None) -> Sequence[str]:
        """Writes what is done for one part.

        Args:
            content: content of the first structure.
            inputs: expressions of the part in all structures that are read.
            outputs: those in the ones that are overwritten; None where new ones are made.

        Returns:
            Expressions of the results.
        """
        if tree.has_derivative(content):
            if kind_of(content).is_object:
                return self._object(content, self._named(inputs), None if outputs is None else self._named(outputs))
            if isinstance(content, tree.OptionalContent):
                return self._optional(content, self._named(inputs), outputs)
        return self._body(content, inputs, outputs)

    def _body(self, content: tree.Content, inputs: Sequence[str], outputs: Sequence[str] | None) -> Sequence[str]:
        place = _Place(content, inputs, outputs)
        for member in steps(self, place):
            if member.stays and member.outputs is not None:
                member.results = member.outputs
            else:
                member.results = self.visit(member.content, member.inputs, member.outputs)
        return place.results

    def _named(self, texts: Sequence[str]) -> Sequence[str]:
        return [text if text.isidentifier() else self._source.variable("x", text) for text in texts]

    def _line(self, text: str, inputs: Sequence[str], **names: str) -> None:
        self._source.line(text.format(*inputs, **names))

    def _made(self, expression: str, inputs: Sequence[str], numba_type: types.Type) -> Sequence[str]:
        """Variables with the results of an operation for one vector."""
        found, wanted = expression.format(*inputs), self._source.constant(numba_type, "type")
        if self._results == 1:
            return [self._source.variable("made", f"as_type({found}, {wanted})")]
        several = self._source.variable("made", found)
        return [self._source.variable("made", f"as_type({several}[{i}], {wanted})") for i in range(self._results)]

    def _then(self, inputs: Sequence[str]) -> None:
        if self._operation.then:
            self._line(self._operation.then, inputs)

    # --- the fold -----------------------------------------------------------------------------------------------------

    def treatment(self, place: _Place) -> Treatment:
        """As the type tells."""
        return kind_of(place.content).treatment if tree.has_derivative(place.content) else Treatment.KEPT

    def kept(self, place: _Place) -> Sequence[str]:
        """The first input, or the given outputs, unchanged."""
        return place.outputs or [place.inputs[0]] * self._results

    def vector(self, place: _Place) -> Sequence[str]:
        """The operation for a number or an array."""
        if place.content.is_array:
            return self._array(place.content, place.inputs, place.outputs)
        return self._number(place.content, place.inputs)

    def viewed(self, place: _Place) -> Sequence[str]:
        """Fields are views of the same memory; a copy of all of it is overwritten where something new is wanted."""
        content, inputs, outputs = place.content, place.inputs, place.outputs
        if outputs is None:
            wanted = self._source.constant(_new_type(content), "type")
            copy = f"as_type(copied({inputs[0]}), {wanted})"
            outputs = [self._source.variable("made", copy) for _ in range(self._results)]
        for member in members_of(content):
            part, way = member.content, member.code
            if not tree.has_derivative(part):
                continue
            fields, given = self._named([each + way for each in inputs]), [each + way for each in outputs]
            if part.has_memory:
                self._body(part, fields, self._named(given))
            else:
                self._set(given, self._number(part, fields))
        return outputs

    def begun(self, place: _Place) -> Sequence[str]:
        """The given outputs, or variables with copies."""
        if place.outputs is not None:
            return place.outputs
        copy = kind_of(place.content).copied.format(place.inputs[0])
        return [self._source.variable("made", copy) for _ in range(self._results)]

    def members(self, place: _Place, begun: Sequence[str] | None) -> Iterator[_Place]:
        """The members, within a loop where the kind has one."""
        kind = kind_of(place.content)
        found = kind.members(place.content)
        if begun is not None:
            found = [each for each in found if tree.has_derivative(each.content)]
        if not kind.loop:
            yield from [self._member(place, each.content, each.code, is_built=begun is None) for each in found]
            return
        key = self._source.fresh("i")
        with self._source.block(f"for {key} in {kind.loop.format(place.inputs[0])}:"):
            for each in found:
                yield self._member(place, each.content, f"[{key}]", is_built=False)

    def _member(self, place: _Place, content: tree.Content, code: str, *, is_built: bool) -> _Place:
        outputs = [each + code for each in place.outputs] if place.outputs else None
        stays = is_built and self._keeps and outputs is not None and kind_of(content) in (NUMBER, OPTIONAL)
        return _Place(content, [each + code for each in place.inputs], outputs, code, stays)

    def store(self, place: _Place, member: _Place, begun: Sequence[str]) -> None:
        """Stores what takes the place of a member, unless that was overwritten itself."""
        if place.outputs is None or not is_storage(member.content):
            self._set([each + member.code for each in begun], member.results)

    def built(self, place: _Place, members: Sequence[_Place]) -> Sequence[str]:
        """A tuple, unless all that was given is overwritten."""
        content = place.content
        if place.outputs is not None and is_storage(content):
            return place.outputs
        make = ""
        if isinstance(content.type, types.BaseNamedTuple):
            make = self._source.constant(content.type.instance_class, "make")
        return [f"{make}({''.join(member.results[i] + ', ' for member in members)})" for i in range(self._results)]

    def finish(self, place: _Place, results: Sequence[str]) -> None:
        """Notes the expressions of results."""
        place.results = results

    # --- parts that are values ----------------------------------------------------------------------------------------

    def _number(self, content: tree.Content, inputs: Sequence[str]) -> Sequence[str]:
        made: Sequence[str] = []
        if self._results:
            made = self._made(self._operation.number(content.type), inputs, content.type)
        else:
            self._line(self._operation.read(content.type), inputs)
        self._then(inputs)
        return made

    def _array(self, content: tree.Content, inputs: Sequence[str], outputs: Sequence[str] | None) -> Sequence[str]:
        operation, results = self._operation, outputs or []
        if not self._results:
            self._line(operation.read(content.type), inputs)
        elif outputs is None:
            results = self._made(operation.array(content.type), inputs, _new_type(content))
        else:
            names = {"out": outputs[0], **{f"out{i}": each for i, each in enumerate(outputs)}}
            self._line(operation.write(content.type), inputs, **names)
        self._then(inputs)
        return results

    def _optional(
        self, content: tree.OptionalContent, inputs: Sequence[str], outputs: Sequence[str] | None
    ) -> Sequence[str]:
        source = self._source
        for other in inputs[1:] if self._is_checked else ():
            source.line(f"check_members(({other} is None) == ({inputs[0]} is None))")
        made = [source.fresh("made") for _ in range(self._results)]
        inside = source.constant(content.inside.type, "type")
        with source.block(f"if {inputs[0]} is not None:"):
            given = None if outputs is None else [f"as_type({each}, {inside})" for each in outputs]
            found = self.visit(content.inside, [f"as_type({each}, {inside})" for each in inputs], given)
            for name, result in zip(made, found, strict=True):
                source.line(f"{name} = {result}")
        with source.block("else:"):
            for name in made:
                source.line(f"{name} = None")
        return made

    # --- objects that may be found twice ------------------------------------------------------------------------------

    def _count(self, content: tree.Content, is_counted: bool) -> None:
        if not tree.has_derivative(content):
            return
        kind = kind_of(content)
        if kind.is_object:
            group = self._groups.setdefault(_group_of(content), _Group(_new_type(content)))
            group.places += 1
            group.is_counted &= is_counted
            group.is_made |= bool(self._results) and (not self._in_place or _is_read_only(content))
        if kind.treatment is Treatment.VIEWED:  # fields are found with the whole
            return
        for member in kind.members(content):
            self._count(member.content, is_counted and not kind.loop and kind is not OPTIONAL)

    def _open(self, group: _Group) -> None:
        source = self._source
        width = 1 + identity.key_length(group.type) * (self._values if self._is_checked else 1)
        group.rows = group.owners = self._table(width)
        if self._outputs:
            group.owners = self._table(1 + identity.key_length(group.type))
        if group.is_made:
            item = source.constant(group.type, "type")
            group.made = [source.variable("made", f"List.empty_list({item})") for _ in range(self._results)]

    def _table(self, width: int) -> str:
        rows = self._source.variable("rows", f"stack_words({identity.ROWS_ON_STACK}, {width})")
        self._source.line(f"used_{rows} = 0")
        return rows

    def _object(self, content: tree.Content, inputs: Sequence[str], outputs: Sequence[str] | None) -> Sequence[str]:
        group, source = self._groups[_group_of(content)], self._source
        if outputs is not None and _is_read_only(content):
            if self._keeps:
                return outputs
            outputs = None
        if self._is_read_again:
            if group.has_table and content.has_memory:
                self._check_reads(group, inputs)
            return self._body(content, inputs, outputs)
        if self._is_checked:
            self._check_members(content, inputs)
            for i, j in itertools.combinations(self._written(inputs) if self._is_written else (), 2):
                source.line(f"check_read(False, same({i}, {j}))")
        if group.is_single:
            return self._body(content, inputs, outputs)
        look = self._look_up if group.has_table else self._compare
        return look(group, content, inputs, outputs)

    def _check_members(self, content: tree.Content, inputs: Sequence[str]) -> None:
        for other in inputs[1:]:
            for statement in kind_of(content).counterpart:
                self._source.line(statement.format(inputs[0], other))

    def _compare(
        self, group: _Group, content: tree.Content, inputs: Sequence[str], outputs: Sequence[str] | None
    ) -> Sequence[str]:
        """Compares an object with each that was met before."""
        source, met = self._source, list(group.met)
        known = [source.variable("known", f"same({inputs[0]}, {others[0]})") for others, _ in met]
        for (others, _), repeated in zip(met, known, strict=True) if self._is_checked else ():
            self._check_pair(content, others, inputs, repeated)
        makes = self._results and outputs is None
        results = [source.fresh("made") for _ in range(self._results)] if makes else outputs or []
        group.met.append((inputs, results))
        if not met:
            self._set(results, self._body(content, inputs, outputs)) if makes else self._body(content, inputs, outputs)
            return results
        if not makes:
            with source.block(f"if not ({' or '.join(known)}):"):
                self._body(content, inputs, outputs)
            return results
        wanted = source.constant(_new_type(content), "type")
        for (_, earlier), repeated in zip(met, known, strict=True):
            with source.block(f"{'if' if repeated is known[0] else 'elif'} {repeated}:"):
                for name, result in zip(results, earlier, strict=True):
                    source.line(f"{name} = in_layout_of({result}, {inputs[0]}, {wanted})")
        with source.block("else:"):
            self._set(results, self._body(content, inputs, outputs))
        return results

    def _set(self, names: Sequence[str], results: Sequence[str]) -> None:
        for name, result in zip(names, results, strict=True):
            self._source.line(f"{name} = {result}")

    def _look_up(
        self, group: _Group, content: tree.Content, inputs: Sequence[str], outputs: Sequence[str] | None
    ) -> Sequence[str]:
        """Looks an object up in the table of its type."""
        source, rows = self._source, group.rows
        key = source.variable("key", f"key({inputs[0]})")
        row = source.variable("row", f"row_of({rows}, {key})")
        number = source.variable("number", f"{rows}[{row}, 0] - 1")
        if self._is_checked:
            self._check_row(group, inputs, row, number)
        makes = bool(self._results) and outputs is None
        results = [source.fresh("made") for _ in range(self._results)] if makes else outputs or []
        with source.block(f"if {number} < 0:"):
            self._enter(rows, row, inputs if self._is_checked else inputs[:1])
            found = self._body(content, inputs, outputs)
            for made, name, result in zip(group.made, results, found, strict=True) if makes else ():
                source.line(f"{name} = {result}")
                source.line(f"{made}.append(as_type({name}, {source.constant(group.type, 'type')}))")
        if makes:
            wanted = source.constant(_new_type(content), "type")
            with source.block("else:"):
                found = [f"in_layout_of({made}[{number}], {inputs[0]}, {wanted})" for made in group.made]
                self._set(results, found)
        return results

    def _enter(self, rows: str, row: str, values: Sequence[str], number: str = "") -> None:
        """Writes the keys of what is at one place in all structures; the first one's is what it is found by."""
        source = self._source
        start = "1"
        for value in values:
            source.line(f"enter({rows}, {row}, {number or 'used_' + rows}, {start}, key({value}))")
            start += f" + len(key({value}))"
        source.line(f"used_{rows} += 1")
        source.line(f"{rows} = roomy({rows}, used_{rows})")

    # --- what the inputs and outputs may share ------------------------------------------------------------------------

    def _written(self, values: Sequence[str]) -> Sequence[str]:
        return values[-self._outputs :] if self._outputs else values[:1]

    def _check_pair(self, content: tree.Content, earlier: Sequence[str], later: Sequence[str], repeated: str) -> None:
        """Checks two places of objects of one type."""
        source, values = self._source, self._values
        for number in range(1, values):
            check = "check_output" if number >= values - self._outputs else "check_input"
            source.line(f"{check}({repeated}, same({later[number]}, {earlier[number]}))")
        if not (self._is_written and content.has_memory):
            return
        for one, other in ((earlier, later), (later, earlier)):
            for written in self._written(one):
                place = one.index(written)
                for read in (each for i, each in enumerate(other) if i != place):
                    source.line(f"check_read({repeated}, same({written}, {read}))")

    def _check_row(self, group: _Group, inputs: Sequence[str], row: str, number: str) -> None:
        """Checks what is at one place of all structures against what was at others before."""
        source, start = self._source, f"1 + len(key({inputs[0]}))"
        with source.block(f"if not holds_nothing({inputs[0]}):"):
            for place, other in enumerate(inputs[1:], 1):
                there = f"is_entered({group.rows}, {row}, {start}, key({other}))"
                start += f" + len(key({other}))"
                if place < self._values - self._outputs:
                    source.line(f"check_input({number} >= 0, {there})")
                    continue
                owner = source.variable("row", f"row_of({group.owners}, key({other}))")
                is_owned = f"{group.owners}[{owner}, 0] != 0"
                source.line(f"check_output({number} >= 0, {there} if {number} >= 0 else {is_owned})")
                with source.block(f"if {number} < 0:"):
                    self._enter(group.owners, owner, [other], f"used_{group.rows}")

    def check_reads(self, first: tree.Content, inputs: Sequence[str]) -> None:
        """Checks that nothing in a list or dictionary is read at one place and overwritten at another.

        Args:
            first: the value in the first structure.
            inputs: all that are read, as in `visit`, which has been called.
        """
        if any(group.has_table for group in self._groups.values()):
            self._is_read_again = True
            self.visit(first, inputs, None)

    def _check_reads(self, group: _Group, inputs: Sequence[str]) -> None:
        source = self._source
        mine = source.variable("mine", f"{group.rows}[row_of({group.rows}, key({inputs[0]})), 0]")
        for read in inputs[: self._values - self._outputs] if self._outputs else inputs[1:]:
            owner = source.variable("owner", f"{group.owners}[row_of({group.owners}, key({read})), 0]")
            source.line(f"check_read({owner} == {mine} or holds_nothing({read}), {owner} != 0)")


def _group_of(content: tree.Content) -> Any:
    """Equal for types of objects that may be one object."""
    if content.is_array:
        return content.type.dtype, content.type.ndim
    return content.type


def _is_read_only(content: tree.Content) -> bool:
    return content.is_array and not content.type.mutable


def _new_type(content: tree.Content) -> Any:
    """The type of the result for an object."""
    return content.type.copy(readonly=False) if content.is_array else content.type
