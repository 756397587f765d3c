export interface Reply {
    successful: boolean;
    channel: string;
    error?: string;
    /** Instead of an error, if the whole request failed. */
    failure?: {httpCode?: number; websocketCode?: number; reason?: string};
    ext?: Record<string, unknown>;
}

/** The server will not take this publish, however often it is sent. */
export class PublishRefused extends Error {
    constructor(reply: Reply);
    readonly reply: Reply;
}

export interface Entry {
    key: string;
    channel: string;
    data: unknown;
    props: Record<string, unknown>;
}

export interface OutboxOptions {
    /** People who share a browser need outboxes of different names. */
    name?: string;
    /** Without one it lasts as long as the page. */
    storage?: Storage;
}

/** What nobody can guess, on pages that came without TLS, too. */
export function newKey(): string;

/** Dispatches "change", and "refused" with the entry and its reply as `detail`. */
export class Outbox extends EventTarget {
    constructor(cometd: object, options?: OutboxOptions);
    readonly entries: Entry[];
    /** False while something is lost with this page: storage is forbidden, or was full. */
    readonly isKept: boolean;
    publish(channel: string, data: unknown, props?: Record<string, unknown>): Promise<Reply>;
    close(): void;
    addEventListener(
        type: "refused",
        listener: (event: CustomEvent<Entry & {reply: Reply}>) => void,
        options?: boolean | AddEventListenerOptions,
    ): void;
    addEventListener(
        type: string,
        listener: EventListenerOrEventListenerObject | null,
        options?: boolean | AddEventListenerOptions,
    ): void;
}
