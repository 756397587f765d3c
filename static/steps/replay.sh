curl http://127.0.0.1:8080/admin/api/v1/replays \
    -H "Authorization: Bearer $(cat data/admin-token)" -H 'Content-Type: application/json' \
    -d '{"filter": {"ids": ["LETTER"]}, "dry_run": false,
         "options": {"edit": {"data": {"order": 4711, "quantity": 1}}}}'
# With the command line: holdfast dead replay LETTER --data '{"order": 4711, "quantity": 1}'
