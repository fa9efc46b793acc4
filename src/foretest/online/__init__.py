"""The online A/B test."""
