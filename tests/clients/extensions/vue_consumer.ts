// A component of Vue in TypeScript.
import {computed, type Ref} from "vue";
import {EventChannels} from "../../../static/js/event_channels.js";
import {useChannel} from "../../../static/js/vue.js";

const prices = new EventChannels({after: "-1"});

export function setup(item: Ref<string | undefined>): Ref<number> {
    const state = useChannel(prices, () => item.value && `/prices/${item.value}`);
    // @ts-expect-error: messages are in the value of the ref
    state.messages;
    // @ts-expect-error: a channel is a text
    useChannel(prices, computed(() => 7));
    return computed(() => state.value.messages.filter((each) => prices.done(each)).length);
}
