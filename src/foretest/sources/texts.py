"""Texts that are no texts: Arrow takes the bytes of a damaged file, or of a text in another encoding, as they are."""

from __future__ import annotations

import pyarrow as pa

from foretest.displays.ragged import is_list, is_text
from foretest.errors import BadInput


def refuse_broken_texts(name: str, row: int, batch: pa.RecordBatch) -> None:
    """Refuse a batch with a text that is not UTF-8: whoever asks for its letters would fail, at any later step.

    `name` is that of the file, `row` the number of the batch's first row in it.
    """
    for column, array in zip(batch.schema.names, batch.columns, strict=True):
        if not _has_texts(array.type):
            continue
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            place = _first_broken(array)
            where = "" if place is None else f", row {row + place} (the first row is 0)"
            raise BadInput(
                f"{name}: column '{column}'{where}: the text is not UTF-8. The file is damaged, or was written in"
                " another encoding: write it again, or leave it out."
            ) from None


def _has_texts(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or is_list(kind):
        return _has_texts(kind.value_type)
    return is_text(kind)


def _first_broken(array: pa.Array) -> int | None:
    """The first row whose text cannot be decoded; None where it is one that no row has."""
    for place in range(len(array)):
        try:
            array[place].as_py()
        except UnicodeDecodeError:
            return place
    return None
