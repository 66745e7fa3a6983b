"""Words and turns of phrase that docstrings, comments, messages, names and guides avoid, each with the better one.

`python tests/docs/test_words.py` lists the places.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("irad", "passes", "rules", "bench", "scripts")

WORDS = {
    r"desks?": "scratch",
    r"packs(?! (?:the|these|them)\b)": "rule plug-ins",
    r"homes": "owners, ownership",
    r"kept_call": "closure",
    r"written_call": "call site",
    r"glue": "adapter",
    r"(?<!left\s)(?<!leave\s)(?<!leaves\s)(?<!files\s)(?<!lag\s)behind(?! your back|:)": "after (in an order)",
    r"(?:leads?|led|leading) to": "points to",
    r"leads? (?:into|anywhere|elsewhere|nowhere)": "points",
    r"on the disk": "on disk",
    r"(?:can|could|cannot|to) be had": "is available",
    r"takes? it that": "assumes that",
    r"so many": "the number, or 'n of them'",
    r"likewise": "also, too, in the same way",
    r"anew": "again, from scratch",
    r"(?:be|is|are|was|were) told(?!\s+(?:apart|from))": "is given, is selected, is reported, is known",
    r"(?:derivatives?|gradients?|partials?) by [a-z]": "with respect to",
    r"(?<!there\s)(?:is|are|was|were) no (?!(?:longer|more|less|later|better|other)\b)\w+": "is not a",
    r"in whole(?! \w+s\b)": "in full",
    r"for ever": "forever",
    r"(?:computed?|computes|computing) again": "recomputed",
    r"hand(?:s|ed|ing)? (?:it |them )?on(?! the)": "passes on",
    r"and forgets?": "and drops, discards",
    r"whose (?:it is|they are)": "the owner, the name",
    r"what \w+ (?:makes?|made) of": "the result, the code of",
    r"knows? no\b(?! longer)": "has no, does not know",
}
OPENINGS = {
    r"The same[,. ]": "say what it does, without the neighbour",
    r"As `": "Like `…`, and then the difference",
    r"Of (?:the|a|an|each|one|all|it|them) ": "begin with the noun",
    r"Its ": "name whose",
    r"What ": "a noun, or 'Returns'",
    r"Whether ": "'True if'; for what is no predicate, a noun or a verb",
    r"Where ": "the place, the address; 'if' for a condition",
    r"How ": "the number, the way",
    r"(?:Which|Who|Why) ": "the thing itself, the reason",
}
NAMES = {
    "desk": "scratch",
    "desks": "scratch",
    "packs": "rule_plugins, tuples",
    "homes": "owners, origins",
    "glue": "adapter",
    "Glue": "Adapter",
    "kept_call": "closure",
    "written_call": "call_site",
    "told_to": "say what is reported where",
    **{f"by_{name}": f"d_{name}" for name in ("a", "b", "c", "p", "q", "t", "u", "v", "x", "y", "z", "args")},
}
"""Names of variables, functions and attributes."""
AVOIDED = "|".join(f"(?:{word})" for word in WORDS).replace(" ", r"\s+")
WORD = re.compile(rf"(?<![\w`./-])(?:{AVOIDED})(?![\w/])", re.IGNORECASE)
OPENING = re.compile("|".join(OPENINGS))
NAME = re.compile(rf"(?<![\w\"'`])_?(?:{'|'.join(NAMES)})(?![\w\"'`])")
QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"\n]*\"|\]\([^)]*\)", re.DOTALL)
CODE_BLOCK = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.DOTALL | re.MULTILINE)
MAYBE_COMMENT = re.compile(r"#.*")
OTHER_COMMENT = re.compile(r"(?:;|//|/\*).*")
EXAMPLE = re.compile(r"^\s*(?:>>>|\.\.\.).*$", re.MULTILINE)


def docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings of a module, its classes, functions and attributes, with their lines; statements only, for speed."""
    for statement in getattr(node, "body", ()):
        if isinstance(statement, ast.Expr):
            if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
                yield statement.lineno, statement.value.value
        else:
            yield from docstrings(statement)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments of the source, with their lines; only files with an avoided word in one are tokenized, for speed."""
    if any(WORD.search(line) for line in MAYBE_COMMENT.findall(source)):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def avoided(text: str, line: int = 1) -> Iterator[tuple[int, str]]:
    """Avoided words in the prose of a text that begins at ``line``; code and quotations are left out."""
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    if not WORD.search(text):
        return
    prose = QUOTED.sub(blank, EXAMPLE.sub(blank, CODE_BLOCK.sub(blank, text)))
    for match in WORD.finditer(prose):
        yield line + prose.count("\n", 0, match.start()), " ".join(match[0].split())


def messages(source: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts of several words that are not docstrings, with their lines; only where a word is avoided, for speed."""
    if WORD.search(source):
        outside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in outside:
                if " " in node.value:
                    yield node.lineno, node.value


