"""The settings file: TOML in, `Settings` out, every fault one sentence that begins with the file's name."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foretest.errors import BadInput, choose, nearest
from foretest.files import read_text
from foretest.policies import POLICIES, Mixture, OwnCandidates, Policy
from foretest.policies.adapter import as_policy
from foretest.policies.own_candidates import without_list
from foretest.settings.analysis import Analysis
from foretest.settings.examination import FIT
from foretest.settings.log_columns import LogColumns
from foretest.settings.long_layout import is_query
from foretest.settings.online import Online
from foretest.settings.settings import TREATMENT, Settings
from foretest.settings.unknown_keys import refuse_unknown
from foretest.stores import Location, joined, location

MOST_BYTES = 10_000_000  # of a settings file, which has some thousand


def read_settings(path: str | Location) -> Settings:
    """Read a settings file; every fault is a BadInput that begins with the file's name."""
    path = location(path)
    tables = read_tables(path)
    try:
        with _importable(path.parent):
            return settings_from_tables(tables, path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def read_tables(path: Location, kind: str = "settings file") -> dict[str, Any]:
    """The tables of a settings file, or of another `kind` of TOML file, as they are written."""
    text = read_text(path, kind, f"expected a {kind} (TOML), not the log.", MOST_BYTES)
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{path}: not valid TOML: {_TOO_DEEP}.") from None
    except ValueError as error:  # invalid TOML, or a number of thousands of digits
        raise BadInput(f"{path}: not valid TOML: {error}.") from None
    _refuse_unwritable(path, tables)
    return tables


_TOO_DEEP = "lists or tables are nested too deeply"
_DEEPEST = 100  # tables within tables, of which settings have five
_MOST_BITS = 14_000  # of a number that Python writes: 4,300 digits


def _refuse_unwritable(path: Location, tables: dict[str, Any]) -> None:
    """Refuse what TOML may hold and Python cannot write in a message: [a.b.c.…] of any depth, 0xfff… of any length."""
    level: list[Any] = [tables]
    for _ in range(_DEEPEST):
        inside = [value for outer in level for value in (outer.values() if isinstance(outer, dict) else outer)]
        for value in inside:
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                raise BadInput(f"{path}: not valid TOML: a whole number of {value.bit_length():,} bits.")
        level = [value for value in inside if isinstance(value, dict | list)]
        if not level:
            return
    raise BadInput(f"{path}: not valid TOML: {_TOO_DEEP}.")


def settings_from_tables(tables: Mapping[str, Any], folder: Location = Path()) -> Settings:
    """From the tables of a settings file; paths in them are relative to `folder`."""
    refuse_unknown("the settings file", tables, ["log", "control", "treatment", "metrics", "analysis", "online"])
    for name in ("log", "control", "treatment"):
        if name not in tables:
            raise BadInput(f"the table [{name}] is missing: {_PURPOSE[name]}.")
    for name, table in tables.items():
        if not isinstance(table, Mapping) and not (name in (TREATMENT, "control") and isinstance(table, list)):
            raise BadInput(f"{name} = {table!r}: expected a table, [{name}].")
    if "rewards" not in tables["log"]:
        raise BadInput('[log] rewards is missing: name the reward columns, as in rewards = ["click"].')
    analysis = dict(tables.get("analysis", {}))
    if isinstance(analysis.get("value_log"), str):
        analysis["value_log"] = str(joined(folder, analysis["value_log"]))
    if isinstance(analysis.get("examination"), str) and analysis["examination"] != FIT:
        analysis["examination"] = str(joined(folder, analysis["examination"]))
    treatments = treatments_from_tables(tables[TREATMENT])
    return Settings(
        log=_build("[log]", LogColumns, _with_paths(tables["log"], folder)),
        control=control_from_tables(tables["control"]),
        treatment=next(iter(treatments.values())),
        treatments=treatments,
        metrics=tables.get("metrics", {}),
        analysis=_build("[analysis]", Analysis, analysis),
        online=_build("[online]", Online, tables.get("online", {})),
    )


def _with_paths(log: Mapping[str, Any], folder: Location) -> dict[str, Any]:
    """The table [log] with the paths of [log.tables] relative to the folder."""
    tables = log.get("tables")
    if not isinstance(tables, Mapping):
        return dict(log)
    paths = {k: v if not isinstance(v, str) or is_query(v) else str(joined(folder, v)) for k, v in tables.items()}
    return {**log, "tables": paths}


_PURPOSE = {
    "log": 'it names the columns of the log, as in rewards = ["click"]',
    "control": "it describes the policy that produced the log",
    "treatment": "it describes the policy to try",
}


def control_from_tables(tables: Mapping[str, Any] | list[Any]) -> Any:
    """The policy that produced the log; or, from [[control]] tables, all that did, by name."""
    if isinstance(tables, Mapping):
        return policy_from_table("[control]", tables)
    if not tables or not all(isinstance(table, Mapping) for table in tables):
        raise BadInput("control: expected a table [control], or several tables [[control]], each a policy.")
    return _named_policies("control", tables)


def treatments_from_tables(tables: Mapping[str, Any] | list[Any]) -> dict[str, Policy]:
    """The policies to try, by name: one [treatment] table, or several [[treatment]] tables with a name each."""
    if isinstance(tables, Mapping):
        table = dict(tables)
        own = isinstance(table.get("policy"), str) and ":" in table["policy"]  # a user's class may take a name itself
        name = TREATMENT if own else table.pop("name", TREATMENT)
        return {_name_of(name, "[treatment]"): policy_from_table("[treatment]", table)}
    if not tables or not all(isinstance(table, Mapping) for table in tables):
        raise BadInput("treatment: expected a table [treatment], or several tables [[treatment]], each a policy.")
    return _named_policies(TREATMENT, tables)


def _named_policies(role: str, tables: list[Any]) -> dict[str, Policy]:
    """Several policies of one role, each table with a name."""
    policies: dict[str, Policy] = {}
    for number, given in enumerate(tables, start=1):
        table = dict(given)
        if "name" not in table and (len(tables) > 1 or role != TREATMENT):
            raise BadInput(f'[[{role}]] number {number} has no name: add name = "…", to tell them apart.')
        name = _name_of(table.pop("name", role), f"[[{role}]] number {number}")
        if name in policies:
            raise BadInput(f"two [[{role}]] tables are named '{name}': give one of them another name.")
        policies[name] = policy_from_table(f"[[{role}]] '{name}'", table)
    return policies


def _name_of(name: Any, where: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"{where} name = {name!r}: expected text.")
    return name


def policy_from_table(where: str, table: Mapping[str, Any]) -> Policy:
    """The policy that a [control] or [treatment] table describes."""
    arguments = dict(table)
    try:
        name = arguments.pop("policy")
    except KeyError:
        raise BadInput(f'{where} policy is missing. Known: {", ".join(POLICIES)}, or "module:Class".') from None
    try:
        if isinstance(name, str) and ":" in name:
            return _imported(name, arguments)
        cls = POLICIES[choose("policy", name, POLICIES)]
        if cls is Mixture:
            arguments["components"] = _components(where, arguments.get("components"))
        return _construct(f'policy = "{name}"', cls, arguments)
    except BadInput as error:
        raise BadInput(f"{where} {error}") from None


def _components(where: str, tables: Any) -> list[tuple[float, Policy]]:
    role = where.strip("[]").partition("]")[0]
    if not isinstance(tables, list) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise BadInput(f"a mixture needs [[{role}.components]] tables, each a policy with its share.")
    parts = []
    for number, table in enumerate(tables, start=1):
        rest = {key: value for key, value in table.items() if key != "share"}
        if "share" not in table:
            raise BadInput(f"component {number} of the mixture has no share: add share = 0.5, or another number.")
        parts.append((table["share"], policy_from_table(f"component {number}:", rest)))
    return parts


_NAMES_A_COLUMN = ("scores", "ranking", "probs", "matrix", "log_prob", "prob")  # keys of the built-in policies
_CANDIDATES = "candidates"  # a key of every policy with scores, and of fixed
_TRAINED_UNTIL = "trained_until"  # a key of every policy; an own class may have one of that name itself


def _construct(name: str, cls: type[Policy], arguments: dict[str, Any]) -> Policy:
    declared = inspect.signature(cls).parameters.values()
    parameters = [p for p in declared if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if not any(p.kind is p.VAR_KEYWORD for p in declared):
        known = [p.name for p in parameters]
        if _CANDIDATES in arguments and _CANDIDATES not in known:
            rest = {key: value for key, value in arguments.items() if key != _CANDIDATES}
            return OwnCandidates(_construct(name, cls, rest), arguments[_CANDIDATES])
        built_in = cls in POLICIES.values() and cls.can_draw
        refuse_unknown(name, arguments, [*known, _CANDIDATES] if built_in else known)
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in arguments]
    if missing:
        example = f', as in {missing[0]} = "column"' if missing[0] in _NAMES_A_COLUMN else ""
        raise BadInput(f"{name} needs the key{'s' if len(missing) > 1 else ''} {' and '.join(missing)}{example}.")
    for key in _NAMES_A_COLUMN:
        if key in arguments and not isinstance(arguments[key], str) and cls in POLICIES.values():
            raise BadInput(f"{key} = {arguments[key]!r}: expected the name of a column.")
    return cls(**arguments)


def _imported(name: str, arguments: dict[str, Any]) -> Policy:
    """A user's own policy; whatever goes wrong in the user's code becomes one sentence."""
    module_name, _, class_name = name.partition(":")
    where = f'policy = "{name}"'
    if not module_name or not class_name:
        raise BadInput(f'{where}: expected "module:Class".')
    try:
        module = _import(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name:
            raise BadInput(
                f"{where}: there is no module {module_name}, neither beside the settings file nor on Python's path."
            ) from None
        raise BadInput(f"{where}: {module_name} cannot be imported ({error}).") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"{where}: {module_name} cannot be imported ({type(error).__name__}: {error}).") from None
    cls = getattr(module, class_name, None)
    if cls is None:
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise BadInput(f"{where}: {module_name} has no {class_name}.{nearest(class_name, classes)}")
    for method in ("log_prob", "sample"):
        if not isinstance(cls, type) or not callable(getattr(cls, method, None)):
            raise BadInput(
                f"{where}: it has no {method}; a policy is a class with log_prob(displays, rankings) and"
                " sample(displays, uniforms)."
            )
    try:
        until = None if _TRAINED_UNTIL in inspect.signature(cls).parameters else arguments.pop(_TRAINED_UNTIL, None)
        policy = _construct(where, cls, arguments)
        if until is not None:
            policy = as_policy(policy)
            without_list(policy).remember_training(until)
        return policy
    except BadInput:
        raise
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where} refuses its keys ({error}).") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"{where} cannot be made ({type(error).__name__}: {error}).") from None


def _import(name: str) -> Any:
    """The module beside the settings file, also where one of the same name was imported from elsewhere before."""
    importlib.invalidate_caches()
    known = sys.modules.get(name)
    beside = Path(sys.path[0]) / f"{name}.py"
    if known is not None and beside.is_file() and getattr(known, "__file__", None) != str(beside):
        del sys.modules[name]
    return importlib.import_module(name)


@contextmanager
def _importable(folder: Location) -> Iterator[None]:
    """A user's policy may live beside the settings file; from a store no code is run."""
    if not isinstance(folder, Path):
        yield
        return
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _build(where: str, cls: type[Any], table: Mapping[str, Any]) -> Any:
    refuse_unknown(where, table, [f.name for f in dataclasses.fields(cls)])
    try:
        return cls(**table)
    except BadInput as error:
        raise BadInput(f"{where} {str(error).removeprefix(where + ' ')}") from None
