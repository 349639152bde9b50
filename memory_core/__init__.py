"""What happens to memory: the core of Slowwave, usable without Prefect."""
