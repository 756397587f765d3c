import type {RequestMode} from "./wire.js";

export interface AskOptions {
    /** Milliseconds; 10000 by default. */
    timeout?: number;
    mode?: RequestMode;
    /** The media type of the data, `ext.mime`; JSON if absent. */
    mime?: string;
    /** Resolve with the message of the reply, which has `ext.mime`, instead of its data. */
    whole?: boolean;
}

/** What the extension adds to cometd: `cometd as CometD & Asks`. */
export interface Asks {
    /** Resolves with the data of the reply; in the mode "all", with those of all replies. */
    ask<T = unknown>(channel: string, data: unknown, options?: AskOptions): Promise<T>;
    /**
     * Replies to a request as a listener got it. Without data, the reply has the data of the request
     * and its `ext.mime`; other data are JSON, unless `props.ext.mime` says otherwise.
     */
    reply(request: object, data?: unknown, props?: object): void;
}

/** The error of a failed request; `message` is the server's, such as "404:/power:no_responders". */
export class RequestError extends Error {
    constructor(error: string, data?: unknown);
    readonly code: number;
    readonly data?: unknown;
}

/** Register with cometd.js before the handshake. */
export class RequestExtension {
    registered(name: string, cometd: object): void;
    unregistered(): void;
    incoming<M extends object>(message: M): M;
    outgoing<M extends object>(message: M): M;
}
