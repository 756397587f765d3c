// Requests for cometd.js: asks the subscribers of a channel, and waits for the reply.

export class RequestError extends Error {
    constructor(error, data) {
        super(error);
        this.code = parseInt(error);
        this.data = data;
    }
}

/** Adds `ask` and `reply` to cometd. Register it before the handshake. */
export class RequestExtension {
    #cometd;
    #ret;
    #serial = Math.floor(Math.random() * 1e6);
    #waiting = new Map();

    registered(name, cometd) {
        this.#cometd = cometd;
        cometd.ask = (...all) => this.#ask(...all);
        cometd.reply = ({data, ext: {replyTo, mime}}, ...own) => {
            cometd.publish(replyTo, ...(own.length ? own : [data, {ext: {mime}}]));
        };
    }

    unregistered() {
        delete this.#cometd.ask;
        delete this.#cometd.reply;
    }

    outgoing(message) {
        if (message.channel === "/meta/handshake") {
            message.ext = {...message.ext, request: this.#ret ?? true};
        }
        return message;
    }

    incoming(message) {
        const {channel, successful, ext} = message;
        if (channel === "/meta/handshake" && successful && ext?.ret !== this.#ret) {
            this.#ret = ext?.ret;
            this.#waiting.forEach((hear) => hear({error: "402::session_lost"}));
        }
        // A client that replies to itself also gets the reply to its publish.
        successful ?? this.#waiting.get(channel)?.(message);
        return message;
    }

    #ask(channel, data, {timeout = 10000, mode = "first", mime, whole} = {}) {
        const replyTo = `${this.#ret}/${4e6 + (this.#serial++ % 1e6)}`;
        const replies = [];
        return new Promise((resolve, reject) => {
            const end = (settle, value) => {
                clearTimeout(timer);
                this.#waiting.delete(replyTo);
                settle(value);
            };
            const hear = (message, {data, ext, error} = message) => {
                const reply = whole ? message : data;
                if (error || (ext?.status === "ERROR" && mode !== "all")) {
                    end(reject, new RequestError(error ?? "500::responder_error", data));
                } else if (mode !== "all") {
                    end(resolve, reply);
                } else if (ext?.status === "END") {
                    end(resolve, replies);
                } else {
                    replies.push(reply);
                }
            };
            // The server reports the timeout first, unless it is unreachable.
            const {maxNetworkDelay} = this.#cometd.getConfiguration();
            const timer = setTimeout(hear, timeout + maxNetworkDelay, {error: "408::timeout"});
            this.#waiting.set(replyTo, hear);
            const ext = {replyTo, timeout, request: mode, mime};
            this.#cometd.publish(channel, data, {ext}, (reply) => {
                reply.successful || hear({error: reply.error ?? "503::unreachable"});
            });
        });
    }
}
