// An extension that shows the messages on the wire. Registered first, it sees them as they are sent.
import {badge, h} from "../dom.js";
import {atItsEnd} from "./view.js";

const MOST = 150;
const LONGEST_QUOTE = 80;
const LONGEST_JSON = 20_000;

/** Returns an extension that writes to this list; `isOffline` returns whether messages stay on this page. */
export const wireOf = (list, isOffline) => ({
    incoming: (message) => show(list, message, "received"),
    outgoing: (message) => show(list, message, isOffline() ? "unsent" : "sent"),
});

/** `way` is "sent", "received" or "unsent". */
function show(list, message, way) {
    atItsEnd(list, () => {
        list.append(item(message, way));
        if (list.children.length > MOST) {
            list.firstElementChild.remove();
        }
    });
    return message;
}

function item(message, way) {
    const {channel, data} = message;
    const quote = typeof data?.text === "string" && data.text.slice(0, LONGEST_QUOTE);
    const summary = h("summary", {},
        way !== "unsent" && h("span", {class: "hidden"}, `${way} `),
        h("code", {}, channel),
        way === "unsent" && [" ", badge("not sent", "warn")],
        [...badges(message, way !== "received")].map((each) => [" ", each]),
        quote !== false && [" ", h("span", {class: "quote"}, quote)],
    );
    const details = h("details", {}, summary);
    const json = JSON.stringify(message, null, 2).slice(0, LONGEST_JSON);
    details.addEventListener("toggle", () => details.append(h("pre", {}, json)), {once: true});
    return h("li", {class: way}, details);
}

/** The notable parts of a message. */
function* badges({channel, data, ext, successful, error}, isOutgoing) {
    const ack = ext?.ack;
    const delivery = ext?.delivery ?? {};
    if (typeof ack === "number") {
        yield isOutgoing ? badge(`ack ${ack}`, "good") : badge(`batch ${ack}`);
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
        yield badge(`redelivered ×${delivery.redelivered}`, "warn");
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
