import {createApp, ref} from "vue";
import {useChannel} from "holdfast-bayeux/vue.js";
import {cometd, keyOf, prices, session, textOf} from "./shop.js";

/** Orders that wait for a person, who packs or refuses each. */
const Orders = {
    setup: () => ({
        state: useChannel(session, "/orders", {confirm: true}),
        pack: (order) => session.done(order),
        refuse: (order) => session.refuse(order, "user.stock.empty", "nothing in stock"),
        keyOf,
        textOf,
    }),
    template: `<section>
        <h2>To pack</h2>
        <p role="status">{{ textOf(state) }}</p>
        <ul><li v-for="order in state.messages" :key="keyOf(order)">
            <span>{{ order.data.item }}</span>
            <button @click="pack(order)">Packed</button>
            <button @click="refuse(order)">No stock</button>
        </li></ul>
    </section>`,
};

/** The same channel again: both components share one subscription. */
const Newest = {
    setup: () => ({state: useChannel(session, "/orders")}),
    template: `<p>Newest order: {{ state.messages.at(-1)?.data.item ?? "none" }}</p>`,
};

/** Prices come by /events, without a session. */
const Prices = {
    setup: () => ({state: useChannel(prices, "/prices/*"), keyOf}),
    template: `<section>
        <h2>Prices</h2>
        <ul><li v-for="price in state.messages" :key="keyOf(price)">
            {{ price.channel.slice(8) }}: {{ price.data }}
        </li></ul>
    </section>`,
};

/** Asks a program for the number of pieces. */
const Stock = {
    setup() {
        const pieces = ref("");
        const show = (text) => (pieces.value = text);
        const ask = () =>
            cometd.ask("/stock", {}, {timeout: 5000}).then(show, ({message}) => show(message));
        return {pieces, ask};
    },
    template: `<p><button @click="ask">How many are there?</button> <output>{{ pieces }}</output></p>`,
};

createApp({
    components: {Orders, Newest, Stock, Prices},
    template: `<Orders /><Newest /><Stock /><Prices />`,
}).mount("main");
