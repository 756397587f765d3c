// Wraps cometd.js listeners, to record for each message what they throw, at once or later.

// The code of a refusal that names none, and of anything else that a listener throws.
const REFUSED = "user.update.error";
const UNEXPECTED = "user.update.internalError";

/** Throw this in a listener to refuse the message with an error code, perhaps temporarily. */
export class Refuse extends Error {
    constructor(errorCode = REFUSED, message = "", {delay} = {}) {
        super(message || errorCode);
        Object.assign(this, {name: "Refuse", errorCode, reason: message, delay});
    }
}

/** Wraps the listeners in the arguments of `subscribe` and `addListener`. */
export class ListenerWrapper {
    #cometd;
    #find;
    #onDone;
    #originals = {};

    /** Gets a message's entry from `find`; calls `onDone` when asynchronous work has ended. */
    constructor(cometd, find, onDone) {
        [this.#cometd, this.#find, this.#onDone] = [cometd, find, onDone];
        for (const method of ["subscribe", "addListener"]) {
            const original = cometd[method];
            this.#originals[method] = original;
            cometd[method] = (channel, ...rest) =>
                original.call(cometd, channel, ...this.#wrapped(...rest));
        }
    }

    end() {
        Object.assign(this.#cometd, this.#originals);
    }

    #wrapped(scope, callback, ...rest) {
        if (typeof scope === "function") {
            return [this.#wrap(scope), callback, ...rest];
        }
        const found = typeof callback === "string" ? scope?.[callback] : callback;
        return [scope, typeof found === "function" ? this.#wrap(found) : callback, ...rest];
    }

    #wrap(listener) {
        const wrapper = this;
        return function (message) {
            const entry = wrapper.#find(message);
            try {
                const result = listener.call(this, message);
                if (entry !== undefined && typeof result?.then === "function") {
                    wrapper.#await(entry, result, message);
                }
            } catch (error) {
                refuse(entry, error);
                if (!(error instanceof Refuse)) {
                    throw error;
                }
            }
        };
    }

    async #await(entry, result, message) {
        entry.running += 1;
        try {
            await result;
        } catch (error) {
            refuse(entry, error);
            if (!(error instanceof Refuse)) {
                this.#cometd.onListenerException?.(error, undefined, false, message);
            }
        }
        entry.running -= 1;
        this.#onDone();
    }
}

/** The text of a thrown value, which can be anything: `String` throws on {"toString": 1}. */
const textOf = (thrown) => {
    try {
        return String(thrown);
    } catch {
        return "the thrown value has no text";
    }
};

/** The text without lone surrogates, which would make the verdict unreadable. */
const whole = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

/** Records a refusal; if several listeners refuse, the first one counts. */
function refuse(entry, error) {
    if (entry !== undefined) {
        const {errorCode, reason, delay} =
            error instanceof Refuse
                ? error
                : {errorCode: UNEXPECTED, reason: error?.message ?? error};
        // An unreadable verdict would make the server refuse this connect and all later ones.
        const isDelay = Number.isFinite(delay) && delay >= 0;
        entry.refusal ??= {
            errorCode: whole(textOf(errorCode)),
            message: whole(textOf(reason)),
            ...(isDelay && {delay}),
        };
    }
}
