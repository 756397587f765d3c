import type {Channels, ChannelState, WatchOptions} from "./channels.js";

/** A hook for React: returns what is known of a channel. Without a name there is none. */
export function useChannel<State extends ChannelState<unknown>>(
    channels: Channels<State>,
    name: string | undefined,
    options?: WatchOptions,
): State;
