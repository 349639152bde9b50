"""Graph and vector backends."""
