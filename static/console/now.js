// What is stuck now, since when, and for whom.
import {h} from "../dom.js";
import {at} from "./address.js";
import {defined, meanings} from "./columns.js";
import {count} from "./format.js";
import {card, facts, live, order, when} from "./parts.js";

// The number of items of each list.
const FIRST = 10;

export async function show(app, rest, chosen) {
    const {items: tables} = await app.api.get("now/tables");
    const shown = await live(app, () => app.api.get("now", {limit: FIRST}), (now) => drawn(tables, now, chosen));
    return [h("h1", {}, "Now"), shown];
}

const drawn = (tables, now, chosen) => [
    h("p", {class: `card panel state ${mood(now)}`, role: "status"}, now.sentence),
    card(null, facts([
        ["store", now.store],
        ["waiting", count(now.waiting)],
        ["in flight", count(now.in_flight)],
        ["oldest", now.oldest && h("a", {href: at("messages", now.oldest.id)}, when(now.oldest.published))],
    ], "figures across")),
    ...tables.map((table) => list(table, now[table.name], order(["now"], chosen, table.name))),
];

const mood = ({sentence, store, shards}) => (store !== "available" || shards.items.some(({state}) => state !== "serving")
    ? "bad" : sentence === "nothing waits" ? "good" : "warn");

/** A list with how many more there are; nothing if it is empty. */
const list = ({title, columns}, found, order) => found?.items.length > 0 && h("div", {},
    defined(title, columns, found.items, order),
    found.more > 0 && h("p", {class: "faint"}, `and ${count(found.more)} more`),
    meanings(columns));
