"""The engine: a plan and a request become an outcome. Serve and batch differ only in where requests come from."""
