"""Charts as Vega-Lite specifications, plain dicts, drawn from what `to_dict()` gives; one figure a file."""
