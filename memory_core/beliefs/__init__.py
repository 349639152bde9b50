"""Beliefs, their evidence and lineage, and what happens to them when evidence goes."""
