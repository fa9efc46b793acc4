"""Every public name of `foretest`, its serving, simulate and testing, from its docstring."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import textwrap
from typing import Any

import foretest as ft
from generated.docstring import field_texts, parts_of
from generated.markdown import cell, code, table

#: the pages, and the names of `foretest` on each; other pages have the names of a module
PAGES = {
    "tests": "OfflineTest OnlineTest run_history plan_log read_board write_pictures",
    "log": "LogColumns Sql MetricRole Analysis Settings BadInput RowFault",
    "policies": "PlackettLuce EpsilonGreedy Mallows Thurstone SwapNeighbours TopK Fixed Probabilities Mixture"
    " OwnCandidates Logged LoggedSlots",
    "estimators": "IS NIS CIS NCIS PieceNCIS PointNCIS AdaptivePointNCIS DR AdaptivePointDR IIPS NIIPS RIPS"
    " AdaptiveSlotNCIS AdaptiveCascadeNCIS CascadeDR PBM AdaptiveExposureNCIS",
    "results": "Result Metric Estimate PlanResult Agreement Calibration Board Aggregates LIGHT DARK __version__",
    "own": "Policy Displays Ragged hash_integers Estimator Sums ratio Weighting Uncapped Capped",
    "convert": "from_bandit_feedback BanditLog from_dsjson DsjsonLog",
}
MODULES = {"serving": ft.serving, "testing": ft.testing, "simulate": ft.simulate}
#: names that are data, in a line each
DATA = {
    "foretest.LIGHT": "the colours and fonts of figures on a light ground: a Vega-Lite theme",
    "foretest.DARK": "the same on a dark ground",
    "foretest.__version__": "the version",
    "foretest.serving.PUBLISHED_VECTORS": "the file of test vectors that ships with the package",
    "foretest.simulate.WORLDS": "the named worlds, by name",
}
_SPACE = "\N{NO-BREAK SPACE}"
_BASES = (ft.Policy, ft.Estimator, ft.Weighting)


def pages() -> dict[str, str]:
    """The text of each page, by its name; `index` lists all names."""
    named = {page: [f"foretest.{name}" for name in names.split()] for page, names in PAGES.items()}
    named |= {name: [f"foretest.{name}.{one}" for one in module.__all__] for name, module in MODULES.items()}
    written = {page: "\n\n".join([*_imports(page, names), *map(section, names)]) for page, names in named.items()}
    return {"index": _index(named), **written}


def _imports(page: str, paths: list[str]) -> list[str]:
    """Of a page of a module, a block that imports what the examples below it use."""
    if page not in MODULES:
        return []
    examples = "\n".join(example for path in paths for example in parts_of(resolve(path)).examples)
    used = [path.rpartition(".")[2] for path in paths if re.search(rf"\b{path.rpartition('.')[2]}\b", examples)]
    numpy = ["import numpy as np"] if "np." in examples and "import numpy" not in examples else []
    lines = [*numpy, f"from foretest.{page} import {', '.join(used)}"]
    return ["```python\n" + "\n".join(lines) + "\n```"] if used else []


def section(path: str) -> str:
    """One name: its signature, what it is, its parameters or fields, what it returns and raises, examples, members."""
    name, target = path.rpartition(".")[2], resolve(path)
    if path in DATA:  # as code: underscores would make it bold
        return f"## `{name}`\n\n{DATA[path][0].upper()}{DATA[path][1:]}."
    parts = parts_of(target)
    blocks = [f"## {name}", _signature(path, target), parts.prose, _arguments(target, parts.parameters)]
    blocks += _outcome(parts.returns, parts.raises, target)
    blocks += parts.examples
    if inspect.isclass(target):
        blocks += [_member(name, member, value) for member, value in members(target)]
    return "\n\n".join(block for block in blocks if block)


def resolve(path: str) -> Any:
    """The object of a dotted name."""
    return functools.reduce(getattr, path.split(".")[1:], ft)


def members(cls: type[Any]) -> list[tuple[str, Any]]:
    """The public methods and properties that are the class's own; what a base class explains is on its own section."""
    explained = {name for base in _BASES if cls is not base and issubclass(cls, base) for name in dir(base)}
    return [
        (name, value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and name not in explained and _is_member(value) and _function(value).__doc__
    ]


def _is_member(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(
        value, classmethod | staticmethod | property | functools.cached_property
    )


def _function(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools.cached_property):
        return member.func
    return inspect.unwrap(member.__func__ if isinstance(member, classmethod | staticmethod) else member)


def _member(owner: str, name: str, member: Any) -> str:
    function = _function(member)
    parts = parts_of(function)
    is_property = isinstance(member, property | functools.cached_property)
    blocks = [f"### {owner}.{name}"]
    if not is_property:
        blocks.append(_call(f"{owner}.{name}" if isinstance(member, classmethod) else f".{name}", function, skip=1))
    blocks += [parts.prose, _arguments(function, parts.parameters), *_outcome(parts.returns, parts.raises, None)]
    blocks += parts.examples
    return "\n\n".join(block for block in blocks if block)


def _signature(path: str, target: Any) -> str:
    prefix = "ft." if path.count(".") == 1 else f"{path.split('.')[1]}."
    if inspect.isclass(target) and issubclass(target, Exception):
        return ""
    return _call(prefix + path.rpartition(".")[2], target)


def _call(name: str, function: Any, skip: int = 0) -> str:
    signature = inspect.signature(function)
    parameters = [
        p.replace(annotation=p.empty)
        for p in list(signature.parameters.values())[skip:]
        if p.name[0] != "_" and p.name != "unknown"
    ]
    arguments = str(signature.replace(parameters=parameters, return_annotation=signature.empty))[1:-1]
    returned = "" if inspect.isclass(function) or signature.return_annotation in ("None", signature.empty) else (
        f" -> {signature.return_annotation}"
    )  # fmt: skip
    line = f"{name}({arguments}){returned}"
    if len(line) > 96:
        filled = textwrap.fill(_unbroken(arguments), 92, initial_indent="    ", subsequent_indent="    ")
        line = f"{name}(\n{filled.replace(_SPACE, ' ')},\n){returned}"
    return f"```py\n{line}\n```"


def _unbroken(arguments: str) -> str:
    """Arguments that are broken between one another only."""
    return re.sub(r"(?<!,) |(?<=,) (?=[\d'\"])", _SPACE, arguments)


def _arguments(target: Any, texts: dict[str, str]) -> str:
    """A table of what is passed; of a dataclass or NamedTuple its fields."""
    if inspect.isclass(target) and (dataclasses.is_dataclass(target) or hasattr(target, "_fields")):
        texts = {**field_texts(target), **texts}
    elif not texts:
        return ""
    parameters = [
        p for p in inspect.signature(target).parameters.values() if p.name not in ("self", "cls") and p.name[0] != "_"
    ]
    rows = [
        [code(p.name), code(_type(p.annotation)), _default(p), cell(texts.get(p.name, ""))]
        for p in parameters
        if p.kind is not p.VAR_KEYWORD and (p.name in texts)
    ]
    return table(["name", "type", "default", "meaning"], rows) if rows else ""


def _type(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    given = getattr(annotation, "__forward_arg__", annotation)
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default in (parameter.empty, None) or "<factory>" in repr(parameter.default):
        return ""
    return code(repr(parameter.default))


def _outcome(returns: str, raises: dict[str, str], target: Any) -> list[str]:
    lines = [f"**Returns** {returns}"] if returns else []
    return lines + [f"**Raises** `{name}`: {text}" for name, text in raises.items()]


def _index(named: dict[str, list[str]]) -> str:
    """Every name with its first sentence."""
    blocks = []
    for page, names in named.items():
        rows = [
            [f"[`{path.rpartition('.')[2]}`]({page}.md#{path.rpartition('.')[2].lower()})", _first(path)]
            for path in names
        ]
        blocks += [f"### {TITLES[page]}", table(["name", "what it is"], rows)]
    return "\n\n".join(blocks)


TITLES = {
    "tests": "Tests and histories", "log": "The log and the settings", "policies": "Policies",
    "estimators": "Estimators", "results": "Results", "own": "Your own policies and estimators",
    "convert": "Logs of other shapes", "serving": "foretest.serving", "testing": "foretest.testing",
    "simulate": "foretest.simulate",
}  # fmt: skip


def _first(path: str) -> str:
    if path in DATA:
        return DATA[path]
    prose = " ".join(parts_of(resolve(path)).prose.split())
    return cell(re.split(r"(?<=[a-z`)][.:;]) ", prose)[0].rstrip(".:;"))
