// Verdicts, whatever the client: tells the server the outcome of each message in the listeners.

import {Hints} from "./hints.js";
import {HOLDBACK, Ledger, isOfType} from "./ledger.js";
import {callListener} from "./listeners.js";

const SERVICE = "/service/delivery";
// Finds the unreadable verdict that an error names.
const UNREADABLE = /^400:[^:]*\bverdicts\[(\d+)\].*:delivery_invalid$/;

/**
 * Sees all messages of a client, and calls its listeners. `options` are those of the handshake; with
 * a storage in `memory`, it remembers finished messages over reloads.
 * Dispatches "change" when one of the fields below, or `pending`, may have changed.
 */
export class Receiver extends EventTarget {
    /** The session's full name, whether it was resumed, and how many messages waited for it. */
    session;
    isResumed = false;
    waiting = 0;
    /** The subscriptions that ended while no client was there. */
    lostSubscriptions = [];
    /** Whether the server holds messages back, as far as this client knows. */
    isHeldBack = false;
    /** What the next handshake requests, once: false holds messages back, true releases them. */
    nextActive;

    #options;
    #ledger;
    #client;
    #isAgreed = false;
    #isWoken = false;
    #hints = new Hints();
    // The connect that has no reply yet.
    #connect;

    constructor(options = {}, memory = {}) {
        super();
        this.#options = options;
        this.#ledger = new Ledger(memory);
    }

    /** How many messages listeners are still processing. */
    get pending() {
        return this.#ledger.size;
    }

    /** The client is a `CometD` object, or has its `publish`, `isDisconnected`, `onListenerException`. */
    attach(client) {
        this.#client = client;
    }

    /** Has a listener hear a message, and records what it throws, at once or later. */
    call(message, listener) {
        const said = message.ext?.delivery;
        const entry = said && this.#ledger.find(said);
        const onFault = (error) => this.#client.onListenerException?.(error, undefined, false, message);
        callListener(listener, entry, () => this.#wake(), onFault);
    }

    outgoing(message) {
        if (message.channel === "/meta/handshake") {
            const active = this.nextActive !== undefined && {dispatcherActive: this.nextActive};
            message.ext = {...message.ext, delivery: {...this.#options, ...active}};
        } else if (message.channel === "/meta/connect" && this.#isAgreed) {
            this.#tell(message);
        } else if (message.channel === "/meta/disconnect" && this.#ledger.verdicts.length) {
            this.#say(message, {verdicts: this.#ledger.verdicts});
        }
        return message;
    }

    incoming(message) {
        const {channel, successful, ext} = message;
        if (channel === "/meta/handshake") {
            if (successful) {
                this.#begin(ext ?? {});
            }
        } else if (channel === "/meta/connect") {
            this.#hear(message);
        } else if (this.#isAgreed && ext?.delivery?.seq !== undefined) {
            return this.#take(ext.delivery) ? message : null;
        }
        return message;
    }

    #begin({delivery, ack}) {
        this.#isAgreed = typeof delivery === "object";
        const hasAcks = ack === true || ack?.enabled === true;
        this.#hints.begin(this.#isAgreed, hasAcks);
        this.#ledger.begin(hasAcks);
        this.nextActive = undefined;
        this.session = delivery?.session?.name;
        this.isResumed = delivery?.resumed === true;
        this.waiting = delivery?.waiting ?? 0;
        this.lostSubscriptions = delivery?.lostSubscriptions ?? [];
        this.isHeldBack = delivery?.dispatcherActive === false;
        this.#changed();
    }

    /** Whether to pass a message to listeners: not if they finished it or are processing it. */
    #take(said) {
        this.isHeldBack = false;
        const isNew = this.#ledger.take(said);
        this.#wake();
        return isNew;
    }

    /** Settles after all messages of the batch have been passed to listeners. */
    #wake() {
        if (!this.#isWoken) {
            this.#isWoken = true;
            queueMicrotask(() => this.#settle());
        }
    }

    #settle() {
        this.#isWoken = false;
        const done = this.#ledger.settle();
        this.isHeldBack ||= done.some(({refusal}) => isOfType(refusal?.errorCode, HOLDBACK));
        this.#changed();
        // Other verdicts go with the connect that acks their batch, which follows soon.
        this.#reportAtOnce(done.filter(({isReported}) => isReported).map(({seq}) => seq));
    }

    #reportAtOnce(seqs) {
        const verdicts = this.#ledger.verdicts.filter(({seq}) => seqs.includes(seq));
        const isHeld = this.#connect !== undefined && !this.#client.isDisconnected();
        if (isHeld && verdicts.length > 0) {
            this.#client.publish(SERVICE, verdicts, {}, (reply) => this.#settled(reply, verdicts));
        }
    }

    #tell(message) {
        const {verdicts} = this.#ledger;
        const pending = this.#ledger.pending();
        this.#connect = {id: message.id, verdicts};
        if (verdicts.length || pending.length) {
            const said = {...(verdicts.length && {verdicts}), ...(pending.length && {pending})};
            this.#say(message, said);
        }
    }

    #say(message, said) {
        message.ext = {...message.ext, delivery: {...message.ext?.delivery, ...said}};
    }

    #hear(reply) {
        this.#hints.hear(reply);
        if (reply.id === this.#connect?.id) {
            this.#settled(reply, this.#connect.verdicts);
            this.#connect = undefined;
        }
    }

    /** Sends verdicts again that did not arrive; replaces unreadable ones. */
    #settled({successful, error}, verdicts) {
        if (successful) {
            this.#ledger.forget(verdicts);
        } else {
            const [, place] = UNREADABLE.exec(error ?? "") ?? [];
            this.#ledger.rephrase(verdicts[place], error);
        }
    }

    #changed() {
        this.dispatchEvent(new Event("change"));
    }
}
