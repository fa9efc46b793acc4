"""Documents against the JSON schemas of the package."""

from __future__ import annotations

from typing import Any

from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

_known: dict[str, Validator] = {}


def validate(document: Any, schema: dict[str, Any]) -> None:
    """As `jsonschema.validate`, but a schema is itself checked only once: that takes four times as long as a result."""
    known = _known.get(schema["title"])
    if known is None or known.schema != schema:
        kind = validator_for(schema)
        kind.check_schema(schema)
        known = _known[schema["title"]] = kind(schema)
    known.validate(document)
