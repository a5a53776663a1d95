"""Nothing is served here; launch_server answers by arithmetic."""
