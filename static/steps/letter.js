const url = "http://127.0.0.1:8080/admin/api/v1/dead-letters?channel=/orders/try&limit=1";
const answer = await fetch(url, {headers: {Authorization: "Bearer TOKEN"}});
console.log((await answer.json()).items);
