"""Which Arrow types a column of each role may have."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from foretest.displays.ragged import is_list, is_text


def is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def is_share(kind: pa.DataType) -> bool:
    """A number, and no truth value: true is no probability."""
    return is_number(kind) and not pa.types.is_boolean(kind)


def is_key(kind: pa.DataType) -> bool:
    return is_key(kind.value_type) if pa.types.is_dictionary(kind) else bool(pa.types.is_integer(kind)) or is_text(kind)


def is_text_key(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def is_label(kind: pa.DataType) -> bool:
    return is_key(kind) or bool(pa.types.is_boolean(kind))


def is_feature(kind: pa.DataType) -> bool:
    return is_label(kind) or is_number(kind) or bool(pa.types.is_temporal(kind))


def is_item_feature(kind: pa.DataType) -> bool:
    return is_number(kind) or is_text_key(kind)


def type_family(kind: pa.DataType) -> str:
    """Text, time or number."""
    if is_text_key(kind):
        return "text"
    return "time" if pa.types.is_temporal(kind) else "number"


def is_list_of(inner: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: is_list(kind) and inner(kind.value_type)


def is_one_or_list_of(inner: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    """A list, or a plain value that is read as a list of one."""
    return lambda kind: inner(kind.value_type if is_list(kind) else kind)


def is_anything(kind: pa.DataType) -> bool:
    return True
