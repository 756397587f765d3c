import type {DeliveryOptions, RefusalCode} from "./wire.js";

export type {DeliveryOptions, SessionOptions} from "./wire.js";

/** Throw this in a listener to refuse the message with an error code, perhaps temporarily. */
export class Refuse extends Error {
    constructor(errorCode?: RefusalCode, message?: string, options?: {delay?: number});
    readonly errorCode: RefusalCode;
    readonly reason: string;
    readonly delay?: number;
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
