"""One file per generation of the wire protocol: bodies in, callbacks out, nothing else."""
