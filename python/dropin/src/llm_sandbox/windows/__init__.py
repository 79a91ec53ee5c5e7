"""Settings of sandboxes on Windows."""
