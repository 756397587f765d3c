// Tables whose columns the server defines: what they mean, and how people write their values.
import {badge, h} from "../dom.js";
import {at} from "./address.js";
import {bytes, count, day, minute, rate, spaced, span} from "./format.js";
import {facts, link, messageLink, mono, parted, sheet, when} from "./parts.js";
import {held, MOODS, sessionLink} from "./sessions.js";

const WORK = "work:";
const HOLD = "hold";
const NOTHING = "–";
// `oldest_id` is the message whose time `oldest` is.
const OF_TIME = "_id";
const share = (part) => `${count(part * 100)} %`;
export const took = (ms) => (ms === null || ms === undefined ? NOTHING : span(ms * 1000));

/** A session, the queue of a subject, or that of work. */
function receiver(key) {
    const [name, number] = [key.slice(0, key.lastIndexOf("/")), key.slice(key.lastIndexOf("/") + 1)];
    if (number !== "0") {
        return sessionLink(key);
    }
    return name.startsWith(WORK) ? link(key, "work", name.slice(WORK.length)) : link(key, "subjects", name);
}

// The states of workers, of their stores, and of the backend.
const OF_WORKERS = new Map([["serving", "good"], ["available", "good"], ["silent", "warn"], ["away", "bad"],
    ["unavailable", "bad"], ["full", "bad"], ["answers", "good"], ["broken", "bad"]]);

/** The state of a session, whose client may be away or not have connected yet if it is UNDEF; or of a worker. */
const stateNow = (state) => badge(state === "UNDEF" ? "no client" : state.toLowerCase(),
    MOODS.get(state) ?? OF_WORKERS.get(state));

// How values are written, by the form of their column.
const FORMS = new Map(Object.entries({
    // Stars stand for several channels.
    channel: (channel) => (channel.includes("*") ? mono(channel) : link(parted(channel), "channels", channel)),
    work: (channel) => link(parted(channel), "work", channel),
    session: mono, receiver, message: messageLink,
    state: stateNow,
    [HOLD]: held,
    flag: (is) => (is ? badge("yes", "warn") : "no"),
    code: (code) => h("a", {href: at("dead", "letters", {code}), class: "mono"}, parted(code)),
    fingerprint: (value) => h("a", {href: at("dead", "letters", {fingerprint: value}), class: "mono"}, value),
    time: when, minute, hour: minute, day,
    count, number: rate, bytes, ms: took, share,
}));
const NUMBERS = new Set(["count", "number", "bytes", "ms", "share"]);

/** A table with this title. */
export const defined = (title, columns, rows, order) => sheet(title, seen(columns).map(shown), rows, "None.", order);

/** What the columns mean, for whoever asks. */
export const meanings = (columns) => h("details", {class: "meanings"}, h("summary", {}, "What the columns mean"),
    facts(seen(columns).map(({name, meaning}) => [headed(name), meaning])));

/** The columns without messages that have a time beside them: it leads there. */
const seen = (columns) => columns.filter(({name}) => !name.endsWith(OF_TIME));

// The value names its unit.
const headed = (name) => spaced(name[0].toUpperCase() + name.slice(1).replace(/_ms$/u, ""));

/** A column as `sheet` takes it. */
export const shown = ({name, form}) => [headed(name), (row) => {
    const value = row[name] ?? null;
    const text = value === null ? NOTHING : (FORMS.get(form) ?? String)(value);
    const id = row[name + OF_TIME];
    return id ? h("a", {href: at("messages", id)}, text) : text;
}, NUMBERS.has(form) ? "number" : "", form === HOLD ? `${name}.since` : name];
