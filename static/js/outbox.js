// Publishes that survive the page and the network: kept until the server has answered them.
import {Shelf} from "./shelf.js";
import {storageOf} from "./storage.js";

const LONGEST_PAUSE_MS = 30_000;
// Error codes after which the same publish may succeed; codes of whole requests after which it
// never will; and close codes of sockets for messages that the server cannot (1007) or will not
// (1009) read.
const PASSING = new Set(["402", "408", "429"]);
const HOPELESS = new Set([400, 413, 1007, 1009]);
// The server's own code fails on this publish, and would fail again.
const SERVER_FAULT = "500";
// Fields added when a message is sent: ids, and those of extensions.
const ENVELOPE = 500;

/** The server will never accept this publish. */
export class PublishRefused extends Error {
    constructor(reply) {
        super(reply.error ?? reply.failure?.reason ?? "refused");
        Object.assign(this, {name: "PublishRefused", reply});
    }
}

/** An unguessable value; pages loaded without TLS have no `randomUUID`. */
export const newKey = () =>
    Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-");

/** No error at all means that the connection failed: the outcome of the publish is unknown. */
function isRefusal({error, failure}) {
    const number = String(error ?? "").slice(0, 3);
    const code = failure?.websocketCode ?? failure?.httpCode;
    const isFinal = number.startsWith("4") ? !PASSING.has(number) : number === SERVER_FAULT;
    return isFinal || HOPELESS.has(code);
}

/**
 * Sends publishes one after the other, in order, and repeats each until it is answered. Each has
 * a key by which the server recognises repeats, from all sessions of one name or of one browser:
 * people who share a browser need outboxes with different names.
 * Dispatches "change" when a publish was added or answered, also by another page.
 */
export class Outbox extends EventTarget {
    #cometd;
    #shelf;
    #listener;
    #isSending = false;
    #isClosed = false;
    #failures = 0;
    #timer;

    constructor(cometd, {name = "default", storage = storageOf("localStorage")} = {}) {
        super();
        this.#cometd = cometd;
        this.#shelf = new Shelf(
            storage,
            `holdfast.outbox.${name}.`,
            () => this.dispatchEvent(new Event("change")),
            (...settled) => this.#settled(...settled),
        );
        this.#listener = cometd.addListener("/meta/connect", ({successful}) => {
            if (successful) {
                this.#failures = 0;
                this.#send();
            }
        });
    }

    /** The unanswered publishes, in order. */
    get entries() {
        return this.#shelf.entries;
    }

    /** False if something exists in this page only: storage is forbidden or was full. */
    get isKept() {
        return this.#shelf.isKept;
    }

    /**
     * Resolves with the server's reply or rejects with `PublishRefused`. After a reload the publish
     * is still sent, but without a promise. Throws if it can never be sent.
     */
    publish(channel, data, {ext = {}, ...props} = {}) {
        const key = newKey();
        // Publishes to services have no key: services recognise repeats by their data, if at all.
        const delivery = channel.startsWith("/service/") ? {} : {delivery: {...ext.delivery, key}};
        const entry = {key, channel, data, props: {...props, ext: {...ext, ...delivery}}};
        const most = this.#cometd.getConfiguration().maxSendBayeuxMessageSize;
        if (JSON.stringify(entry).length + ENVELOPE > most) {
            throw new RangeError(`longer than cometd.js sends (maxSendBayeuxMessageSize, ${most})`);
        }
        const answered = new Promise((resolve, reject) =>
            this.#shelf.add(entry, {resolve, reject}),
        );
        // Callers that ignore the promise learn of refusals by the event.
        answered.catch(() => {});
        this.#send();
        return answered;
    }

    /** Stops sending; the next outbox of this name continues. */
    close() {
        this.#cometd.removeListener(this.#listener);
        this.#shelf.close();
        clearTimeout(this.#timer);
        this.#isClosed = true;
    }

    #send() {
        clearTimeout(this.#timer);
        const isBusy = this.#isSending || this.#isClosed || this.#cometd.isDisconnected();
        const next = isBusy ? undefined : this.#shelf.first;
        if (next === undefined) {
            return;
        }
        this.#isSending = true;
        const {name, channel, data, props} = next;
        try {
            this.#cometd.publish(channel, data, props, (reply) => this.#answered(name, reply));
        } catch (error) {
            // For example, there is no such channel.
            this.#answered(name, {channel, successful: false, error: `400::${error.message}`});
        }
    }

    #answered(name, reply) {
        if (this.#isClosed) {
            return;
        }
        this.#isSending = false;
        if (reply.successful || isRefusal(reply)) {
            this.#failures = 0;
            this.#shelf.settle(name, reply);
            this.#send();
        } else {
            this.#sendLater();
        }
    }

    #settled(entry, reply, {resolve, reject} = {}) {
        if (reply.successful) {
            resolve?.(reply);
        } else {
            reject?.(new PublishRefused(reply));
            this.dispatchEvent(new CustomEvent("refused", {detail: {...entry, reply}}));
        }
    }

    #sendLater() {
        const pause = Math.min(500 * 2 ** this.#failures, LONGEST_PAUSE_MS);
        this.#failures += 1;
        this.#timer = setTimeout(() => this.#send(), pause);
    }
}
