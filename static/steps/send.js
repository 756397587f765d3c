const message = {channel: "/orders/try", data: {order: 4711, quantity: 0}};
const answer = await fetch("http://127.0.0.1:8080/publish", {
    method: "POST",
    body: JSON.stringify(message),
});
console.log(await answer.json());
