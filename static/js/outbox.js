// Publishes that outlive the page and the network: kept until the server has answered them.
import {Shelf} from "./shelf.js";
import {storageOf} from "./storage.js";

const LONGEST_PAUSE_MS = 30_000;
// Numbers of errors after which the same publish may succeed; of whole requests, those after which
// it never does, and codes of sockets that the server closes for what it cannot read (1007) or will
// not (1009).
const PASSING = new Set(["402", "408", "429"]);
const HOPELESS = new Set([400, 413, 1007, 1009]);
// The server's own code fails at this publish, and would fail again.
const SERVER_FAULT = "500";
// What a message has besides when it is sent: ids, and what extensions add.
const ENVELOPE = 500;

/** The server will not take this publish, however often it is sent. */
export class PublishRefused extends Error {
    constructor(reply) {
        super(reply.error ?? reply.failure?.reason ?? "refused");
        Object.assign(this, {name: "PublishRefused", reply});
    }
}

/** What nobody can guess; `randomUUID` is not there on pages that came without TLS. */
export const newKey = () =>
    Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-");

/** No error at all says that the connection failed: nobody knows what became of the publish. */
function isRefusal({error, failure}) {
    const number = String(error ?? "").slice(0, 3);
    const code = failure?.websocketCode ?? failure?.httpCode;
    const isFinal = number.startsWith("4") ? !PASSING.has(number) : number === SERVER_FAULT;
    return isFinal || HOPELESS.has(code);
}

/**
 * Sends what is given to it in order, one after the other, and again until it is answered. Each has
 * a key by which the server knows it again, from all sessions of one name, or of one browser: so
 * people who share a browser need outboxes of different names.
 * "change" is dispatched when something was added or has left, by another page, too.
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

    /** What is not answered yet, in order. */
    get entries() {
        return this.#shelf.entries;
    }

    /** False while something is lost with this page: storage is forbidden, or was full. */
    get isKept() {
        return this.#shelf.isKept;
    }

    /**
     * Resolves with the server's reply, or rejects with `PublishRefused`; in another life of the
     * page nobody waits for it, but it is sent all the same. Throws what can never be sent.
     */
    publish(channel, data, {ext = {}, ...props} = {}) {
        const key = newKey();
        // Questions to services have no keys: they are known by something in their data, or not.
        const delivery = channel.startsWith("/service/") ? {} : {delivery: {...ext.delivery, key}};
        const entry = {key, channel, data, props: {...props, ext: {...ext, ...delivery}}};
        const most = this.#cometd.getConfiguration().maxSendBayeuxMessageSize;
        if (JSON.stringify(entry).length + ENVELOPE > most) {
            throw new RangeError(`longer than cometd.js sends (maxSendBayeuxMessageSize, ${most})`);
        }
        const answered = new Promise((resolve, reject) =>
            this.#shelf.add(entry, {resolve, reject}),
        );
        // Who does not look at the promise hears of refusals by the event.
        answered.catch(() => {});
        this.#send();
        return answered;
    }

    /** Sends no more; what is left is for the next outbox of this name. */
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
            // No such channel, for example.
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
