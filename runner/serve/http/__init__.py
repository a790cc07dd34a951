"""HTTP: connections and requests to answers. What a rollout is, is not known here."""
