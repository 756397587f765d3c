import type {MaybeRefOrGetter, ShallowRef} from "vue";
import type {Channels, ChannelState, WatchOptions} from "./channels.js";

/** A composable for Vue: returns what is known of a channel. Without a name there is none. */
export function useChannel<State extends ChannelState<unknown>>(
    channels: Channels<State>,
    name: MaybeRefOrGetter<string | undefined>,
    options?: WatchOptions,
): Readonly<ShallowRef<State>>;
