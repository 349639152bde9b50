"""The first schema: memories, beliefs, people, runs, tenants, with policies and journal triggers.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create everything; the SQL beside this file is of this revision's day."""
    script = Path(__file__).with_name("0001_initial.sql").read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()
    # Straight to the driver: colons and percent signs in function bodies are not parameters.
    cursor.execute(script)
    cursor.close()


def downgrade() -> None:
    """There is nothing below the first revision; drop the schema by hand to remove Slowwave."""
    raise RuntimeError("The first revision cannot be taken back: it would delete every memory.")
