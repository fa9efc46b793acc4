"""What runs the fold: threads on one machine, or Spark on many."""
