// Sessions: who is there, what waits for them, and what can be done about it.
import {path} from "./api.js";
import {at, h, known} from "./dom.js";
import {bytes, count, time} from "./format.js";
import {actions, ask, badge, card, chooser, facts, json, mono, parts, table, when} from "./parts.js";
import {renewChildren} from "./renew.js";

const MOODS = new Map([["ALIVE", "good"], ["POLLING", "warn"], ["DEAD", "bad"]]);
const STATES = [["", "any"], ["ALIVE", "alive"], ["POLLING", "awaited"], ["UNDEF", "not seen yet"], ["DEAD", "dead"]];
const WORDS = new Map(STATES);
const HELD = [["", "any"], ["true", "held back"], ["false", "active"]];

export const show = (app, [subject, number], chosen) =>
    (subject === undefined ? list(app, chosen) : session(app, subject, number));

export const sessionLink = (key) => h("a", {href: at("sessions", ...split(key))}, key);

function split(key) {
    const slash = key.lastIndexOf("/");
    return [key.slice(0, slash), key.slice(slash + 1)];
}

function standing(session) {
    const state = badge(WORDS.get(session.state) ?? session.state, MOODS.get(session.state));
    return session.active ? state : [state, " ", badge("held back", "warn")];
}

async function list(app, chosen) {
    const found = await parts(app, "Sessions", [
        ["Session", ({key}) => sessionLink(key)],
        ["State", standing],
        ["Over", ({transport, connected}) => [transport ?? "–", connected ? "" : h("span", {class: "faint"}, ", away")]],
        ["Waiting", ({waiting}) => count(waiting), "number"],
        ["In hands", ({handed}) => count(handed), "number"],
        ["Attempts", ({attempts}) => count(attempts), "number"],
        ["Seen", ({last_seen}) => when(last_seen)],
    ], (cursor, limit) => app.api.get("sessions", known({...chosen, cursor, limit})), "No session is like that.");
    return [h("h1", {}, "Sessions"), chooser([
        {name: "prefix", label: "Begins with", placeholder: "joe/"},
        {name: "state", label: "State", options: STATES},
        {name: "held", label: "Delivery", options: HELD},
        {name: "channel", label: "Subscribed to", placeholder: "/orders"},
    ], chosen, (asked) => (location.hash = at("sessions", asked))), found];
}

async function session(app, subject, number) {
    const here = path("sessions", subject, number);
    const look = () => Promise.all([app.api.get(here), app.api.get(`${here}/queue`, {limit: 100})]);
    const did = async (promise, text) => {
        await promise;
        app.tell(text);
        await app.show();
    };
    const buttons = ({hold: isHeld}) => actions(app,
        isHeld ? ["Resume delivery", () => did(app.api.remove(`${here}/hold`), "Delivery goes on."), "primary"]
            : ["Hold delivery back", () => hold(app, here, did)],
        ["Clear the queue", () => clear(app, here, did), "danger"],
        ["End the session", () => kill(app, here, it), "danger"]);
    let [it, {items}] = await look();
    let bar = buttons(it);
    const head = h("div", {class: "contents"}, standingOf(it));
    const told = h("div", {class: "contents"}, facets(it), queue(items, it));
    app.keepFresh(async () => {
        const before = it;
        [it, {items}] = await look();
        renewChildren(head, standingOf(it));
        renewChildren(told, [facets(it), queue(items, it)]);
        if (Boolean(before.hold) !== Boolean(it.hold)) {
            const old = bar;
            bar = buttons(it);
            old.replaceWith(bar);
        }
    });
    return [h("p", {}, h("a", {href: at("sessions")}, "All sessions")), head, bar, told];
}

const standingOf = (it) => [
    h("h1", {}, it.key, " ", standing(it)),
    it.hold && h("p", {class: "card panel state warn"}, held(it.hold)),
].filter(Boolean);

