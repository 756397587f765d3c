// What is stuck now, since when, and for whom.
import {badge, h} from "../dom.js";
import {at} from "./address.js";
import {bytes, count, many, sum} from "./format.js";
import {card, facts, link, live, messageLink, mono, sheet, when} from "./parts.js";
import {held, sessionLink} from "./sessions.js";

// The number of items of each list.
const FIRST = 10;
const MOODS = new Map([["ALIVE", "good"], ["POLLING", "warn"], ["DEAD", "bad"]]);
const WORK = "work:";

export async function show(app) {
    const shown = await live(app, () => app.api.get("now", {limit: FIRST}), drawn);
    return [h("h1", {}, "Now"), shown];
}

const drawn = (now) => [
    h("p", {class: `card panel state ${mood(now)}`, role: "status"}, now.sentence),
    now.alerts.length > 0 && sheet("Alerts", ALERT, now.alerts, ""),
    card(null, facts([
        ["store", now.store],
        ["waiting", count(now.waiting)],
        ["in flight", count(now.in_flight)],
        ["oldest", now.oldest && h("span", {}, when(now.oldest.published), " ", messageLink(now.oldest.id))],
    ], "figures")),
    first("Sessions that are held back", [RECEIVER[0], ...SIZES, ["Why", ({hold}) => hold && held(hold)]], now.held_back),
    first("Channels that are held back", [CHANNEL, ["Why", held]], now.held_channels),
    first("Sessions out of reach", [...RECEIVER, ["Since", ({since}) => when(since)], ...SIZES], now.unreachable),
    first("Receivers with the oldest entries", [...RECEIVER, ...SIZES], now.oldest_receivers),
    first("Receivers with the most entries", [...RECEIVER, ...SIZES], now.receivers),
    first("Channels with the most entries", [
        CHANNEL, ...WAITING, ["Receivers", ({receivers}) => count(receivers), "number"],
        ["State", (each) => each.held && badge("held back", "warn")],
    ], now.channels),
    first("Work queues", WORK_QUEUE, now.work_queues),
    ...now.work_queues.items.map(({channel, workers}) => first(`Workers of ${channel}`, WORKER, workers)),
    letters(now.letters),
];

const mood = ({sentence, store}) => (store === "available" ? (sentence === "nothing waits" ? "good" : "warn") : "bad");

/** A list with how many more there are; nothing if it is empty. */
const first = (title, columns, {items, more}) => items.length > 0 && h("div", {},
    sheet(title, columns, items, ""), more > 0 && h("p", {class: "faint"}, `and ${count(more)} more`));

function letters(found) {
    if (!found?.total) {
        return null;
    }
    const others = found.total - sum(found.codes.map((each) => each.letters));
    return h("div", {}, sheet("Dead letters of the last hour", [
        ["Code", ({code}) => h("a", {href: at("dead", "letters", {code}), class: "mono"}, code)],
        ["Letters", (each) => count(each.letters), "number"],
    ], found.codes, ""), others > 0 && h("p", {class: "faint"}, `and ${many(others, "letter")} with other codes`));
}

/** A session, the queue of a subject, or that of work. */
function receiver({receiver: key}) {
    const [name, number] = [key.slice(0, key.lastIndexOf("/")), key.slice(key.lastIndexOf("/") + 1)];
    if (number !== "0") {
        return sessionLink(key);
    }
    return name.startsWith(WORK) ? link(key, "work", name.slice(WORK.length)) : link(key, "subjects", name);
}

/** Queues of subjects and of work have no client. */
const state = ({receiver: key, state: its}) => (key.endsWith("/0") ? "–" : badge(its, MOODS.get(its) ?? ""));

const ALERT = [
    ["Alert", (each) => badge(each.alert, "bad")],
    ["Since", ({since}) => when(since)],
    ["Why", ({reason}) => reason],
    ["What to do", ({next}) => next],
];
const CHANNEL = ["Channel", ({channel}) => (channel.endsWith("*") ? mono(channel) : link(channel, "channels", channel))];
const WAITING = [
    ["Waiting", ({waiting}) => count(waiting), "number"],
    ["In flight", ({in_flight}) => count(in_flight), "number"],
];
const RECEIVER = [["Receiver", receiver], ["State", state]];
const SIZES = [
    ["Oldest", ({oldest, oldest_id: id}) => (id === null ? "–" : h("a", {href: at("messages", id)}, when(oldest)))],
    ...WAITING, ["Size", (each) => bytes(each.bytes), "number"],
];
const WORKED = [
    ["Waiting", ({waiting}) => count(waiting), "number"],
    ["Oldest", ({oldest}) => (oldest === null ? "–" : when(oldest))],
    ["In work", (each) => count(each.in_work), "number"],
    ["Since", ({since}) => (since === null ? "–" : when(since))],
];
const WORK_QUEUE = [
    ["Channel", ({channel}) => link(channel, "work", channel)], ...WORKED,
    ["Receivers", ({receivers}) => count(receivers), "number"],
];
const WORKER = [["Worker", receiver], ...WORKED];
