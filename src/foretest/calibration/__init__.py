"""What a history of A/B tests says of the part of a treatment that a log does not support."""
