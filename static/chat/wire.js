// An extension that shows the messages on the wire. Registered first, it sees them as they are sent.
const MOST = 150;
const LONGEST_QUOTE = 80;
const LONGEST_JSON = 20_000;

const node = (name, className, text) => {
    const element = document.createElement(name);
    element.className = className;
    element.textContent = text;
    return element;
};

const verdict = ({seq, state, errorCode}) => [
    `verdict ${seq}: ${errorCode ?? state}`,
    errorCode ? "bad" : "good",
];

/** The notable parts of a message, each with the kind of its badge. */
function* badges(message, isSent) {
    const ack = message.ext?.ack;
    const delivery = message.ext?.delivery ?? {};
    if (typeof ack === "number") {
        yield isSent ? [`ack ${ack}`, "good"] : [`batch ${ack}`, ""];
    }
    yield* (delivery.verdicts ?? []).map(verdict);
    if (message.channel === "/service/delivery" && Array.isArray(message.data)) {
        yield* message.data.map(verdict);
    }
    if (delivery.pending) {
        yield [`pending ${delivery.pending.join(", ")}`, "warn"];
    }
    if (delivery.seq !== undefined) {
        yield [`seq ${delivery.seq}`, ""];
    }
    if (delivery.redelivered) {
        yield [`again ×${delivery.redelivered}`, "warn"];
    }
    if (delivery.key) {
        yield ["key", ""];
    }
    if (message.successful === false) {
        yield [message.error ?? "failed", "bad"];
    } else if (message.successful && !message.channel.startsWith("/meta/")) {
        yield ["answered", ""];
    }
}

export class Wire {
    #list;

    constructor(list) {
        this.#list = list;
    }

    incoming(message) {
        this.#show(message, false);
        return message;
    }

    outgoing(message) {
        this.#show(message, true);
        return message;
    }

    #show(message, isSent) {
        const list = this.#list;
        const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
        list.append(this.#item(message, isSent));
        if (list.children.length > MOST) {
            list.firstElementChild.remove();
        }
        if (isAtEnd) {
            list.scrollTop = list.scrollHeight;
        }
    }

    #item(message, isSent) {
        const item = node("li", isSent ? "sent" : "received", "");
        const details = document.createElement("details");
        const summary = document.createElement("summary");
        summary.append(node("span", "hidden", isSent ? "sent " : "received "));
        summary.append(node("code", "", message.channel));
        for (const [text, kind] of badges(message, isSent)) {
            summary.append(" ", node("span", `badge ${kind}`, text));
        }
        if (typeof message.data?.text === "string") {
            summary.append(" ", node("span", "quote", message.data.text.slice(0, LONGEST_QUOTE)));
        }
        const json = JSON.stringify(message, null, 2).slice(0, LONGEST_JSON);
        details.append(summary);
        details.addEventListener("toggle", () => details.append(node("pre", "", json)), {once: true});
        item.append(details);
        return item;
    }
}
