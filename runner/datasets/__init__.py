"""Where rows come from: `dataset.py` holds the protocol, then one file per format."""
