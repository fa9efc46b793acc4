"""How far one reason to change reaches in the source: lines and files by rule.

    make shape
    python benchmarks/shape.py [FOLDER] [--verbose]      # another checkout; the lines one by one

The code is read as syntax trees, so comments, texts and layout count for nothing, and a line counts once per rule:

modules, lines, words of docs
    Modules of `src/foretest` and their lines, empty ones too; words of the Markdown in `docs/`, code included.
names of sums
    Names of sums and of kept or sampled columns that are built: f-strings and concatenations of lower-case pieces
    around colons with something to fill in (`hr:{table}`, `second:{i}:{m}`, `{label}: squares`), pieces joined by a
    colon, and calls that take such a name apart (`partition`, `rpartition` and `split` at a colon; `startswith`,
    `endswith` and `remove…` of a piece with one). A function that gives such a name counts by the line that builds it,
    not by its calls. Only in the rooms where sums travel (`SUMS`): elsewhere a colon is punctuation, and in `storage/`
    it is the layout of a file.
conditions on thinning, on losses, on several loggers
    Tests of `if`, `elif`, `while`, `assert`, conditional expressions and comprehensions, operands of `and` and `or`,
    comparisons, and `isinstance`, that ask one of the names in `TOPICS` for its truth, its presence (`is None`, `in`)
    or its class; of losses also loops over the metrics that have some. What is done with amounts (`keep < 1`,
    `logger == k`) is arithmetic. Not in `WORDS`, which read documents and layouts; a column role (`[log] keep`) is not
    counted where roles are read and checked (`ROLES`).
levels by class
    `isinstance`, `issubclass` and `type(…) is` with a class derived from `Weighting` or `Estimator`, or with a pricer:
    code that asks an object for its level by what it is. Not in `levels/`; the two bases themselves name no level.
totals by hand
    Class methods `total`, and `__add__`: each class that adds itself up.

What a rule looks for has today's names. Whoever renames one renames it here too, or the count falls for nothing.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SUMS = (
    "aggregation", "sums", "levels", "weights", "engines", "inference", "diagnostics", "calibration", "offline",
    "online", "planning",
)  # fmt: skip
WORDS = ("terminal", "report", "storage")
ROLES = ("settings", "log", "convert")

TOPICS = {
    "conditions on thinning": {
        "thinned", "is_thinned", "are_displays", "is_unevenly_thinned", "multiple", "multiples", "displays_per_row",
        ".keep", "multiplicities_of", "for multiplicities_of", "MULTIPLE",
    },
    "conditions on losses": {
        ".differences", "for .differences", "difference", "losses", "gains", "of_losses", "with_losses", "LOSSES",
        "GAINS", "LOSSES_T", "is_folded", "is_signed", "may_be_negative",
    },
    "conditions on several loggers": {
        "Pooled", "LoggingMixture", "SoleLogger", "OwnLogger", "logger", "loggers", "log_baseline", ".named", ".lacks",
    },
}  # fmt: skip

BASES = ("Weighting", "Estimator", "Pricer", "SlotPricer", "ExposurePricer")
LEVELLESS = ("Weighting", "Estimator", "Pricer")

#: the columns that thin a log, which rooms of roles read and check
DECLARED = {".keep", "multiplicities_of", "for multiplicities_of"}

HOLE = "\ufffc"
NAME = re.compile(rf"[a-z_0-9{HOLE}]+(:[a-z_0-9{HOLE}]+)+|[a-z_]+:{HOLE}?|:{HOLE}|{HOLE}: squares")


class Module(NamedTuple):
    """A module of the source, parsed."""

    path: str
    tree: ast.Module
    lines: int

    @property
    def room(self) -> str:
        return self.path.split("/")[0].removesuffix(".py")


class Line(NamedTuple):
    path: str
    number: int


Rule = Callable[[list[Module]], Iterator[Line]]


def modules_of(source: Path) -> list[Module]:
    paths = [(str(path.relative_to(source)), path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))]
    return [Module(path, ast.parse(code), code.count("\n")) for path, code in paths]


# -- names of sums --------------------------------------------------------------------------------------------------


def pattern_of(node: ast.AST) -> str | None:
    """The text of a string that is built, with a hole for all that is filled in; None for anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [pattern_of(side) or HOLE for side in (node.left, node.right)]
        return "".join(sides) if set(sides) != {HOLE} else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def is_built_name(node: ast.AST) -> bool:
    pattern = pattern_of(node)
    return pattern is not None and HOLE in pattern and ":" in pattern and bool(NAME.fullmatch(pattern))


def cuts_or_joins(node: ast.AST) -> bool:
    """Does a call take a name apart, or join one? `name.partition(":")`, `name.startswith("hv:")`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    text, method = pattern_of(node.args[0]), node.func.attr
    if method == "join":
        return pattern_of(node.func.value) == ":"
    if text is None:
        return False
    if method in ("partition", "rpartition", "split"):
        return text == ":"
    return method in ("startswith", "endswith", "removeprefix", "removesuffix") and ":" in text


def names_of_sums(modules: list[Module]) -> Iterator[Line]:
    modules = [module for module in modules if module.room in SUMS]
    for module in modules:
        errors = {
            id(below) for node in ast.walk(module.tree) if isinstance(node, ast.Raise) for below in ast.walk(node)
        }
        for node in ast.walk(module.tree):
            if id(node) not in errors and (is_built_name(node) or cuts_or_joins(node)):
                yield Line(module.path, line_of(node))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def line_of(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


# -- conditions -----------------------------------------------------------------------------------------------------


def conditions_of(tree: ast.Module) -> Iterator[ast.expr]:
    """What is asked in tests of all kinds, `and`, `or` and `not` taken apart; and comparisons outside of tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield from atoms_of(node.test)
        elif isinstance(node, ast.comprehension):
            yield from (atom for test in node.ifs for atom in atoms_of(test))
        elif isinstance(node, ast.BoolOp | ast.Compare):
            yield from atoms_of(node)
        elif isinstance(node, ast.Call) and called(node) == "isinstance":
            yield node


