// An extension that shows the messages on the wire. Registered first, it sees them as they are sent.
import {badge, h} from "../dom.js";
import {atItsEnd} from "./view.js";

const MOST = 150;
const LONGEST_QUOTE = 80;
const LONGEST_JSON = 20_000;

/** Returns an extension that writes to this list. */
export const wireOf = (list) => ({
    incoming: (message) => show(list, message, false),
    outgoing: (message) => show(list, message, true),
});

function show(list, message, isSent) {
    atItsEnd(list, () => {
        list.append(item(message, isSent));
        if (list.children.length > MOST) {
            list.firstElementChild.remove();
        }
    });
    return message;
}

function item(message, isSent) {
    const {channel, data} = message;
    const quote = typeof data?.text === "string" && data.text.slice(0, LONGEST_QUOTE);
    const summary = h("summary", {},
        h("span", {class: "hidden"}, isSent ? "sent " : "received "),
        h("code", {}, channel),
        [...badges(message, isSent)].map((each) => [" ", each]),
        quote !== false && [" ", h("span", {class: "quote"}, quote)],
    );
    const details = h("details", {}, summary);
    const json = JSON.stringify(message, null, 2).slice(0, LONGEST_JSON);
    details.addEventListener("toggle", () => details.append(h("pre", {}, json)), {once: true});
    return h("li", {class: isSent ? "sent" : "received"}, details);
}

/** The notable parts of a message. */
function* badges({channel, data, ext, successful, error}, isSent) {
    const ack = ext?.ack;
    const delivery = ext?.delivery ?? {};
    if (typeof ack === "number") {
        yield isSent ? badge(`ack ${ack}`, "good") : badge(`batch ${ack}`);
    }
    yield* (delivery.verdicts ?? []).map(verdict);
    if (channel === "/service/delivery" && Array.isArray(data)) {
        yield* data.map(verdict);
    }
    if (delivery.pending) {
        yield badge(`pending ${delivery.pending.join(", ")}`, "warn");
    }
    if (delivery.seq !== undefined) {
        yield badge(`seq ${delivery.seq}`);
    }
    if (delivery.redelivered) {
        yield badge(`again ×${delivery.redelivered}`, "warn");
    }
    if (delivery.key) {
        yield badge("key");
    }
    if (successful === false) {
        yield badge(error ?? "failed", "bad");
    } else if (successful && !channel.startsWith("/meta/")) {
        yield badge("answered");
    }
}

const verdict = ({seq, state, errorCode}) =>
    badge(`verdict ${seq}: ${errorCode ?? state}`, errorCode ? "bad" : "good");
