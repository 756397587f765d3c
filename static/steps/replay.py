import json
from pathlib import Path
from urllib.request import Request, urlopen

token = Path("data/admin-token").read_text().strip()
head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
replay = {
    "filter": {"ids": ["LETTER"]},
    "dry_run": False,
    "options": {"edit": {"data": {"order": 4711, "quantity": 1}}},
}
url = "http://127.0.0.1:8080/admin/api/v1/replays"
with urlopen(Request(url, json.dumps(replay).encode(), head)) as answer:
    print(json.load(answer))
