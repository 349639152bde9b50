"""When and where: deployments, and the Prefect server they run on."""
