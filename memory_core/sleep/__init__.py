"""The seven phases of sleep, one module each."""
