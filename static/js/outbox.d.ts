export interface Reply {
    successful: boolean;
    channel: string;
    error?: string;
    /** In place of an error, if the whole request failed. */
    failure?: {httpCode?: number; websocketCode?: number; reason?: string};
    ext?: Record<string, unknown>;
}

/** The server will never accept this publish. */
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
    /** Without a login, people who share a browser need outboxes with different names. */
    name?: string;
    /** Whose page it is, if that is known before the handshake. */
    subject?: string;
    /** Without one, publishes last only as long as the page. */
    storage?: Storage;
}

/** An unguessable value, also on pages loaded without TLS. */
export function newKey(): string;

/** Dispatches "change", and "refused" with the entry and its reply as `detail`. */
export class Outbox extends EventTarget {
    constructor(cometd: object, options?: OutboxOptions);
    readonly entries: Entry[];
    /** False if something exists in this page only: storage is forbidden or was full. */
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
