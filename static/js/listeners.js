// Wraps cometd.js listeners: what they throw, at once or later, is recorded for the message.

const FAILED = "user.update.error";

/** Throw this in a listener to refuse the message with an error code, perhaps temporarily. */
export class Refuse extends Error {
    constructor(errorCode = FAILED, message = "", {delay} = {}) {
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

    /** `find` returns a message's entry; `onDone` is called when asynchronous work has ended. */
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

/** Anything can be thrown, even a message's data: `String` throws on {"toString": 1}. */
const textOf = (thrown) => {
    try {
        return String(thrown);
    } catch {
        return "what was thrown is no text";
    }
};

/** Cut between characters: half a character would make the verdict unreadable. */
const whole = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

/** If several listeners refuse, the first counts. */
function refuse(entry, error) {
    if (entry !== undefined) {
        const {errorCode = FAILED, reason = error?.message ?? error, delay} =
            error instanceof Refuse ? error : {};
        // An unreadable verdict would make the server refuse this connect and all that follow.
        const isDelay = Number.isFinite(delay) && delay >= 0;
        entry.refusal ??= {
            errorCode: whole(textOf(errorCode)),
            message: whole(textOf(reason)),
            ...(isDelay && {delay}),
        };
    }
}
