const replay = {
    filter: {ids: ["LETTER"]},
    dry_run: false,
    options: {edit: {data: {order: 4711, quantity: 1}}},
};
const answer = await fetch("http://127.0.0.1:8080/admin/api/v1/replays", {
    method: "POST",
    headers: {Authorization: "Bearer TOKEN", "Content-Type": "application/json"},
    body: JSON.stringify(replay),
});
console.log(await answer.json());
