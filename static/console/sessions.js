// Sessions: their state, their queues, and the actions on them.
import {badge, h} from "../dom.js";
import {at, path} from "./address.js";
import {bytes, count, spaced, time} from "./format.js";
import {actions, asked, card, confirmed, facts, filter, json, link, live, messageLink, mono, order, parts, sheet, when} from "./parts.js";

export const MOODS = new Map([["ALIVE", "good"], ["POLLING", "warn"], ["DEAD", "bad"]]);
// Words for states of sessions whose client is absent, and of others: see docs/reference/sessions.md.
const WORDS_ABSENT = new Map([["UNDEF", "away"], ["POLLING", "lost"]]);
const WORDS_HERE = new Map([["UNDEF", "not connected yet"], ["POLLING", "retrying"]]);
// The number of queue entries that are shown.
const FIRST = 100;

export const show = (app, [subject, number], chosen) =>
    (subject === undefined ? list(app, chosen) : session(app, subject, number, order(["sessions", subject, number], chosen)));

export const sessionLink = (key) => link(key, "sessions", ...split(key));

const CLIENT = "client/";
/** The session that sent a message, by the name that is shown elsewhere. */
export const senderLink = (sender) =>
    (sender?.startsWith(CLIENT) ? sessionLink(sender.slice(CLIENT.length)) : sender || "the server");

function split(key) {
    const slash = key.lastIndexOf("/");
    return [key.slice(0, slash), key.slice(slash + 1)];
}

function stateOf(app, {state, active, absent}) {
    const words = new Map(app.requests.query("/sessions").state.options);
    const word = absent ? WORDS_ABSENT.get(state) : WORDS_HERE.get(state);
    const mood = badge(word ?? words.get(state) ?? state, word === "away" ? "" : MOODS.get(state));
    return active ? mood : [mood, " ", badge("held back", "warn")];
}

async function list(app, chosen) {
    const found = await parts(app, "Sessions", [
        ["Session", ({key}) => sessionLink(key), "", "key"],
        ["State", (each) => stateOf(app, each), "", "state"],
        ["Over", ({transport}) => transport ?? "–", "", "transport"],
        ["Waiting", ({waiting}) => count(waiting), "number", "waiting"],
        ["In flight", ({in_flight}) => count(in_flight), "number", "in_flight"],
        ["Attempts", ({attempts}) => count(attempts), "number", "attempts"],
        ["Seen", ({last_seen}) => when(last_seen), "", "last_seen"],
        // Only one of several workers has a number.
        ...("shard" in app.about ? [["Shard", ({shard}) => count(shard), "number", "shard"]] : []),
    ], (cursor, limit) => app.api.get("sessions", {...chosen, cursor, limit}), "No matching sessions: they begin when clients connect. Remove conditions to see all.",
    order(["sessions"], chosen));
    return [
        h("h1", {}, "Sessions"),
        filter(app, "/sessions", ["sessions"], chosen, 4),
        found,
    ];
}

async function session(app, subject, number, order) {
    const here = path("sessions", subject, number);
    const look = () => Promise.all([app.api.get(here), app.api.get(`${here}/queue`, {limit: FIRST})]);
    const shown = await live(app, look, ([it, {items}]) => [
        h("h1", {}, it.key, " ", stateOf(app, it)),
        it.hold && h("p", {class: "card panel state warn"}, held(it.hold)),
        buttons(app, here, it), facets(it), queue(items, titled(items.length, it.waiting + it.in_flight), order),
    ]);
    return [h("p", {}, link("All sessions", "sessions")), shown];
}

const buttons = (app, here, it) => actions(app,
    it.hold ? ["Resume delivery", async () => {
        await app.done("Delivery resumed.", await app.api.remove(`${here}/hold`));
    }, "primary"] : ["Hold back delivery", () => hold(app, here)],
    ["Clear the queue", () => clear(app, here), "danger"],
    ["End the session", () => end(app, here, it.key), "danger"]);

