"""Login and rights: who a client is, and what it may do."""
