import {Channels, type ChannelState} from "./channels.js";
import type {Heard, ListenOptions} from "./events.js";

export interface EventChannelState extends ChannelState<Heard & {id: string}> {
    /** The last notice, such as "lost"; `error` is what it said. */
    readonly notice?: string;
}

export class EventChannels extends Channels<EventChannelState> {
    constructor(options?: ListenOptions);
}
