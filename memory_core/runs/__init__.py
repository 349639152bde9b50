"""The ledger, the journal, guards, preview and undo."""
