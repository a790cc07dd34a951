"""Several processes behind one port: who supervises them, how they share the room there is, and how they talk."""
