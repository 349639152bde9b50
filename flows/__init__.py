"""In what order: the flows. Nothing here is imported with Prefect until a flow is."""
