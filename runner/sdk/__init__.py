"""What the SDK's own entry points were, on top of our engine: applications for any ASGI server."""
