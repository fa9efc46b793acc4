"""Results, histories and plans as text in 80 columns."""
