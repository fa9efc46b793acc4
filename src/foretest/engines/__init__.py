"""Who calls the fold."""
