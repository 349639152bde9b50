"""Search and listings over what is current."""