const facets = (it) => h("div", {class: "grid"},
    card("Delivery", facts([
        ["waiting", count(it.waiting)],
        ["in flight", count(it.in_flight)],
        ["size", `${bytes(it.bytes)} of ${bytes(it.max_bytes)}, at most ${count(it.max_entries)} messages`],
        ["redelivered", count(it.redelivered)],
        ["acknowledged", count(it.acked)],
        ["dead letters", link(count(it.dead), "dead", "letters", {receiver: it.key})],
        ["last failure", it.last_failure && mono(it.last_failure)],
        ["retries", it.retries === -1 ? "unlimited" : count(it.retries)],
        ["next attempt", it.next_attempt && when(it.next_attempt)],
    ])),
    card("Client", facts([
        ["name", mono(it.name)],
        ["over", it.transport ?? "–"],
        ["connection", it.has_connection ? "open" : "none"],
        ["durable", it.durable ? "yes" : "no"],
        ["shard", it.shard ?? null],
        ["settles by", it.gives_verdicts ? "verdicts" : it.acknowledges ? "acknowledgements" : "writing"],
        ["began", time(it.created)],
        ["seen", when(it.last_seen)],
        ["ends, if not seen again", it.expires && when(it.expires)],
    ])),
    card(`Subscriptions (${count(it.subscriptions)})`, h("ul", {class: "plain mono"},
        it.channels.map((channel) => h("li", {}, channel)))));

/** Who holds a session or a channel back, since when, until when, and why. */
export function held({reason, who, since, until}) {
    return [`Held back by ${who === "guard" ? "the server" : who} `, when(since), until ? [", until ", time(until)] : "", reason ? `: ${reason}` : "."];
}

const titled = (shown, total) => (shown < total ? `Queue: the first ${count(shown)} of ${count(total)}` : "Queue");

/** Sessions, with their entries waiting and in flight. */
export const receivers = (app, items, nothing, order) => sheet("Sessions", [
    ["Session", ({key}) => sessionLink(key), "", "key"],
    ["State", (each) => stateOf(app, each), "", "state"],
    ["Waiting", ({waiting}) => count(waiting), "number", "waiting"],
    ["In flight", ({in_flight}) => count(in_flight), "number", "in_flight"],
    ["Seen", (each) => when(each.last_seen), "", "last_seen"],
], items, nothing, order);

// Columns of messages.
const MESSAGE = ["Message", ({id}) => messageLink(id), "", "id"];
const ABOUT = [
    ["From", ({sender}) => senderLink(sender), "", "sender"],
    ["Received", ({published}) => when(published), "", "published"],
    ["Data", (entry) => (entry.is_cut ? `${bytes(entry.bytes)}: too long to show`
        : h("details", {}, h("summary", {}, bytes(entry.bytes)), json(entry.data))), "", "bytes"],
];

/** The newest messages that a channel keeps. */
export const history = (items, order) => sheet("History: the newest first", [MESSAGE, ...ABOUT], items, "The channel keeps no messages: its rule needs a history.", order);

/** The first messages of a queue. */
export function queue(items, title, order) {
    return sheet(title, [
        MESSAGE,
        ["Channel", ({channel}) => mono(channel), "", "channel"],
        ["State", ({state}) => badge(spaced(state)), "", "state"],
        ["Attempts", ({attempts, redelivered}) => `${count(attempts)}${redelivered ? ` (redelivered: ${count(redelivered)})` : ""}`, "number", "attempts"],
        ...ABOUT,
    ], items, "The queue is empty.", order);
}

async function hold(app, here) {
    await asked({
        title: "Hold back delivery",
        text: "The session receives no messages until you resume delivery. Its queue keeps filling up to its limit.",
        fields: Object.values(app.requests.body("HoldBody")),
        yes: "Hold back",
    }, async (given) => {
        await app.done("Delivery is held back.", await app.api.put(`${here}/hold`, given));
    });
}

const clear = (app, here) => confirmed({
    title: "Clear the queue?",
    text: "All waiting and in-flight messages are discarded permanently, without dead letters.",
    yes: "Discard all",
}, async () => {
    await app.api.remove(`${here}/queue`);
    await app.done("Queue cleared.");
});

const end = (app, here, key) => confirmed({
    title: `End ${key}?`,
    text: "The client must handshake again. The messages in the queue become dead letters.",
    yes: "End the session",
}, async () => {
    await app.api.remove(here);
    app.tell(`${key} has ended.`);
    location.hash = at("sessions");
});
