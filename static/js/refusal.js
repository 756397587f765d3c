// Replies after which a publish is not worth repeating.

// Error codes after which the same publish may succeed; codes of whole requests after which it
// never will; and close codes of sockets for messages that the server cannot (1007) or will not
// (1009) read.
const PASSING = new Set(["402", "408", "429"]);
const HOPELESS = new Set([400, 413, 1007, 1009]);
// The server's own code failed on this publish, and would fail again.
const SERVER_FAULT = "500";

/** The error of a publish that the server will never accept. */
export class PublishRefused extends Error {
    constructor(reply) {
        super(reply.error ?? reply.failure?.reason ?? "refused");
        Object.assign(this, {name: "PublishRefused", reply});
    }
}

/** Whether a reply refuses for good; a reply without an error leaves the outcome unknown. */
export function isRefusal({error, failure}) {
    const number = String(error ?? "").slice(0, 3);
    const code = failure?.websocketCode ?? failure?.httpCode;
    const isFinal = number.startsWith("4") ? !PASSING.has(number) : number === SERVER_FAULT;
    return isFinal || HOPELESS.has(code);
}
