// Live figures and alerts over Bayeux with acknowledgements. Each request to the console's own path
// carries the credentials.
const FIGURES = "/sys/figures";
const ALERT = "/sys/alert";
const BEARER = "Bearer ";
const PATIENCE_MS = 2000;
// How long a reply may take beyond the timeout of a held connect.
const GRACE_MS = 15_000;
// The number of event ids that are remembered, because a batch may be redelivered.
const REMEMBERED = 1000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Feed {
    #lastId = 0;
    #clientId;
    #batch;
    #isListening;
    #advice;
    #isLeaving = false;
    #heard = new Set();

    /** `hear` gets each reading, `alert` each alert, and `state` whether readings arrive. */
    constructor(url, authorization, {hear, alert, state}) {
        Object.assign(this, {url, authorization, state});
        this.listeners = new Map([[FIGURES, hear], [ALERT, alert]]);
        this.#begin();
    }

    /** Runs until `leave` is called. */
    async run() {
        while (!this.#isLeaving) {
            try {
                await (this.#clientId ? this.#connect() : this.#greet());
                await pause(this.#advice.interval ?? 0);
            } catch (error) {
                if (!this.#isListening) {
                    this.#begin();
                }
                this.state(false, error.message);
                await pause(PATIENCE_MS);
            }
        }
    }

    leave() {
        this.#isLeaving = true;
        if (this.#clientId) {
            this.#send([{channel: "/meta/disconnect"}], {keepalive: true}).catch(() => null);
        }
    }

    #begin() {
        this.#clientId = undefined;
        this.#isListening = false;
        this.#batch = 0;
        this.#advice = {};
    }

    async #greet() {
        const token = this.authorization.startsWith(BEARER) && this.authorization.slice(BEARER.length);
        const ext = {ack: true, delivery: true, ...(token && {authentication: {token}})};
        const hello = {channel: "/meta/handshake", version: "1.0", ext};
        const [reply] = await this.#send([{...hello, supportedConnectionTypes: ["long-polling"]}]);
        this.#clientId = this.#accepted(reply).clientId;
        const [subscribed] = await this.#send([{channel: "/meta/subscribe", subscription: [...this.listeners.keys()]}]);
        this.#accepted(subscribed);
        this.#isListening = true;
    }

    /** Acknowledges the last batch and waits for the next one. */
    async #connect() {
        const connect = {channel: "/meta/connect", connectionType: "long-polling"};
        const [reply] = await this.#send([{...connect, ext: {ack: this.#batch}}]);
        this.#batch = this.#accepted(reply).ext?.ack ?? this.#batch;
        this.state(true, "live");
    }

    #accepted(reply) {
        this.#advice = reply?.advice ?? this.#advice;
        if (!reply?.successful) {
            if (this.#advice.reconnect !== "retry") {
                this.#begin();
            }
            throw new Error(reply?.error ?? "The server did not answer.");
        }
        return reply;
    }

    /** Sends messages; returns their replies. Events in the same response are passed to `hear`. */
    async #send(messages, options) {
        const sent = messages.map((each) => ({...each, id: String(++this.#lastId), clientId: this.#clientId}));
        const headers = {"Content-Type": "application/json", ...(this.authorization && {Authorization: this.authorization})};
        // After a sleep or a change of network, a dead connection reports no error.
        const signal = AbortSignal.timeout((this.#advice.timeout ?? 0) + GRACE_MS);
        const request = {method: "POST", headers, body: JSON.stringify(sent), signal, ...options};
        const response = await fetch(this.url, request).catch(() => null);
        if (!response?.ok) {
            throw new Error(response ? `HTTP ${response.status}` : "unreachable");
        }
        const received = await response.json();
        received.forEach((each) => this.#hear(each));
        return sent.map(({id}) => received.find((each) => each.id === id));
    }
    #hear({channel, data, ext}) {
        const id = ext?.delivery?.id;
        if (data && !this.#heard.has(id)) {
            this.#remember(id);
            this.listeners.get(channel)?.(data);
        }
    }

    #remember(id) {
        if (id !== undefined) {
            this.#heard.add(id);
            const [oldest] = this.#heard;
            this.#heard.size > REMEMBERED && this.#heard.delete(oldest);
        }
    }
}
