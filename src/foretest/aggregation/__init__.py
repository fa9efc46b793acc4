"""From batches of a log to `Aggregates`: what is added up, by which estimators, and how."""
