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
from foretest.policies import POLICIES, Mixture, Policy
from foretest.settings import Analysis, LogColumns, Online, Settings, refuse_unknown


def read_settings(path: str | Path) -> Settings:
    """Read a settings file; every fault is a BadInput that begins with the file's name."""
    path = Path(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such settings file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read as a settings file ({error}).") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not valid TOML: {error}.") from None
    try:
        with _importable(path.parent):
            return settings_from_tables(tables, path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def settings_from_tables(tables: Mapping[str, Any], folder: Path = Path()) -> Settings:
    """From the tables of a settings file; paths in them are relative to `folder`."""
    refuse_unknown("the settings file", tables, ["log", "control", "treatment", "analysis", "online"])
    for name in ("log", "control", "treatment"):
        if name not in tables:
            raise BadInput(f"the table [{name}] is missing.")
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise BadInput(f"{name} = {table!r}: expected a table, [{name}].")
    if "rewards" not in tables["log"]:
        raise BadInput('[log] rewards is missing: name the reward columns, as in rewards = ["click"].')
    analysis = dict(tables.get("analysis", {}))
    if isinstance(analysis.get("value_log"), str):
        analysis["value_log"] = str(folder / analysis["value_log"])
    return Settings(
        log=_build("[log]", LogColumns, tables["log"]),
        control=policy_from_table("[control]", tables["control"]),
        treatment=policy_from_table("[treatment]", tables["treatment"]),
        analysis=_build("[analysis]", Analysis, analysis),
        online=_build("[online]", Online, tables.get("online", {})),
    )


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
            arguments["components"] = _components(arguments.get("components"))
        return _construct(cls, arguments)
    except BadInput as error:
        raise BadInput(f"{where} {error}") from None


def _components(tables: Any) -> list[tuple[float, Policy]]:
    if not isinstance(tables, list) or not tables:
        raise BadInput("a mixture needs [[….components]] tables, each a policy with its share.")
    parts = []
    for table in tables:
        rest = {key: value for key, value in table.items() if key != "share"}
        if "share" not in table:
            raise BadInput("a component of the mixture has no share.")
        parts.append((table["share"], policy_from_table("component:", rest)))
    return parts


def _construct(cls: type[Any], arguments: dict[str, Any]) -> Any:
    parameters = [p for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
    if len(parameters) == len(inspect.signature(cls).parameters):
        refuse_unknown(cls.__name__, arguments, [p.name for p in parameters])
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in arguments]
    if missing:
        raise BadInput(f"{cls.__name__} needs {' and '.join(missing)}.")
    for key in ("scores", "log_prob", "prob"):
        if key in arguments and not isinstance(arguments[key], str) and cls in POLICIES.values():
            raise BadInput(f"{key} = {arguments[key]!r}: expected the name of a column.")
    return cls(**arguments)


def _imported(name: str, arguments: dict[str, Any]) -> Any:
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInput(f'policy = "{name}": the module cannot be imported ({error}).') from None
    cls = getattr(module, class_name, None)
    if cls is None:
        raise BadInput(f'policy = "{name}": {module_name} has no {class_name}.{nearest(class_name, dir(module))}')
    for method in ("log_prob", "sample"):
        if not callable(getattr(cls, method, None)):
            raise BadInput(
                f'policy = "{name}": a policy needs log_prob(displays, rankings) and sample(displays, uniforms).'
            )
    return _construct(cls, arguments)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A user's policy may live beside the settings file."""
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
