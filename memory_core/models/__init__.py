"""Ports to embedding and language models, and their adapters."""
