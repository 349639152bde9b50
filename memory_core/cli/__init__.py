"""The `slowwave` command."""
