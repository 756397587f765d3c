"""The load generator and the server with known faults that it is checked against."""
