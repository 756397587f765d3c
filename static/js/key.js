// Keys of publishes, by which the server recognises repeats.

/** Returns an unguessable value; pages loaded without TLS have no `randomUUID`. */
export const newKey = () =>
    Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-");
