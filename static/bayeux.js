// A minimal Bayeux client: everything that the protocol requires, with fetch alone.
const PAUSE_MS = 2000;
// How long a reply may take beyond the timeout of a held connect: after a sleep or a change of
// network, a dead connection reports no error.
const GRACE_MS = 15_000;
export const pause = (ms = PAUSE_MS) => new Promise((resolve) => setTimeout(resolve, ms));

export class Client {
    #advice;
    #clientId;
    #batch;
    #lastId = 0;
    #isLeaving;

    /**
     * Calls `show.begun` with the reply to each handshake, `show.connected` with the server's advice
     * after each connect, `show.failed` with errors, `show.message` with each event, and `show.wire`
     * with all traffic. The handshake has this `ext`, and all requests have these `headers`.
     * `pending` returns the `seq` of each message that has no verdict yet.
     */
    constructor(url, channels, show, {ext, headers, pending = () => []} = {}) {
        Object.assign(this, {url, channels, show, ext, headers, pending});
    }

    /** Runs until the client leaves or the server ends the session. */
    async run() {
        this.#isLeaving = false;
        this.#advice = {};
        while (!this.#isLeaving && this.#advice.reconnect !== "none") {
            try {
                await (this.#clientId ? this.#connect() : this.#begin());
                await pause(this.#advice.interval ?? 0);
            } catch (error) {
                this.show.failed(error);
                const isOver = this.#isLeaving || this.#advice.reconnect === "none";
                await (isOver || pause(Math.max(this.#advice.interval ?? 0, PAUSE_MS)));
            }
        }
        this.#clientId = undefined;
    }

    publish = (channel, data) => this.#send({channel, data});

    /** Ends the session and the held connect. */
    leave() {
        this.#isLeaving = true;
        if (this.#clientId) {
            this.#send({channel: "/meta/disconnect"}, {keepalive: true}).catch(() => null);
        }
    }

    async #begin() {
        const supportedConnectionTypes = ["long-polling"];
        const hello = {channel: "/meta/handshake", version: "1.0", supportedConnectionTypes};
        const begun = await this.#send({...hello, ext: this.ext});
        this.#clientId = begun.clientId;
        this.#batch = 0;
        this.show.begun?.(begun);
        // No request is to wait for this client: it never replies.
        const subscribe = {channel: "/meta/subscribe", ext: {delivery: {responds: false}}};
        const subscribed = this.#send({...subscribe, subscription: this.channels});
        await subscribed.catch((error) => {
            this.leave();
            throw error;
        });
    }

    /** Acknowledges the last batch, if acknowledgements were agreed, and waits for the next one. */
    async #connect() {
        const pending = this.pending();
        const ext = {...(this.ext?.ack && {ack: this.#batch}), ...(pending.length && {delivery: {pending}})};
        const reply = await this.#send({channel: "/meta/connect", connectionType: "long-polling", ext});
        this.#batch = reply.ext?.ack ?? this.#batch;
        this.show.connected(this.#advice);
    }

    /** Sends one message; returns its reply. Waiting messages arrive in the same response. */
    async #send(message, options) {
        const sent = {...message, id: String(++this.#lastId), clientId: this.#clientId};
        const headers = {"Content-Type": "application/json", ...this.headers};
        const signal = AbortSignal.timeout((this.#advice.timeout ?? 0) + GRACE_MS);
        const request = {method: "POST", headers, body: JSON.stringify([sent]), signal, ...options};
        this.show.wire?.("sent", sent);
        const response = await fetch(this.url, request).catch(() => null);
        if (!response?.ok) {
            throw unanswered(response?.status);
        }
        const received = await response.json();
        received.forEach((each) => this.show.wire?.("received", each));
        received.filter((each) => "data" in each).forEach((each) => this.show.message(each));
        const reply = received.find(({id}) => id === sent.id);
        this.#advice = reply?.advice ?? this.#advice;
        if (!reply?.successful) {
            if (this.#advice.reconnect === "handshake") {
                this.#clientId = undefined;
            }
            throw new Error(`The server refused ${message.channel}: ${reply?.error ?? "no reason given"}.`);
        }
        return reply;
    }
}

/** The error of a request that was not answered with messages; with the HTTP `status`, if it was answered. */
function unanswered(status) {
    const isElsewhere = status === 404 || status === 405;
    const text = isElsewhere ? "There is no Bayeux server at this path"
        : status ? "The server refused the request" : "The server does not answer";
    return Object.assign(new Error(`${text}${status ? ` (HTTP ${status})` : ""}.`), {status, isElsewhere});
}
