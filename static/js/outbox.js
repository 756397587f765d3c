// Publishes that survive the page and the network: the outbox keeps them until they have a reply.
import {newKey} from "./key.js";
import {isRefusal, PublishRefused} from "./refusal.js";
import {Shelf} from "./shelf.js";
import {storageOf} from "./storage.js";

export {newKey} from "./key.js";
export {PublishRefused};

const LONGEST_PAUSE_MS = 30_000;
// The size of the fields that are added when a message is sent: ids, and those of extensions.
const ENVELOPE = 500;

/**
 * Sends publishes one after the other, in order, and repeats each until it is answered. Each has
 * a key by which the server recognises repeats, from all sessions of one name or of one browser:
 * people who share a browser without a login need outboxes with different names. With a login, the
 * publishes of a subject wait until that subject is back, and are never sent as another's.
 * Dispatches "change" when a publish was added or answered, also by another page.
 */
export class Outbox extends EventTarget {
    #cometd;
    #shelf;
    #listeners;
    // The subject of this page: undefined before the handshake, null without a login.
    #subject;
    // What waits for its reply.
    #sent;
    #isClosed = false;
    #failures = 0;
    #timer;

    constructor(cometd, {name = "default", subject, storage = storageOf("localStorage")} = {}) {
        super();
        this.#cometd = cometd;
        this.#subject = subject;
        this.#shelf = new Shelf(
            storage,
            `holdfast.outbox.${name}.`,
            () => this.dispatchEvent(new Event("change")),
            (...settled) => this.#settled(...settled),
        );
        this.#listeners = [
            cometd.addListener("/meta/handshake", (reply) => reply.successful && this.#greet(reply)),
            cometd.addListener("/meta/connect", ({successful}) => {
                if (successful) {
                    this.#failures = 0;
                    this.#send();
                }
            }),
        ];
    }

    /** The unanswered publishes, in order. */
    get entries() {
        return this.#shelf.entries;
    }

    /** Whether the storage has all entries; not if it is forbidden or was full. */
    get isKept() {
        return this.#shelf.isKept;
    }

    /**
     * Adds a publish; resolves with the server's reply or rejects with `PublishRefused`. After a
     * reload the publish is still sent, but without a promise. Throws if it can never be sent.
     */
    publish(channel, data, {ext = {}, ...props} = {}) {
        const key = newKey();
        // Publishes to services have no key: services recognise repeats by their data, if at all.
        const delivery = channel.startsWith("/service/") ? {} : {delivery: {...ext.delivery, key}};
        const sent = {...props, ext: {...ext, ...delivery}};
        const entry = {key, channel, data, props: sent, subject: this.#subject};
        const most = this.#cometd.getConfiguration().maxSendBayeuxMessageSize;
        if (JSON.stringify(entry).length + ENVELOPE > most) {
            throw new RangeError(`the message is too long (maxSendBayeuxMessageSize, ${most})`);
        }
        const answered = new Promise((resolve, reject) =>
            this.#shelf.add(entry, {resolve, reject}),
        );
        // Callers that ignore the promise see refusals by the event.
        answered.catch(() => {});
        this.#send();
        return answered;
    }

    /** Stops sending; the next outbox of this name continues. */
    close() {
        this.#listeners.forEach((each) => this.#cometd.removeListener(each));
        this.#shelf.close();
        clearTimeout(this.#timer);
        this.#isClosed = true;
    }

    #greet({ext}) {
        const subject = ext?.authentication?.subject ?? null;
        if (this.#subject === undefined) {
            // This page published these before it knew its subject.
            this.#shelf.changeOwn((entry) => ({...entry, subject}));
        }
        this.#subject = subject;
        // cometd.js drops what waits in a session that ends, silently.
        this.#sent = undefined;
    }

    /** Whether to publish: not between sessions, or cometd.js would keep it for another subject. */
    get #mayPublish() {
        const isAway = this.#cometd.isDisconnected() || this.#cometd.getStatus() === "handshaking";
        return !this.#sent && !this.#isClosed && !isAway;
    }

    #send() {
        clearTimeout(this.#timer);
        const subject = this.#subject ?? null;
        const isMine = (entry) => (entry.subject ?? null) === subject;
        const next = this.#mayPublish ? this.#shelf.find(isMine) : undefined;
        if (next === undefined) {
            return;
        }
        this.#sent = next;
        const {channel, data, props} = next;
        try {
            this.#cometd.publish(channel, data, props, (reply) => this.#answered(next, reply));
        } catch (error) {
            // For example, the channel does not exist.
            this.#answered(next, {channel, successful: false, error: `400::${error.message}`});
        }
    }

    #answered(entry, reply) {
        if (this.#isClosed) {
            return;
        }
        const isLatest = this.#sent === entry;
        this.#sent = isLatest ? undefined : this.#sent;
        if (reply.successful || isRefusal(reply)) {
            this.#failures = 0;
            this.#shelf.settle(entry.name, reply);
            this.#send();
        } else if (isLatest) {
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
