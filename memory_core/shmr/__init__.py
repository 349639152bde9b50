"""Self-harmonizing memory reasoning, one module a step."""
