"""Settings of sandboxes on this machine."""
