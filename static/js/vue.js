// A composable for Vue.
import {shallowRef, toValue, watchEffect} from "vue";

/** Returns a ref to what is known of a channel; its name may be a ref, too. */
export function useChannel(channels, name, options) {
    const state = shallowRef(channels.state(toValue(name), options));
    watchEffect((onCleanup) => {
        const channel = toValue(name);
        const change = () => (state.value = channels.state(channel, options));
        onCleanup(channels.watch(channel, change, options));
        change();
    });
    return state;
}
