curl -H "Authorization: Bearer $(cat data/admin-token)" \
    'http://127.0.0.1:8080/admin/api/v1/dead-letters?channel=/orders/try&limit=1'
# With the command line: holdfast dead list --channel /orders/try --limit 1
