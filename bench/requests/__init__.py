"""Measures a request and its reply: `python -m bench.requests`."""
