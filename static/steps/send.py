from holdfast import SyncClient

with SyncClient("http://127.0.0.1:8080") as client:
    client.publish("/orders/try", {"order": 4711, "quantity": 0})
