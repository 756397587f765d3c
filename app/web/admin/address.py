"""Where the administration is, and what its lines of JSON are called: all that a client needs."""

# Below /admin.
API = "/api/v1"
FEED = "/feed"
LINES = "application/x-ndjson"
