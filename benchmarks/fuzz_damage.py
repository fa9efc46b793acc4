"""Damage to files and tables, the same for the same random generator: bytes, TOML, JSON, Parquet, columns of a log."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

# -- bytes ------------------------------------------------------------------------------------------------------------

PIECES = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b'"', b"'", b"[", b"]", b"{", b"}", b",", b"=",
          b":",
          b"#", b"NaN", b"-Infinity", b"1e999", b"9" * 25, b"null", b"true", b"\xc3\x28", b"PAR1",
          b"\xf0\x9f\x8e\xb2")  # fmt: skip


def damage_bytes(content: bytes, random: Random) -> bytes:
    """One to four changes: a flipped bit, another byte, a piece put in, cut out, doubled or moved, an end cut off."""
    data = bytearray(content)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + int(2 ** random.uniform(0, 9)))
        match random.randrange(7):
            case 0 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 1 if at < len(data):
                data[at] = random.randrange(256)
            case 2:
                data[at:at] = random.choice(PIECES)
            case 3:
                del data[at:end]
            case 4:
                data[at:at] = data[at:end]
            case 5:
                place = random.randrange(len(data) + 1)
                data[place:place] = data[at:end]
            case 6 if random.random() < 0.3:
                del data[at:]
    return bytes(data)


def damage_parquet(content: bytes, random: Random) -> bytes:
    """Bytes anywhere, in the first pages, in the footer, or in the length of the footer and the mark at the end."""
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    match random.randrange(4):
        case 0:
            return damage_bytes(content, random)
        case 1:
            return damage_bytes(content[:200], random) + content[200:]
        case 2:
            return content[:-footer] + damage_bytes(content[-footer:-8], random) + content[-8:]
        case _:
            return content[:-8] + damage_bytes(content[-8:], random)


# -- TOML -------------------------------------------------------------------------------------------------------------

VALUES = (
    "nan", "inf", "-inf", "-1", "0", "1", "2", "0.5", "1e308", "1e-320", "-0.0", "1000000000000", "9223372036854775808",
    "18446744073709551616", "1" + "0" * 40, "1" + "0" * 400, "9" * 5000, '""', '" "', '"\\u0000"', '"a\\u0000b"',
    '"é"',
    '"\\n"', '"\\ud7ff"', "[]", "{}", "[[]]", '[1, "a"]', "[1, 2]", "[0.5]", "true", "false", "2026-01-01", "12:30:00",
    "2026-01-01T00:00:00Z", "0001-01-01", '"2026-13-40"', "{a = {b = 1}}", '["click", "click"]', '[""]', '["click", 3]',
    f'"{"x" * 3000}"', "[" * 40 + "]" * 40, "[" * 3000 + "]" * 3000, '"/"', '"."', '"no/such/folder"', '"*"', '"a:b"',
    '":"', '"math:sqrt"', '"json:JSONDecoder"', '"no_such_module:Policy"', '"value-model"', '"auto"', '"logged"',
    '"mixture"',
    '"thurstone"', '"mallows"', '"epsilon-greedy"', '"dr"', '"is"', '"betting"', '"bernstein"', '"delta"', '"zero"',
    '"exact"', '"lahiri"', '"midzuno-sen"', '"two-sided"', '"band"', '"click"', '"revenue"', '"user"', '"ranking"',
    '"country"', '"v"', '"prob"', '"log_prob"', '"slots"', '"day"', '"control_scores"', '{click = "slots"}',
    '{click = 1}',
    '{click = {role = "goal"}}', '["country"]', '["day", "v"]',
)  # fmt: skip
KEYS = (
    "rewards", "unit", "ranking", "candidates", "id", "date", "features", "segments", "slot_rewards", "logger",
    "policy",
    "scores", "temperature", "sigma", "dispersion", "epsilon", "log_prob", "prob", "components", "share", "name",
    "estimators", "cap", "capping", "weight_bound", "headline", "normaliser", "draws", "confidence_level", "interval",
    "n_resamples", "buckets", "strata", "strata_base", "value", "value_log", "folds", "seed", "gamma", "decide_on",
    "r_max",
    "ignore_audit", "baseline", "split", "covariate", "sequential", "sequential_units", "role", "margin", "settings",
    "truth", "control", "treatment", "date", "test",
)  # fmt: skip
TABLES = ("[log]", "[control]", "[treatment]", "[[control]]", "[[treatment]]", "[analysis]", "[online]",
          "[metrics.click]",
          "[metrics]", "[[test]]", "[control.components]", "[[control.components]]", "[log.slot_rewards]",
          "[a.b.c]")  # fmt: skip


class Words(NamedTuple):
    """What is put into settings."""

    keys: tuple[str, ...] = KEYS
    values: tuple[str, ...] = VALUES
    tables: tuple[str, ...] = TABLES


WORDS = Words()


def damage_toml(text: str, random: Random, of: Words = WORDS) -> bytes:
    """One to three changes of lines, keys and values; sometimes of bytes."""
    lines = text.splitlines()
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines)) if lines else 0
        match random.randrange(9):
            case 0 if lines:
                del lines[at]
            case 1 if lines:
                lines.insert(random.randrange(len(lines) + 1), lines[at])
            case 2 | 3 | 4 if lines and "=" in lines[at]:
                lines[at] = f"{lines[at].partition('=')[0]}= {random.choice(of.values)}"
            case 5 if lines and "=" in lines[at]:
                lines[at] = f"{random.choice(of.keys)} ={lines[at].partition('=')[2]}"
            case 6:
                lines.insert(at, f"{random.choice(of.keys)} = {random.choice(of.values)}")
            case 7 if lines and lines[at].startswith("["):
                lines[at] = random.choice(of.tables)
            case 8 if lines and random.random() < 0.3:
                lines[at] = _other_number(lines[at], random)
    content = "\n".join(lines).encode()
    return damage_bytes(content, random) if random.random() < 0.2 else content


def _other_number(line: str, random: Random) -> str:
    """The line with one number changed by a factor, a sign or a type."""
    numbers = list(re.finditer(r"-?\d+\.?\d*", line))
    if not numbers:
        return line
    number = random.choice(numbers)
    other = random.choice(
        [f"-{number[0]}", f"{number[0]}e3", f"{number[0]}0", f'"{number[0]}"', "0", f"{number[0]}.5", "1e-9"]
    )
    return line[: number.start()] + other + line[number.end() :]


# -- JSON -------------------------------------------------------------------------------------------------------------

JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, 1e308, 5e-324, math.nan, math.inf, -math.inf, 10**12, 2**63, 2**64, 10**40,
    10**400, "",
    " ", "\x00", "é", "\ud800", "x" * 3000, "nan", "1", [], {}, [[]], [None], [1, "a"], {"": 1}, {"a": {"b": []}},
    "click", "log",
)  # fmt: skip


def damage_json(document: Any, random: Random) -> bytes:
    """One to three values replaced, removed, renamed or doubled; sometimes the text itself is damaged."""
    root = [json.loads(json.dumps(document))]
    for _ in range(random.randint(1, 3)):
        parent, key = _place(root, random)
        match random.randrange(6):
            case 0 | 1 | 2:
                parent[key] = copy.deepcopy(random.choice(JSON_VALUES))
            case 3 if parent is not root:
                del parent[key]
            case 4 if isinstance(parent, dict):
                parent[random.choice(["", "gamma", "x", f"{key}s", "class", "layout"])] = parent.pop(key)
            case 5:
                value = parent[key]
                parent[key] = random.choice([[value], {"a": value}, str(value), [value, value]])
    content = json.dumps(root[0]).encode(errors="surrogatepass")
    if random.random() < 0.003:
        depth = random.choice([900, 100_000])
        content = b"[" * depth + content + b"]" * depth
    if random.random() < 0.003:
        content = re.sub(rb"\b1\b", b"9" * 5000, content, count=1)
    return damage_bytes(content, random) if random.random() < 0.2 else content


def _place(root: list[Any], random: Random) -> tuple[Any, Any]:
    """A random value of a document: the list or table that has it, and where."""
    parent: Any = root
    key: Any = 0
    while isinstance(parent[key], dict | list) and parent[key] and random.random() < 0.85:
        parent = parent[key]
        key = random.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    return parent, key


# -- columns of a log -------------------------------------------------------------------------------------------------

NUMBERS: tuple[Any, ...] = (None, math.nan, math.inf, -math.inf, -1, 0, -0.0, 1, 2, 1e308, -1e308, 5e-324, 1e-300,
                            700.0, -745.0,
                            2**31, 2**53, 2**62, -(2**62))  # fmt: skip
TEXTS: tuple[Any, ...] = (
    None,
    "",
    " ",
    "\x00",
    "é" * 30,
    "x" * 5000,
    "nan",
    "null",
    "[1, 2]",
    "u1",
    "2026-01-01",
    "1e5",
)
TYPES: tuple[Callable[[], pa.DataType], ...] = (
    pa.string, pa.large_string, pa.string_view, pa.binary, pa.bool_, pa.int8, pa.uint8, pa.int32, pa.uint64, pa.float16,
    pa.float32, pa.float64, pa.null, pa.date32, lambda: pa.timestamp("us", "UTC"), lambda: pa.timestamp("ns"),
    lambda: pa.time64("us"), lambda: pa.duration("s"), lambda: pa.decimal128(10, 2), lambda: pa.decimal256(50, 3),
    lambda: pa.dictionary(pa.int32(), pa.string()), lambda: pa.dictionary(pa.int8(), pa.int64()),
    lambda: pa.list_(pa.float64()), lambda: pa.list_(pa.int8()), lambda: pa.list_(pa.string()),
    lambda: pa.list_(pa.float32(), 4),
    lambda: pa.list_(pa.int64(), 2), lambda: pa.large_list(pa.float64()), lambda: pa.list_view(pa.float64()),
    lambda: pa.large_list(pa.int32()), lambda: pa.list_(pa.list_(pa.float64())), lambda: pa.list_(pa.bool_()),
    lambda: pa.list_(pa.null()), lambda: pa.list_(pa.decimal128(10, 2)), lambda: pa.list_(pa.uint64()),
    lambda: pa.struct([("a", pa.float64())]), lambda: pa.map_(pa.string(), pa.float64()),
    lambda: pa.list_(pa.float16()),
)  # fmt: skip


def damage_table(table: pa.Table, random: Random) -> pa.Table:
    """One to three changes of values, types, names or rows."""
    for _ in range(random.randint(1, 3)):
        if not table.num_columns:
            return table
        at = random.randrange(table.num_columns)
        name = table.column_names[at]
        match random.randrange(12):
            case 0:
                table = table.remove_column(at)
            case 1:
                other = random.choice([*table.column_names, "", " ", "é", name.upper(), "x\x00"])
                table = table.rename_columns([other if i == at else n for i, n in enumerate(table.column_names)])
            case 2:
                table = table.slice(random.randrange(len(table) + 1), random.choice([0, 1, 2, 30]))
            case 3 | 4 | 5:
                table = table.set_column(at, name, _of_type(table.column(at).to_pylist(), random.choice(TYPES)()))
            case 6:
                table = pa.concat_tables([table, table])
            case 7:
                other = random.randrange(table.num_columns)
                table = table.set_column(at, name, table.column(other))
            case _:
                table = table.set_column(at, name, _with_odd_values(table.column(at), random))
    return table


def _of_type(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values as another type, where that is possible; else nulls or zeros of that type."""
    for convert in (lambda v: v, str, lambda v: [v], lambda v: v[0] if isinstance(v, list) else v, float,
    lambda v: [str(v)],
                    lambda v: None, lambda v: 0):  # fmt: skip
        try:
            return pa.array([None if v is None else convert(v) for v in values], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, IndexError):
            continue
    return pa.nulls(len(values), kind)


