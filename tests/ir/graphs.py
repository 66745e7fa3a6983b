"""Functions given by their control-flow graph alone."""

from hypothesis import strategies as st

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Block, Function, Module


def graph(edges: str) -> Function:
    """`"a:bc b:d c:d d:"` is a diamond: block a branches to b and c, and so on; the first is the entry."""
    parts = [part.split(":") for part in edges.split()]
    function = Module().define("f", types.function_type(types.VOID, [types.I64]), ["n"])
    blocks = {name: function.add_block(name) for name, _ in parts}
    for name, targets in parts:
        builder = Builder(blocks[name])
        match [blocks[target] for target in targets]:
            case []:
                builder.ret()
            case [only]:
                builder.br(only)
            case [first, *others]:
                builder.switch(function.params[0], first, list(enumerate(others)))
    return function


def block(function: Function, name: str) -> Block:
    """The block of that name."""
    return next(b for b in function.blocks if b.name == name)


def names(blocks: object) -> str:
    """The names of some blocks in one word."""
    assert isinstance(blocks, tuple | list)
    return "".join(b.name for b in blocks)


@st.composite
def graphs(draw):
    """Random graphs of up to 9 blocks; a block may have any successors but the entry."""
    count = draw(st.integers(1, 9))
    letters = "abcdefghi"[:count]
    targets = st.lists(st.sampled_from(letters[1:]), max_size=3) if count > 1 else st.just([])
    return " ".join(f"{name}:{''.join(draw(targets))}" for name in letters)


def reaches(starts, edges, without=None):
    """The blocks reached from some along edges, by way of any but ``without``."""
    seen, pending = set(), [s for s in starts if s is not without]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending.extend(t for t in edges[current] if t is not without)
    return seen