def names(source: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Avoided names in the code, with their lines."""
    if NAME.search(source):
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                    found = name
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    found = name
                case _:
                    continue
            if found.lstrip("_") in NAMES:
                yield node.lineno, found


def in_source(path: Path) -> Iterator[tuple[int, str]]:
    """Avoided words, openings and names in the docstrings, comments, messages and code of a Python file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for line, text in docstrings(tree):
        yield from avoided(text, line)
        if match := OPENING.match(text):
            yield line, match[0]
    for line, text in (*comments(source), *messages(source, tree)):
        yield from avoided(text, line)
    yield from names(source, tree)


def in_test(path: Path) -> Iterator[tuple[int, str]]:
    """Avoided words in docstrings and comments; messages and names of tests are those of the programs they run."""
    source = path.read_text(encoding="utf-8")
    if WORD.search(source):
        for line, text in (*docstrings(ast.parse(source)), *comments(source)):
            yield from avoided(text, line)


def in_other_comments(path: Path) -> Iterator[tuple[int, str]]:
    """Avoided words in comments of LLVM's text, of JavaScript and of style sheets."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if comment := OTHER_COMMENT.search(line):
            yield from avoided(comment[0], number)


def files() -> Iterator[Path]:
    """Python files and guides whose words are checked."""
    for name in (*CODE, "docs"):
        yield from sorted((ROOT / name).rglob("*.md"))
        if name != "docs":
            yield from sorted((ROOT / name).rglob("*.py"))
    yield from sorted((*ROOT.glob("*.md"), *ROOT.glob("*.py")))


def files_of_tests() -> Iterator[Path]:
    """Files of the tests, without this one and the programs of others."""
    corpus = ROOT / "tests" / "corpus"
    yield from (each for each in sorted((ROOT / "tests").rglob("*.py")) if corpus not in each.parents)


def places() -> Iterator[str]:
    """Places with avoided words as ``file:line: word``."""
    for path in files():
        hits = avoided(path.read_text(encoding="utf-8")) if path.suffix == ".md" else in_source(path)
        yield from _named(path, hits)
    for path in files_of_tests():
        yield from _named(path, in_test(path) if path != Path(__file__) else ())
    for suffix in ("ll", "js", "css"):
        for path in sorted((ROOT / "irad").rglob(f"*.{suffix}")):
            yield from _named(path, in_other_comments(path))


def _named(path: Path, hits: Iterable[tuple[int, str]]) -> Iterator[str]:
    return (f"{path.relative_to(ROOT)}:{line}: {word}" for line, word in hits)


def test_avoided_words_are_absent():
    words = list(places())
    better = "\n".join(f"  {pattern}: {word}" for pattern, word in (WORDS | OPENINGS | NAMES).items())
    assert not words, "\n".join(words) + f"\nbetter words:\n{better}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("The scratch behind it.", "behind"),
        ("A pointer that leads\n    to it.", "leads to"),
        ('``behind`` and `anew` are names; so is "likewise".', None),
        ("Two runs are told apart; there is no shadow behind your back.", None),
        ("```python\n# behind\n```\nIt is no array.", "is no array"),
        ("The derivative by x.", "derivative by x"),
        ("Files that it leaves behind; the pointer leads anywhere.", "leads anywhere"),
        ("Kept on the disk; rows cannot be told from columns.", "on the disk"),
        ("A loop that would run for\n    ever.", "for ever"),
        ("The value is computed again; it knows no longer what it knew.", "computed again"),
        ("Who hands it on, and on the other hand on the left.", "hands it on"),
    ],
)
def test_words_are_found_in_prose_alone(text: str, word: str | None):
    assert [match for _, match in avoided(text)] == ([word] if word else [])


def test_words_are_found_in_docstrings_and_comments(tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text('class A:\n    """As `B`."""\n\n    x = "behind"  # packs\n    y: int\n    """Its own, anew."""\n')
    assert sorted(in_source(path)) == [(2, "As `"), (4, "packs"), (6, "Its "), (6, "anew")]


def test_words_are_found_in_comments_of_other_languages_and_of_tests(tmp_path: Path):
    text, script, test = tmp_path / "a.ll", tmp_path / "a.js", tmp_path / "test_a.py"
    text.write_text("  %behind = add i64 %a, 1 ; behind it\n; so many\n")
    script.write_text("let behind = 1; /* behind it */\n")
    test.write_text('def test_it():\n    """It is told."""\n    assert "behind it"  # anew\n')
    assert list(in_other_comments(text)) == [(1, "behind"), (2, "so many")]
    assert [word for _, word in in_other_comments(script)] == ["behind"]
    assert list(in_test(test)) == [(2, "is told"), (3, "anew")]


def test_words_are_found_in_messages_and_names(tmp_path: Path):
    path = tmp_path / "module.py"
    body = '    """What it is."""\n    by_x = f"the scratch behind {x}"\n    return by_x, "behind"\n'
    path.write_text(f"def glue(x):\n{body}")
    assert sorted(in_source(path)) == [(1, "glue"), (2, "What "), (3, "behind"), (3, "by_x"), (4, "by_x")]


if __name__ == "__main__":
    listed = list(places())
    print(*listed, sep="\n")
    print(Counter(place.rsplit(": ", 1)[1].lower() for place in listed))
