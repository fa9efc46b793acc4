"""A covariate that varies within a unit: which unit and row, found by reading the log a second time."""

from __future__ import annotations

import numpy as np

from foretest.engines.local import read_rows
from foretest.errors import BadInput, RowFault
from foretest.log.reward_ages import rows_of_whole
from foretest.online.arms import Arm, ArmReader, ArmRows
from foretest.online.unit_values import Varying
from foretest.records import dataclass
from foretest.sources import BATCH_ROWS, Chunk, Source


def refuse_varying(arm: Arm, source: Source, reader: ArmReader, batch_rows: int = BATCH_ROWS) -> None:
    """Refuse a covariate of which a unit has several values; beyond 2^21 units, of a sample of them.

    The message names a unit and a row where the log can be read again.
    """
    units = None if arm.covariate is None else arm.covariate.units
    varying = None if units is None else units.varying()
    if varying is None:
        return
    if source.repeatable:
        for _ in read_rows(source, _VaryingReader(reader.settings, varying=varying), batch_rows):
            pass
    column, unit = reader.settings.online.covariate, reader.settings.log.unit
    raise BadInput(
        f"column '{column}': {_units(varying)} of column '{unit}' {'has' if varying.number == 1 else 'have'} several"
        f" values, one of them {varying.lowest:g} and {varying.highest:g}. {_REMEDY}"
    )


_REMEDY = (
    "A covariate is one number per unit, from before the test: give every row of a unit the same, or leave"
    " [online] covariate out."
)


def _units(varying: Varying) -> str:
    return f"{varying.number:,} unit{'' if varying.number == 1 else 's'}"


@dataclass(frozen=True)
class _VaryingReader(ArmReader):
    """Reads an arm up to a row of the named unit whose covariate is not its lowest, which is a fault."""

    varying: Varying | None = None

    def read(self, chunk: Chunk) -> ArmRows:
        chunk, unit, column = self.counted(chunk), self.settings.log.unit, self.settings.online.covariate
        rows, varying = super().read(chunk), self.varying
        assert rows.covariate is not None
        assert varying is not None
        assert unit is not None
        assert column is not None
        others = np.flatnonzero((rows.unit == np.uint64(varying.unit)) & (rows.covariate != varying.lowest))
        if len(others):
            name, value = chunk.batch[unit][int(others[0])].as_py(), rows.covariate[others[0]]
            many = "" if varying.number == 1 else f" ({_units(varying)} vary)"
            what = f"the covariate is {value:g}, and {varying.lowest:g} in another row of the unit {name!r}{many}"
            with rows_of_whole(chunk):
                raise RowFault("covariate-varies", column, others, what, _REMEDY)
        return rows
