"""Results for readers: self-contained HTML pages, charts as Vega-Lite specifications, pictures, notebooks."""
