/** Thrown in a listener: the message is refused with this error code, perhaps until later. */
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

/** What the handshake asks for; see docs/delivery.md. */
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
    /** Under which what is finished is stored. */
    name?: string;
}

/** To be registered with cometd.js before anything is subscribed to; dispatches "change". */
export class DeliveryExtension extends EventTarget {
    constructor(options?: DeliveryOptions, memory?: Memory);
    readonly session?: string;
    readonly isResumed: boolean;
    readonly waiting: number;
    readonly isHeldBack: boolean;
    readonly pending: number;
    nextActive?: boolean;
    registered(name: string, cometd: object): void;
    unregistered(): void;
    incoming<M extends object>(message: M): M | null;
    outgoing<M extends object>(message: M): M | null;
}
