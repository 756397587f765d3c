// Publishes that outlive the page and the network: kept until the server has answered them.
const LONGEST_PAUSE_MS = 30_000;
// Numbers of errors after which the same publish may succeed; of whole requests, those after which
// it never does.
const PASSING = new Set(["402", "408", "429"]);
const HOPELESS = new Set([400, 413]);
// What a message has besides when it is sent: ids, and what extensions add.
const ENVELOPE = 500;

/** The server will not take this publish, however often it is sent. */
export class PublishRefused extends Error {
    constructor(reply) {
        super(reply.error ?? "refused");
        Object.assign(this, {name: "PublishRefused", reply});
    }
}

/**
 * Sends what is given to it in order, one after the other, and again until it is answered. Each has
 * a key by which the server knows it again, from all sessions of one name, or of one browser: so
 * people who share a browser need outboxes of different names.
 * "change" is dispatched when something was added or has left.
 */
export class Outbox extends EventTarget {
    #cometd;
    #storage;
    #prefix;
    #listener;
    #handlers = new Map();
    #isSending = false;
    #isClosed = false;
    #failures = 0;
    #timer;
    #count = 0;

    constructor(cometd, {name = "default", storage = localStorage} = {}) {
        super();
        [this.#cometd, this.#storage] = [cometd, storage];
        this.#prefix = `holdfast.outbox.${name}.`;
        this.#listener = cometd.addListener("/meta/connect", ({successful}) => {
            if (successful) {
                this.#failures = 0;
                this.#send();
            }
        });
    }

    /** What is not answered yet, in order. */
    get entries() {
        return this.#names().flatMap((name) => this.#read(name) ?? []);
    }

    /**
     * Resolves with the server's reply, or rejects with `PublishRefused`; in another life of the
     * page nobody waits for it, but it is sent all the same. Throws what can never be sent.
     */
    publish(channel, data, {ext = {}, ...props} = {}) {
        const key = crypto.randomUUID();
        // Questions to services have no keys: they are known by something in their data, or not.
        const delivery = channel.startsWith("/service/") ? {} : {delivery: {...ext.delivery, key}};
        const entry = {key, channel, data, props: {...props, ext: {...ext, ...delivery}}};
        this.#count += 1;
        const order = `${String(Date.now()).padStart(15, "0")}.${String(this.#count).padStart(6, "0")}`;
        const text = JSON.stringify(entry);
        const most = this.#cometd.getConfiguration().maxSendBayeuxMessageSize;
        if (text.length + ENVELOPE > most) {
            throw new RangeError(`longer than cometd.js sends (maxSendBayeuxMessageSize, ${most})`);
        }
        this.#storage.setItem(`${this.#prefix}${order}.${key}`, text);
        const answered = new Promise((resolve, reject) => this.#handlers.set(key, {resolve, reject}));
        // Who does not look at the promise hears of refusals by the event.
        answered.catch(() => {});
        this.#changed();
        this.#send();
        return answered;
    }

    /** Sends no more; what is left is for the next outbox of this name. */
    close() {
        this.#cometd.removeListener(this.#listener);
        clearTimeout(this.#timer);
        this.#isClosed = true;
    }

    #names() {
        const names = Array.from({length: this.#storage.length}, (_, i) => this.#storage.key(i));
        return names.filter((name) => name.startsWith(this.#prefix)).sort();
    }

    /** Removes what cannot be read. */
    #read(name) {
        try {
            const entry = JSON.parse(this.#storage.getItem(name));
            if (entry.channel) {
                return entry;
            }
        } catch {
            // Written by something else.
        }
        this.#storage.removeItem(name);
        return undefined;
    }

    #send() {
        clearTimeout(this.#timer);
        const [name] = this.#names();
        const isBusy = this.#isSending || this.#isClosed;
        if (name === undefined || isBusy || this.#cometd.isDisconnected()) {
            return;
        }
        const entry = this.#read(name);
        if (entry === undefined) {
            this.#send();
            return;
        }
        this.#isSending = true;
        const {channel, data, props} = entry;
        try {
            this.#cometd.publish(channel, data, props, (reply) => this.#answered(name, entry, reply));
        } catch (error) {
            // No such channel, for example.
            this.#answered(name, entry, {channel, successful: false, error: `400::${error.message}`});
        }
    }

    #answered(name, entry, reply) {
        if (this.#isClosed) {
            return;
        }
        this.#isSending = false;
        if (!reply.successful && !this.#isRefused(reply)) {
            this.#sendLater();
            return;
        }
        if (reply.successful) {
            this.#remove(name, entry.key)?.resolve(reply);
        } else {
            this.#refuse(name, entry, reply);
        }
        this.#failures = 0;
        this.#send();
    }

    /** No error at all says that the connection failed: nobody knows what became of it. */
    #isRefused({error, failure}) {
        const number = String(error ?? "").slice(0, 3);
        return (number.startsWith("4") && !PASSING.has(number)) || HOPELESS.has(failure?.httpCode);
    }

    #refuse(name, entry, reply) {
        this.#remove(name, entry.key)?.reject(new PublishRefused(reply));
        this.dispatchEvent(new CustomEvent("refused", {detail: {...entry, reply}}));
    }

    #remove(name, key) {
        const handler = this.#handlers.get(key);
        this.#handlers.delete(key);
        this.#storage.removeItem(name);
        this.#changed();
        return handler;
    }

    #sendLater() {
        const pause = Math.min(500 * 2 ** this.#failures, LONGEST_PAUSE_MS);
        this.#failures += 1;
        this.#timer = setTimeout(() => this.#send(), pause);
    }

    #changed() {
        this.dispatchEvent(new Event("change"));
    }
}