const facets = (it) => h("div", {class: "grid"},
    card("Delivery", facts([
        ["waiting", count(it.waiting)],
        ["in hands", count(it.handed)],
        ["size", `${bytes(it.bytes)} of ${bytes(it.max_bytes)}, at most ${count(it.max_entries)} messages`],
        ["sent again", count(it.redelivered)],
        ["acknowledged", count(it.acked)],
        ["dead letters", h("a", {href: at("dead", "letters", {receiver: it.key})}, count(it.dead))],
        ["last failure", it.last_failure && mono(it.last_failure)],
        ["retries", it.retries === -1 ? "for ever" : count(it.retries)],
        ["next attempt", it.next_attempt && when(it.next_attempt)],
    ])),
    card("Client", facts([
        ["name", mono(it.name)],
        ["over", it.transport ?? "–"],
        ["connected", it.connected ? "yes" : "no"],
        ["kept in the store", it.durable ? "yes" : "no"],
        ["answers", it.gives_verdicts ? "verdicts" : it.acknowledges ? "acknowledgements" : "nothing: what is written is done"],
        ["published", count(it.published)],
        ["began", time(it.created)],
        ["seen", when(it.last_seen)],
        ["ends, if not seen again", it.expires && when(it.expires)],
    ])),
    card(`Subscriptions (${count(it.subscriptions)})`, h("ul", {class: "names mono"},
        it.channels.map((channel) => h("li", {}, channel)))));

function held({reason, who, since, until}) {
    return [`Held back by ${who} `, when(since), until ? [", until ", time(until)] : "", reason ? `: ${reason}` : "."];
}

function queue(items, it) {
    const {element, show} = table("The first messages of the queue", [
        ["Message", ({id}) => h("a", {href: at("messages", id), class: "mono"}, id)],
        ["Channel", ({channel}) => mono(channel)],
        ["State", ({state}) => badge(state === "handed" ? "in hands" : "waiting")],
        ["Attempts", ({attempts, redelivered}) => `${count(attempts)}${redelivered ? ` (again: ${count(redelivered)})` : ""}`, "number"],
        ["From", ({sender}) => sender || "the server"],
        ["Received", ({published}) => when(published)],
        ["Data", (entry) => (entry.is_cut ? `${bytes(entry.bytes)}: too long to be shown here`
            : h("details", {}, h("summary", {}, bytes(entry.bytes)), json(entry.data)))],
    ]);
    show(items);
    const total = it.waiting + it.handed;
    const title = items.length < total ? `Queue: the first ${count(items.length)} of ${count(total)}` : "Queue";
    return h("section", {}, h("h2", {}, title),
        h("div", {class: "card sheet"}, items.length ? element : h("p", {class: "faint empty"}, "Nothing waits.")));
}

async function hold(app, here, did) {
    const given = await ask({
        title: "Hold delivery back",
        text: "Nothing is handed over until somebody resumes it. The queue goes on filling, up to its limit.",
        fields: [
            {name: "reason", label: "Reason", maxlength: 1024},
            {name: "until", label: "Until (if it ends by itself)", type: "datetime-local"},
        ],
        yes: "Hold back",
    });
    if (given) {
        const until = given.until ? new Date(given.until).getTime() : null;
        await did(app.api.put(`${here}/hold`, {reason: given.reason, until}), "Delivery is held back.");
    }
}

async function clear(app, here, did) {
    const title = "Clear the queue?";
    const text = "What waits and what is in hands is discarded for good, and no dead letter is left.";
    if (await ask({title, text, yes: "Discard all", kind: "danger"})) {
        await did(app.api.remove(`${here}/queue`), "The queue is empty.");
    }
}

async function kill(app, here, it) {
    const title = `End ${it.key}?`;
    const text = "Its client must begin anew; what is in its queue becomes dead letters.";
    if (await ask({title, text, yes: "End the session", kind: "danger"})) {
        await app.api.remove(here);
        app.tell(`${it.key} has ended.`);
        location.hash = at("sessions");
    }
}
