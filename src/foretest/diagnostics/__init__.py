"""Can this log answer the question? Health, the distribution of weights, the path over caps, the audit."""
