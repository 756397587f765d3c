import type {Memory, SessionState} from "./delivery.js";
import type {AskOptions} from "./request.js";
import type {DeliveryOptions, EventMessage} from "./wire.js";

export {Refuse} from "./delivery.js";
export {RequestError} from "./request.js";

/** What listeners get as their last argument. */
export type FayeMessage = EventMessage<any>;

type Forward = (message: any) => void;

/** Add it to a client of Faye before you subscribe to anything: `client.addExtension(extension)`. */
export class FayeExtension {
    constructor(options?: DeliveryOptions, memory?: Memory);
    readonly delivery: SessionState;
    /** Resolves with the data of the reply, as soon as there is a session. */
    ask<T = unknown>(channel: string, data: unknown, options?: AskOptions): Promise<T>;
    /** Replies to a request that a listener got, without data with those of the request. */
    reply(request: FayeMessage, data?: unknown, props?: object): void;
    /** Gets what a listener throws, unless it refuses the message; may be replaced. */
    onListenerException(error: unknown): void;
    added(client: object): void;
    removed(client: object): void;
    incoming(message: any, forward: Forward): void;
    outgoing(message: any, forward: Forward): void;
}
