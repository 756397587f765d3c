import {createElement as h, StrictMode, useState} from "react";
import {createRoot} from "react-dom/client";
import {useChannel} from "holdfast-bayeux/react.js";
import {cometd, keyOf, prices, session, textOf} from "./shop.js";

/** Orders that wait for a person, who packs or refuses each. */
function Orders() {
    const {messages, ...state} = useChannel(session, "/orders", {confirm: true});
    const refuse = (order) => session.refuse(order, "user.stock.empty", "nothing in stock");
    return h("section", null,
        h("h2", null, "To pack"),
        h("p", {role: "status"}, textOf(state)),
        h("ul", null, messages.map((order) =>
            h("li", {key: keyOf(order)},
                h("span", null, order.data.item),
                h("button", {onClick: () => session.done(order)}, "Packed"),
                h("button", {onClick: () => refuse(order)}, "No stock")))));
}

/** The same channel again: both components share one subscription. */
function Newest() {
    const {messages} = useChannel(session, "/orders");
    return h("p", null, `Newest order: ${messages.at(-1)?.data.item ?? "none"}`);
}

/** Prices come by /events, without a session. */
function Prices() {
    const {messages} = useChannel(prices, "/prices/*");
    return h("section", null,
        h("h2", null, "Prices"),
        h("ul", null, messages.map((price) =>
            h("li", {key: keyOf(price)}, `${price.channel.slice(8)}: ${price.data}`))));
}

/** Asks a program for the number of pieces. */
function Stock() {
    const [pieces, show] = useState("");
    const ask = () => cometd.ask("/stock", {}, {timeout: 5000}).then(show, ({message}) => show(message));
    return h("p", null, h("button", {onClick: ask}, "How many are there?"), " ", h("output", null, pieces));
}

const parts = [Orders, Newest, Stock, Prices].map((part) => h(part, {key: part.name}));
createRoot(document.querySelector("main")).render(h(StrictMode, null, parts));
