// Acks, named sessions, verdicts and requests for Faye's client.
import {Acks} from "./acks.js";
import {Parcels} from "./parcels.js";
import {Receiver} from "./receiver.js";
import {RequestError, RequestExtension} from "./request.js";

export {Refuse} from "./listeners.js";
export {RequestError} from "./request.js";

const HANDSHAKE = "/meta/handshake";
const CONNECT = "/meta/connect";
const CONFIGURATION = {
    // What cometd.js allows by default for the way to the server and back.
    maxNetworkDelay: 10_000,
    // Faye repeats for ever what the server does not read: more than 2 MiB.
    maxSendBayeuxMessageSize: 500_000,
};

/**
 * An extension for Faye: add it before subscribing to anything. `options` are those of the
 * handshake; with a storage in `memory`, finished messages are remembered across reloads.
 * It has the methods of a `CometD` object that the extensions for cometd.js use.
 */
export class FayeExtension {
    /** What is known of the session; dispatches "change". */
    delivery;

    #client;
    #extensions;
    #requests = new RequestExtension();
    #parcels = new Parcels();
    #listeners = new Set();
    // The number of the last handshake: messages with lower ones belong to former sessions.
    #begin = 0;
    #isConnected = false;
    #isOver = false;
    // The message that Faye is passing to listeners.
    #current;

    constructor(options = {}, memory = {}) {
        this.delivery = new Receiver(options, memory);
        this.#extensions = [new Acks(), this.delivery, this.#requests];
    }

    added(client) {
        this.#client = client;
        const {subscribe} = client;
        client.subscribe = (channel, callback, context) =>
            Array.isArray(channel)
                ? channel.map((each) => client.subscribe(each, callback, context))
                : this.#wrapped(subscribe.call(client, channel, this.#wrap(callback), context));
        this.delivery.attach(this);
        this.#requests.registered("request", this);
        const {ask} = this;
        this.ask = async (...question) => {
            if (this.#isOver) {
                throw new RequestError("503::disconnected");
            }
            // The channel for the reply is known then.
            await new Promise((resolve) => client.connect(resolve));
            return ask(...question);
        };
    }

    removed(client) {
        delete client.subscribe;
        this.#requests.unregistered();
    }

    outgoing(message, forward) {
        const {channel} = message;
        if (channel === HANDSHAKE) {
            this.#begin = numberOf(message);
            this.#isConnected = false;
        } else if (channel === "/meta/disconnect") {
            this.#isConnected = false;
            this.#isOver = true;
        } else if ("data" in message) {
            this.#parcels.complete(message);
        }
        forward(this.#extensions.reduce((sent, each) => each.outgoing(sent), message));
    }

    incoming(message, forward) {
        const {channel, successful, advice} = message;
        const isEvent = successful === undefined;
        const isLate = !isEvent && numberOf(message) < this.#begin;
        const isRefused = channel === HANDSHAKE && !successful && advice?.reconnect !== "none";
        if (isLate || isRefused) {
            // Faye would begin one more session, and forget what waits for the present handshake.
            delete message.advice;
        } else if (advice?.reconnect === "none") {
            this.#isOver = true;
        }
        // A late reply would make Faye send a second connect. Faye has no listeners any more when it
        // disconnects: the events that still come are for the next client of the session.
        if (isEvent ? this.#isOver : isLate && (channel === CONNECT || channel === HANDSHAKE)) {
            return forward(null);
        }
        if (channel === HANDSHAKE) {
            this.#isConnected = successful;
        }
        const heard = this.#extensions.reduce((passed, each) => passed && each.incoming(passed), message);
        this.#current = heard;
        forward(heard);
        this.#current = undefined;
        if (!isEvent) {
            this.#parcels.answer(message);
            this.#listeners.forEach((each) => each.channel === channel && each.listener(message));
        }
    }

    publish(channel, data, props = {}, callback = () => {}) {
        this.#parcels.add(channel, data, props, callback);
        this.#client.publish(channel, data);
    }

    isDisconnected() {
        return !this.#isConnected;
    }

    getStatus() {
        return this.#isConnected ? "connected" : "handshaking";
    }

    getConfiguration() {
        return CONFIGURATION;
    }

    /** Adds a listener for replies on a meta channel. */
    addListener(channel, listener) {
        const added = {channel, listener};
        this.#listeners.add(added);
        return added;
    }

    removeListener(added) {
        this.#listeners.delete(added);
    }

    /** Gets what a listener throws, unless it refuses the message. */
    onListenerException(error) {
        (globalThis.reportError ?? console.error)(error);
    }

    #wrapped(subscription) {
        const {withChannel} = subscription;
        subscription.withChannel = (callback, context) =>
            withChannel.call(subscription, this.#wrap(callback), context);
        return subscription;
    }

    /** Passes the message to the listener, too, and to Faye nothing that it throws. */
    #wrap(listener) {
        if (typeof listener !== "function") {
            return listener;
        }
        const extension = this;
        return function (...given) {
            const message = extension.#current ?? {};
            try {
                extension.delivery.call(message, () => listener.call(this, ...given, message));
            } catch (error) {
                extension.onListenerException(error);
            }
        };
    }
}

/** Faye numbers its messages. */
function numberOf({id}) {
    return parseInt(id, 36);
}
