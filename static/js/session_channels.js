// The channels of a session, for components: cometd.js subscribes, and verdicts are those of delivery.js.
import {Channels} from "./channels.js";
import {matches} from "./event_stream.js";
import {Refuse} from "./listeners.js";

const EVERYTHING = "/**";
const PAUSE_MS = 1000;
// How long messages that waited for a named session wait for the components of a page that is loading.
const LOADING_MS = 10_000;

export class SessionChannels extends Channels {
    #cometd;
    #delivery;
    // Messages that came before anybody watched their channel, and the listener that takes them.
    #early = new Map();
    #taker;
    #loading;
    #isConnected;
    #error;

    /** The extension may be missing; then nothing is refused, held back or waiting. */
    constructor(cometd, delivery) {
        super();
        [this.#cometd, this.#delivery] = [cometd, delivery];
        this.#hear({successful: cometd.getStatus() === "connected"});
        delivery?.addEventListener("change", () => this.#tell());
        cometd.addListener("/meta/handshake", ({successful, error}) => {
            this.#hear({successful: false, error});
            if (successful) {
                this.#begin();
            }
        });
        cometd.addListener("/meta/connect", (reply) => this.#hear(reply));
        cometd.addListener("/meta/disconnect", () => this.#hear({}));
    }

    /** Refuses a message that waits for it. Returns whether it did. */
    refuse(message, errorCode, reason, options) {
        const refusal = new Refuse(errorCode, reason, options);
        return this.settle(message, ({reject}) => reject(refusal));
    }

    begin(name, channel) {
        if (name === EVERYTHING) {
            // cometd.js would not subscribe to a pattern that has a listener.
            this.#drop(this.#taker);
        }
        if (this.#mayAsk) {
            this.#subscribe(name, channel);
        }
        for (const [message, resolve] of this.#early) {
            if (matches(name, message.channel)) {
                this.#early.delete(message);
                resolve(channel.add(message));
            }
        }
        return () => {
            const {listener, isAlone} = channel;
            channel.listener = undefined;
            if (listener && !isAlone && this.#mayAsk) {
                this.#cometd.unsubscribe(listener);
            } else {
                this.#drop(listener);
            }
        };
    }

    /** Between sessions cometd.js takes no subscriptions; they follow with the next one. */
    get #mayAsk() {
        return !this.#cometd.isDisconnected() && this.#cometd.getStatus() !== "handshaking";
    }

    #hear({successful, error}) {
        this.#isConnected = successful === true && !this.#cometd.isDisconnected();
        // A lost connection has none, and is not the reason if the server ended the session before.
        this.#error = successful ? undefined : error ?? this.#error;
        this.#tell();
    }

    #tell() {
        const {isHeldBack = false, waiting = 0} = this.#delivery ?? {};
        const [isConnected, error] = [this.#isConnected, this.#error];
        this.changeAll({isConnected, isHeldBack, waiting, error});
    }

    /** Subscribes in a new session to all that components watch. */
    #begin() {
        if (this.#delivery?.isResumed && !this.watched.some(([name]) => name === EVERYTHING)) {
            this.#take();
        }
        this.#cometd.batch(() => this.watched.forEach((each) => this.#subscribe(...each)));
    }

    #subscribe(name, channel) {
        this.#drop(channel.listener);
        const hear = (message) => channel.add(message);
        const subscription = this.#cometd.subscribe(name, hear, ({successful, error}) => {
            if (channel.listener !== subscription) {
                return;
            }
            channel.change({error: successful ? undefined : error});
            if (!successful && !error) {
                // The network broke: cometd.js has removed the listener, but the server may have the
                // subscription.
                const alone = this.#cometd.addListener(name, hear);
                Object.assign(channel, {listener: alone, isAlone: true});
                const again = () => this.#mayAsk && this.#subscribe(name, channel);
                setTimeout(() => alone === channel.listener && again(), PAUSE_MS);
            }
        });
        Object.assign(channel, {listener: subscription, isAlone: false});
    }

    #drop(listener) {
        if (listener) {
            this.#cometd.removeListener(listener);
        }
    }

    /** For some time, takes what comes on channels that no component watches yet. */
    #take() {
        this.#drop(this.#taker);
        this.#taker = this.#cometd.addListener(EVERYTHING, (message) => {
            const isWatched = this.watched.some(([name]) => matches(name, message.channel));
            const isEarly = message.ext?.delivery?.subscription && !isWatched;
            return isEarly && new Promise((resolve) => this.#early.set(message, resolve));
        });
        clearTimeout(this.#loading);
        this.#loading = setTimeout(() => this.#stopTaking(), LOADING_MS);
    }

    /** What no component has come for counts as processed, like all that finds no listener. */
    #stopTaking() {
        this.#drop(this.#taker);
        this.#early.forEach((resolve) => resolve());
        this.#early.clear();
    }
}
