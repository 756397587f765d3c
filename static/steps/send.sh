curl http://127.0.0.1:8080/publish \
    -d '{"channel": "/orders/try", "data": {"order": 4711, "quantity": 0}}'
