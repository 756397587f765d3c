"""What a request and its reply cost: `python -m bench.requests`."""
