"""The five layers of memory, and how they are written and edited."""