def atoms_of(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        yield from (atom for value in test.values for atom in atoms_of(value))
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from atoms_of(test.operand)
    else:
        yield test


def asked(atom: ast.expr) -> Iterator[str]:
    """The names whose value, class or presence is asked. An order of amounts, `keep < 1`, is arithmetic, and so is the
    equality of two values, `logger == k`; a number of loggers against 1 is not."""
    if isinstance(atom, ast.Compare):
        sides = [atom.left, *atom.comparators]
        by_value = any(not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in atom.ops)
        names = {name for side in sides for name in last_names(side)}
        if by_value:
            names &= {"loggers", "GAINS", "LOSSES"}
        yield from names
    elif isinstance(atom, ast.Call):
        yield from mentioned(atom.args[1]) if called(atom) == "isinstance" else last_names(atom.func)
    else:
        yield from last_names(atom)


def last_names(node: ast.expr) -> Iterator[str]:
    """`thinned` of `aggregates.thinned`, and `.thinned`, for what is meant only as a field."""
    if isinstance(node, ast.Attribute):
        yield from (node.attr, f".{node.attr}")
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def mentioned(node: ast.AST) -> set[str]:
    return {name for below in ast.walk(node) if isinstance(below, ast.expr) for name in last_names(below)}


def loops_over(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """What a loop or a comprehension walks, and which field or function it is: `for .differences` of
    `plan.differences.items()`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.For | ast.comprehension):
            continue
        walked = node.iter
        if isinstance(walked, ast.Call):
            walked = walked.func.value if isinstance(walked.func, ast.Attribute) else (*walked.args, walked)[0]
        if isinstance(walked, ast.Attribute):
            yield node.iter, f"for .{walked.attr}"
        elif isinstance(walked, ast.Call):
            yield node.iter, f"for {called(walked)}"


def conditions_on(topic: str) -> Rule:
    def lines(modules: list[Module]) -> Iterator[Line]:
        for module in modules:
            names = TOPICS[topic] - (DECLARED if module.room in ROLES else set())
            for condition in conditions_of(module.tree) if module.room not in WORDS else ():
                if names.intersection(asked(condition)):
                    yield Line(module.path, condition.lineno)
            yield from (Line(module.path, walked.lineno) for walked, name in loops_over(module.tree) if name in names)

    return lines


# -- classes --------------------------------------------------------------------------------------------------------


def classes_below(modules: list[Module], bases: tuple[str, ...]) -> set[str]:
    """The bases and every class derived from them, by name."""
    parents = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    below, more = set(bases), set(bases)
    while more:
        more = {name for name, direct in parents.items() if direct & more} - below
        below |= more
    return below


def levels_by_class(modules: list[Module]) -> Iterator[Line]:
    levels = classes_below(modules, BASES) - set(LEVELLESS)
    for module in (module for module in modules if module.room != "levels"):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and called(node) in ("isinstance", "issubclass") and len(node.args) == 2:
                classes: ast.AST = node.args[1]
            elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and called(node.left) == "type":
                classes = node
            else:
                continue
            if levels.intersection(mentioned(classes)):
                yield Line(module.path, node.lineno)


def totals_by_hand(modules: list[Module]) -> Iterator[Line]:
    for module in modules:
        for cls in ast.walk(module.tree):
            for method in cls.body if isinstance(cls, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef) and adds_up(method):
                    yield Line(module.path, method.lineno)


def adds_up(method: ast.FunctionDef) -> bool:
    decorators = {getattr(decorator, "id", "") for decorator in method.decorator_list}
    return method.name == "__add__" or (method.name == "total" and "classmethod" in decorators)


# -- the table ------------------------------------------------------------------------------------------------------

RULES: dict[str, Rule] = {
    "names of sums": names_of_sums,
    **{topic: conditions_on(topic) for topic in TOPICS},
    "levels by class": levels_by_class,
    "totals by hand": totals_by_hand,
}


def counts(modules: list[Module]) -> dict[str, list[Line]]:
    """The lines that each rule finds, in the order of files."""
    return {name: sorted(set(rule(modules))) for name, rule in RULES.items()}


def words_of_docs(root: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in (root / "docs").rglob("*.md"))


def main() -> None:
    parser = argparse.ArgumentParser(description="How far one reason to change reaches in the source.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1], help="a checkout")
    parser.add_argument("--verbose", action="store_true", help="list the lines")
    options = parser.parse_args()
    modules = modules_of(options.root / "src" / "foretest")
    print(f"{'words of docs':30} {words_of_docs(options.root):>7,}")
    print(f"{'':30} {'lines':>7} {'files':>6}")
    print(f"{'all modules':30} {sum(module.lines for module in modules):>7,} {len(modules):>6,}")
    for name, lines in counts(modules).items():
        print(f"{name:30} {len(lines):>7,} {len({line.path for line in lines}):>6,}")
        for line in lines if options.verbose else ():
            print(f"    {line.path}:{line.number}")


if __name__ == "__main__":
    main()
