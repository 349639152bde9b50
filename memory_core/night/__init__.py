"""A night: the phases of sleep and the steps of SHMR put together, for one scope and for chunks of them."""
