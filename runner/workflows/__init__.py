"""Who drives the policy: `workflow.py` holds the protocol, then one file per agent."""
