"""The words that lists can be narrowed by; a module of its own, so that help texts load no database code."""

from __future__ import annotations

MEMORY_STATUSES = ("current", "superseded", "retired", "expired", "all")
BELIEF_STATUSES = ("believed", "held", "contested", "superseded", "stale", "retracted", "all")
"""`believed` is held or contested."""

LAYERS = ("semantic", "episodic", "working", "procedural", "prospective")
"""As the CHECK of the table has them."""
