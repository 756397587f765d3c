"""The load generator, and a server with known faults to test it."""
