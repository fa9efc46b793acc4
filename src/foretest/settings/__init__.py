"""The settings of a test: dataclasses, roles of metrics, and the TOML file that they are read from."""
