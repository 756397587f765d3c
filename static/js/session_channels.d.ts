import {Channels, type ChannelState} from "./channels.js";
import type {SessionState} from "./delivery.js";
import type {EventMessage, RefusalCode} from "./wire.js";

export interface SessionChannelState<Data = unknown> extends ChannelState<EventMessage<Data>> {
    readonly isConnected: boolean;
    readonly isHeldBack: boolean;
    /** How many messages waited when the session began or was resumed. */
    readonly waiting: number;
}

/** Create it before the handshake, with the extension for verdicts if there is one. */
export class SessionChannels<Data = any> extends Channels<SessionChannelState<Data>> {
    constructor(cometd: object, delivery?: SessionState);
    /** Refuses a message that waits for it; returns whether it did. */
    refuse(
        message: EventMessage<Data>,
        errorCode?: RefusalCode,
        reason?: string,
        options?: {delay?: number},
    ): boolean;
}
