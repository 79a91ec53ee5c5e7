"""The configuration and the base class of sessions."""
