// Verdicts for cometd.js.
import {Receiver} from "./receiver.js";

export {Refuse} from "./listeners.js";

/** An extension for cometd.js. Register it before subscribing to anything: it wraps the listeners. */
export class DeliveryExtension extends Receiver {
    #cometd;
    #originals = {};

    registered(name, cometd) {
        if (!cometd.isDisconnected()) {
            console.warn("Register the DeliveryExtension before the handshake: this session has no verdicts.");
        }
        this.#cometd = cometd;
        this.attach(cometd);
        for (const method of ["subscribe", "addListener"]) {
            const original = cometd[method];
            this.#originals[method] = original;
            cometd[method] = (channel, ...rest) =>
                original.call(cometd, channel, ...this.#wrapped(...rest));
        }
    }

    unregistered() {
        Object.assign(this.#cometd, this.#originals);
    }

    /** Wraps the listener in the arguments of `subscribe` and `addListener`. */
    #wrapped(scope, callback, ...rest) {
        if (typeof scope === "function") {
            return [this.#wrap(scope), callback, ...rest];
        }
        const found = typeof callback === "string" ? scope?.[callback] : callback;
        return [scope, typeof found === "function" ? this.#wrap(found) : callback, ...rest];
    }

    #wrap(listener) {
        const receiver = this;
        return function (message) {
            receiver.call(message, () => listener.call(this, message));
        };
    }
}
