"""Whatever answers: the policy and the judges. `model.py` holds the protocol, then one file per kind."""
