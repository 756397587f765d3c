// Calls listeners, to record for each message what they throw, at once or later.

// The code of a refusal without one, and of anything else that is thrown.
const REFUSED = "user.update.error";
const UNEXPECTED = "user.update.internalError";

/** Throw this in a listener to refuse the message with an error code, perhaps temporarily. */
export class Refuse extends Error {
    constructor(errorCode = REFUSED, message = "", {delay} = {}) {
        super(message || errorCode);
        Object.assign(this, {name: "Refuse", errorCode, reason: message, delay});
    }
}

/**
 * Calls a listener without arguments for the message of `entry`, which is undefined if the message
 * needs no verdict. Rethrows what is no refusal. If the listener returns a promise, `onFault` gets
 * that instead, and `onDone` is called at the end.
 */
export function callListener(listener, entry, onDone, onFault) {
    try {
        const result = listener();
        if (entry !== undefined && typeof result?.then === "function") {
            settle(entry, result, onFault).then(onDone);
        }
    } catch (error) {
        refuse(entry, error);
        if (!(error instanceof Refuse)) {
            throw error;
        }
    }
}

async function settle(entry, result, onFault) {
    entry.running += 1;
    try {
        await result;
    } catch (error) {
        refuse(entry, error);
        if (!(error instanceof Refuse)) {
            onFault(error);
        }
    }
    entry.running -= 1;
}

/** The text of any value, without lone surrogates, which would make the verdict unreadable. */
const textOf = (value) => {
    try {
        return String(value).replace(/\p{Surrogate}/gu, "\ufffd");
    } catch {
        return "the thrown value has no text";
    }
};

/** Records a refusal; if several listeners refuse, the first one counts. */
function refuse(entry, error) {
    if (entry !== undefined) {
        const {errorCode, reason, delay} =
            error instanceof Refuse
                ? error
                : {errorCode: UNEXPECTED, reason: error?.message ?? error};
        // An unreadable verdict would make the server refuse this connect and all later ones.
        const isDelay = Number.isFinite(delay) && delay >= 0;
        const code = textOf(errorCode);
        if (!/^(user|communication)(\.[\w-]+)*$/.test(code)) {
            console.warn(`${code} is no error code such as user.order.quantity.`);
        }
        entry.refusal ??= {
            errorCode: code,
            message: textOf(reason),
            ...(isDelay && {delay}),
        };
    }
}
