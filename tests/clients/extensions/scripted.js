// cometd.js as it comes from npm, with a transport whose server is the test: it says what arrives.
import "../js/page.js";
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

/** What `localStorage` is. */
export class FakeStorage {
    #items = new Map();

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
    }

    removeItem(name) {
        this.#items.delete(name);
    }
}
