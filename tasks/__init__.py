"""How one step runs: thin Prefect tasks around the memory core."""
