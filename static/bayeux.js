// Bayeux by hand: all that a client has to do, with fetch and nothing else.
const PATIENCE_MS = 2000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** `show` is told of states, of messages and of everything that passes on the wire. */
export class Client {
    #advice = {reconnect: "handshake", interval: 0};
    #lastId = 0;
    #clientId;
    #isLeaving = false;

    constructor(url, channel, show) {
        Object.assign(this, {url, channel, show});
    }

    /** Lives until it leaves, or the server wants no more of it. */
    async run() {
        while (!this.#isLeaving && this.#advice.reconnect !== "none") {
            try {
                await (this.#advice.reconnect === "handshake" ? this.#begin() : this.#connect());
                await pause(this.#advice.interval);
            } catch (error) {
                this.show.state(error.message, "bad");
                await pause(Math.max(this.#advice.interval, PATIENCE_MS));
            }
        }
    }

    publish = (data) => this.#send({channel: this.channel, data});

    /** The held connect is answered, too; a server that knows nothing of us need not know this. */
    leave() {
        this.#isLeaving = true;
        return this.#send({channel: "/meta/disconnect"}, {keepalive: true}).catch(() => null);
    }

    async #begin() {
        this.#clientId = undefined;
        const supportedConnectionTypes = ["long-polling"];
        const hello = {channel: "/meta/handshake", version: "1.0", supportedConnectionTypes};
        this.#clientId = (await this.#send(hello)).clientId;
        const subscribed = this.#send({channel: "/meta/subscribe", subscription: this.channel});
        await subscribed.catch((error) => this.leave().then(() => Promise.reject(error)));
    }

    async #connect() {
        await this.#send({channel: "/meta/connect", connectionType: "long-polling"});
        const how = this.#advice["multiple-clients"] ? ", now and then: another tab does too" : "";
        this.show.state(`Listening on ${this.channel}${how}.`, "good");
    }

    /** Sends one message; returns its reply. What waited for this client comes along with it. */
    async #send(message, options) {
        const sent = {...message, id: String(++this.#lastId), clientId: this.#clientId};
        const headers = {"Content-Type": "application/json"};
        const request = {method: "POST", headers, body: JSON.stringify([sent]), ...options};
        this.show.wire("sent", sent);
        const response = await fetch(this.url, request).catch(() => null);
        if (!response?.ok) {
            throw new Error(`No answer (${response ? `HTTP ${response.status}` : "not reached"}).`);
        }
        const received = await response.json();
        received.forEach((each) => this.show.wire("received", each));
        received.filter((each) => "data" in each).forEach((each) => this.show.message(each.data));
        const reply = received.find((each) => each.id === sent.id);
        this.#advice = reply.advice ?? this.#advice;
        if (!reply.successful) {
            throw new Error(`${message.channel} is refused: ${reply.error ?? "no reason given"}.`);
        }
        return reply;
    }
}
