// A hook for React.
import {useCallback, useSyncExternalStore} from "react";

/** Returns what is known of a channel: its messages, and the state of its session. */
export function useChannel(channels, name, {confirm = false} = {}) {
    const watch = useCallback(
        (changed) => channels.watch(name, changed, {confirm}),
        [channels, name, confirm],
    );
    const state = () => channels.state(name, {confirm});
    return useSyncExternalStore(watch, state, state);
}
