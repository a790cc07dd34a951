"""What is owed to controllers is posted, in order and at least once, until it is acknowledged or given up."""
