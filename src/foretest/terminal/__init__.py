"""Results as text, in 80 columns."""
