import type {PublishExt, PublishReply} from "./wire.js";

/** What cometd.js has in place of a reply if the whole request failed. */
export interface PublishFailed {
    channel: string;
    successful: false;
    error?: undefined;
    failure: {httpCode?: number; websocketCode?: number; reason?: string};
    ext?: undefined;
}

export type Reply = PublishReply | PublishFailed;

/** What a publish has beside its channel and its data. */
export interface Props {
    ext?: PublishExt;
    [own: string]: unknown;
}

/** The error of a publish that the server will never accept. */
export class PublishRefused extends Error {
    constructor(reply: Reply);
    readonly reply: Reply;
}

export interface Entry {
    key: string;
    channel: string;
    data: unknown;
    props: Props;
}

export interface OutboxOptions {
    /** Without a login, people who share a browser need outboxes with different names. */
    name?: string;
    /** The subject of the page, if it is known before the handshake. */
    subject?: string;
    /** Without a storage, publishes are lost when the page is closed. */
    storage?: Storage;
}

/** Returns an unguessable value, also on pages loaded without TLS. */
export function newKey(): string;

/** Dispatches "change", and "refused" with the entry and its reply as `detail`. */
export class Outbox extends EventTarget {
    constructor(cometd: object, options?: OutboxOptions);
    readonly entries: Entry[];
    /** Whether the storage has all entries; not if it is forbidden or was full. */
    readonly isKept: boolean;
    publish(channel: string, data: unknown, props?: Props): Promise<Reply>;
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
