// Asks a question, and shows the answer while it comes. It keeps nothing itself: the address names the
// answer, so that this page after a reload, and every other tab, reads it from the beginning.
const SERVER = "http://localhost:8080";
const place = (id) => document.getElementById(id);
let source;

function show() {
    const id = location.hash.slice(1);
    source?.close();
    for (const each of ["question", "answer", "state"]) {
        place(each).textContent = "";
    }
    if (!id) {
        return;
    }
    // When the connection is lost or the server restarts, the browser goes on by itself where it was.
    source = new EventSource(`${SERVER}/events?channel=/answers/${encodeURIComponent(id)}&after=-1`);
    source.onmessage = ({data}) => {
        const {question = "", token = "", failed = "", end = ""} = JSON.parse(data).data;
        place("question").textContent += question;
        place("answer").append(token);
        place("state").textContent = failed || end;
        if (end) {
            source.close();
        }
    };
    source.addEventListener("lost", () => {
        place("state").textContent = "A part of this answer is no longer kept.";
    });
}

async function ask(text) {
    const id = crypto.randomUUID();
    const body = JSON.stringify({channel: "/questions", data: {id, text}});
    location.hash = id;
    // If the server has accepted the question and the page does not know it, asking again does no harm:
    // the same id makes the same answer.
    for (;;) {
        const response = await fetch(`${SERVER}/publish`, {method: "POST", body}).catch(() => null);
        if (response?.ok) {
            return;
        }
        place("state").textContent = response ? `Not accepted: ${response.status}` : "Not sent yet";
        await new Promise((resolve) => setTimeout(resolve, 1000));
    }
}

addEventListener("hashchange", show);
document.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(new FormData(event.target).get("question"));
});
show();
