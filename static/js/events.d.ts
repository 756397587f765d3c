import type {ErrorText, EventMessage} from "./wire.js";

export type Heard = Pick<EventMessage, "channel" | "data">;

export interface Notice {
    error: ErrorText;
    channel?: string;
    /** Between which cursors messages may be missing. */
    lost?: {from: number; to: number};
}

export interface ListenOptions {
    /** Where to begin: "now", "-1" for all that is kept, or an id that a listener was called with. */
    after?: string;
    /** Called with what else a page has to know. After "end" or "expired", nothing comes any more. */
    notice?: (name: "lost" | "missing" | "unavailable" | "end" | "expired", said: Notice) => void;
    /** Where /events is, if not at the page's own origin; it may have a ticket. */
    url?: string | URL;
}

/** Calls `hear` with each message and the id behind it; returns a function that ends this. */
export function listen(
    channel: string,
    hear: (message: Heard, id: string) => void,
    options?: ListenOptions,
): () => void;
