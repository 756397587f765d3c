// cometd.js as it comes from npm, with a transport whose server is the test: it says what arrives.
import "../js/page.js";
import {setMaxListeners} from "node:events";
import {AckExtension, CometD, Transport} from "cometd";

/** A turn of the event loop: all that was said is listened to, and answered. */
export const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

/** As the server numbers and names them. */
export const event = (seq, {id = `node-${seq}`, channel = "/orders", ...more} = {}) => ({
    channel,
    data: {seq},
    ext: {delivery: {id, seq, ...more}},
});

class Script extends Transport {
    sent = [];

    accept() {
        return true;
    }

    send(envelope) {
        envelope.messages.forEach((message) => {
            this.sent.push({...JSON.parse(JSON.stringify(message)), envelope});
        });
    }
}

export class Client {
    cometd = new CometD();
    script = new Script();

    constructor({delivery, withAcks = true} = {}) {
        this.cometd.unregisterTransports();
        this.cometd.registerTransport("script", this.script);
        this.cometd.configure({url: "http://server/cometd", logLevel: "error", backoffIncrement: 1});
        if (withAcks) {
            this.cometd.registerExtension("ack", new AckExtension());
        }
        if (delivery !== undefined) {
            this.cometd.registerExtension("delivery", delivery);
        }
    }

    /** The latest message that was sent on the channel. */
    sent(channel) {
        return this.script.sent.findLast((message) => message.channel === channel);
    }

    count(channel) {
        return this.script.sent.filter((message) => message.channel === channel).length;
    }

    /** Answers the latest message on a channel; what comes before it travels along. */
    async answer(channel, reply = {}, events = []) {
        const {id, envelope} = this.sent(channel);
        envelope.onSuccess([...events, {channel, id, successful: true, ...reply}]);
        await turn();
    }

    /** The connection breaks under the latest message on a channel. */
    async fail(channel) {
        const {envelope} = this.sent(channel);
        envelope.onFailure({}, envelope.messages, {reason: "broken"});
        await turn();
    }

    async handshake(ext = {ack: true, delivery: {dispatcherActive: true}}) {
        await this.answer("/meta/handshake", {
            clientId: "me",
            version: "1.0",
            supportedConnectionTypes: ["script"],
            advice: {reconnect: "retry", interval: 0, timeout: 30000},
            ext,
        });
    }

    async arrive(ext) {
        this.cometd.handshake();
        await this.handshake(ext);
        await this.batch(1);
    }

    /** The server answers the connect that is held. */
    batch(number, events = []) {
        return this.answer("/meta/connect", {ext: {ack: number}}, events);
    }

    /** What the client says of deliveries with the connect that it sent last. */
    get said() {
        return this.sent("/meta/connect").ext?.delivery ?? {};
    }
}

// Pages hear of storage by their window; here all of them have one, and know theirs by its area.
const pages = new EventTarget();
setMaxListeners(0, pages);
globalThis.addEventListener ??= pages.addEventListener.bind(pages);
globalThis.removeEventListener ??= pages.removeEventListener.bind(pages);

/** What `localStorage` is, in one of the pages that share it. */
export class FakeStorage {
    #items;
    #views;

    constructor(other) {
        this.#items = other === undefined ? new Map() : other.#items;
        this.#views = other === undefined ? [] : other.#views;
        this.#views.push(this);
    }

    get length() {
        return this.#items.size;
    }

    key(index) {
        return [...this.#items.keys()][index] ?? null;
    }

    getItem(name) {
        return this.#items.get(name) ?? null;
    }

    setItem(name, value) {
        this.#items.set(name, String(value));
        this.#tell(name, String(value));
    }

    removeItem(name) {
        if (this.#items.delete(name)) {
            this.#tell(name, null);
        }
    }

    clear() {
        this.#items.clear();
        this.#tell(null, null);
    }

    /** All other pages hear of it, later. */
    #tell(key, newValue) {
        for (const storageArea of this.#views.filter((view) => view !== this)) {
            const event = Object.assign(new Event("storage"), {storageArea, key, newValue});
            queueMicrotask(() => pages.dispatchEvent(event));
        }
    }
}

/** Storage without room, or forbidden after it was found. */
export class FullStorage extends FakeStorage {
    setItem() {
        throw new Error("QuotaExceededError");
    }
}
