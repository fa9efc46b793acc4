"""What a log could show, before its result is looked at."""
