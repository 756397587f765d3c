/** What is known of a channel. It never changes: when something happens, another object takes its place. */
export interface ChannelState<Message> {
    /** The newest hundred; with `confirm`, those that wait for `done` or `refuse`. */
    readonly messages: readonly Message[];
    readonly error?: string;
}

export interface WatchOptions {
    /** Messages wait until they are settled by `done` or `refuse`. */
    confirm?: boolean;
}

/** The channels of a session, or those of /events, for components. */
export class Channels<State extends ChannelState<unknown> = ChannelState<unknown>> {
    /** Calls `changed` when the state has changed; returns a function that ends this. */
    watch(name: string | undefined, changed: () => void, options?: WatchOptions): () => void;
    state(name: string | undefined, options?: WatchOptions): State;
    /** Says that a message has been processed; returns whether it was waiting for that. */
    done(message: State["messages"][number]): boolean;
}
