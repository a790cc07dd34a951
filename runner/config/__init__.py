"""The file as frozen models: sections, layers, loading, checking, explaining, digests, schemas."""