def _with_odd_values(column: pa.ChunkedArray, random: Random) -> pa.Array:
    """The column with odd values in one row, in some, or in all."""
    values = column.to_pylist()
    if not values:
        return column.combine_chunks()
    share = random.choice([0.0, 0.05, 0.5, 1.0])
    rows = [i for i in range(len(values)) if random.random() < share] or [random.randrange(len(values))]
    one = random.randrange(1 << 30) if random.random() < 0.7 else None  # the same fault in all rows, or one in each
    for row in rows:
        values[row] = _odd(values[row], random if one is None else Random(one))
    for kind in (column.type, None, pa.string()):
        try:
            return pa.array(values if kind != pa.string() else [None if v is None else str(v) for v in values], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            continue
    raise AssertionError("every list of values is an array of text")


def _odd(value: Any, random: Random) -> Any:
    """Another value in place of one: a list longer, shorter, with doubles or odd items; an odd number or text."""
    if not isinstance(value, list):
        return random.choice(TEXTS if isinstance(value, str) else NUMBERS)
    items = list(value)
    at = random.randrange(len(items)) if items else 0
    match random.randrange(8):
        case 0:
            return None
        case 1:
            return []
        case 2:
            return items[:at]
        case 3:
            return items * random.choice([2, 3, 40])
        case 4 if items:
            items[at] = items[0]
        case 5 if items:
            return [random.choice(NUMBERS)] * len(items)
        case _ if items:
            items[at] = _odd(items[at], random)
    return items
