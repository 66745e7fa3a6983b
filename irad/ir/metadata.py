"""Nodes of metadata, which a module keeps as text."""

from __future__ import annotations

from irad.ir.text.lexer import END, tokenize


def elements(node: str) -> tuple[str, ...]:
    """The elements of a tuple as LLVM spells them: ``!{!"double", !7, i64 0}`` has ``!"double"``, ``!7`` and ``i64 0``.

    Empty where the node is not a tuple.
    """
    if not (node.startswith("!{") and node.endswith("}")):
        return ()
    found: list[list[str]] = [[]]
    for token in tokenize(node[2:-1]):
        if token == ",":
            found.append([])
        elif token != END:
            found[-1].append(token)
    return tuple(" ".join(words) for words in found if words)


def is_reference(element: str) -> bool:
    """True if an element is a numbered node, `!7`."""
    return element.startswith("!") and element[1:].isdecimal()
