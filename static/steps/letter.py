import json
from pathlib import Path
from urllib.request import Request, urlopen

token = Path("data/admin-token").read_text().strip()
url = "http://127.0.0.1:8080/admin/api/v1/dead-letters?channel=/orders/try&limit=1"
with urlopen(Request(url, headers={"Authorization": f"Bearer {token}"})) as answer:
    print(json.load(answer)["items"])
