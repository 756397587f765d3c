// A minimal Bayeux client: all that the protocol requires, with fetch and nothing else.
const PATIENCE_MS = 2000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** `show` is called with states, messages and all traffic on the wire. */
export class Client {
    #advice = {reconnect: "handshake", interval: 0};
    #lastId = 0;
    #clientId;
    #isLeaving = false;

    constructor(url, channel, show) {
        Object.assign(this, {url, channel, show});
    }

    /** Runs until the client leaves or the server ends the session. */
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

    /** Also ends the held connect; if the server does not know this client, nothing is sent. */
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

    /** Sends one message; returns its reply. Waiting messages arrive in the same response. */
    async #send(message, options) {
        const sent = {...message, id: String(++this.#lastId), clientId: this.#clientId};
        const headers = {"Content-Type": "application/json"};
        const request = {method: "POST", headers, body: JSON.stringify([sent]), ...options};
        this.show.wire("sent", sent);
        const response = await fetch(this.url, request).catch(() => null);
        if (!response?.ok) {
            throw new Error(`The server did not answer (${response ? `HTTP ${response.status}` : "unreachable"}).`);
        }
        const received = await response.json();
        received.forEach((each) => this.show.wire("received", each));
        received.filter((each) => "data" in each).forEach((each) => this.show.message(each.data));
        const reply = received.find((each) => each.id === sent.id);
        this.#advice = reply.advice ?? this.#advice;
        if (!reply.successful) {
            throw new Error(`The server refused ${message.channel}: ${reply.error ?? "no reason given"}.`);
        }
        return reply;
    }
}
