"""The paths and media types of the administration, for the server and its clients."""

# Below /admin.
API = "/api/v1"
FEED = "/feed"
LINES = "application/x-ndjson"
