from holdfast import SyncClient

with SyncClient("http://127.0.0.1:8080") as client:
    orders = client.subscribe("/orders/try")
    for order in orders:
        if order.data["quantity"] < 1:
            orders.refuse("user.order.quantity", "the quantity is 0")
        else:
            print("accepted", order.data)
