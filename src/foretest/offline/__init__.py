"""The offline A/B test."""
