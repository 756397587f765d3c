/** Throw this in a listener to refuse the message with an error code, perhaps temporarily. */
export class Refuse extends Error {
    constructor(errorCode?: string, message?: string, options?: {delay?: number});
    readonly errorCode: string;
    readonly reason: string;
    readonly delay?: number;
}

export interface SessionOptions {
    name: string;
    timeout?: number;
    maxSessions?: number;
    clearSessions?: boolean;
}

/** What the handshake requests; see docs/delivery.md. */
export interface DeliveryOptions {
    session?: string | SessionOptions;
    retries?: number;
    delay?: number;
    responseTimeout?: number;
    dispatcherActive?: boolean;
    maxEntries?: number;
    oneway?: boolean;
    onUserException?: "continue" | "dead";
    queue?: {maxEntries?: number; maxBytes?: number};
    secret?: string;
    ptp?: boolean;
}

export interface Memory {
    storage?: Pick<Storage, "getItem" | "setItem">;
    /** The name under which finished messages are stored. */
    name?: string;
}

/** What is known of the session; dispatches "change". */
export interface SessionState extends EventTarget {
    readonly session?: string;
    readonly isResumed: boolean;
    readonly waiting: number;
    readonly lostSubscriptions: string[];
    readonly isHeldBack: boolean;
    readonly pending: number;
    nextActive?: boolean;
}

export interface DeliveryExtension extends SessionState {}

/** Register with cometd.js before subscribing to anything. */
export class DeliveryExtension extends EventTarget {
    constructor(options?: DeliveryOptions, memory?: Memory);
    registered(name: string, cometd: object): void;
    unregistered(): void;
    incoming<M extends object>(message: M): M | null;
    outgoing<M extends object>(message: M): M | null;
}
