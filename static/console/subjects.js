// Subjects: what waits for them, the sessions that they have, and discarding what waits.
import {path} from "./api.js";
import {at, h, known} from "./dom.js";
import {bytes, count} from "./format.js";
import {actions, confirmed, live, parts, when} from "./parts.js";
import {queue, receivers} from "./sessions.js";

// The number of messages, and of sessions, that are shown.
const FIRST = 100;

export const show = (app, [subject]) => (subject === undefined ? list(app) : one(app, subject));

async function list(app) {
    const found = await parts(app, "Subjects", [
        ["Subject", ({subject}) => h("a", {href: at("subjects", subject)}, subject)],
        ["Waiting", ({waiting}) => count(waiting), "number"],
        ["Size", (each) => bytes(each.bytes), "number"],
        ["Oldest", ({oldest}) => when(oldest)],
        ["Sessions", ({subject}) => h("a", {href: at("sessions", {prefix: `${subject}/`})}, "show")],
    ], async (cursor, limit) => keyed(await app.api.get("subjects", known({cursor, limit}))),
    "No messages wait for subjects.");
    return [
        h("h1", {}, "Subjects"),
        found,
        h("p", {class: "faint small"}, "Messages to a subject wait while none of its sessions takes them."),
    ];
}

const keyed = ({items, cursor}) => ({items: items.map((each) => ({...each, key: each.subject})), cursor});

async function one(app, subject) {
    const here = path("subjects", subject, "queue");
    const look = () => Promise.all([
        waiting(app, subject, here),
        app.api.get("sessions", {prefix: `${subject}/`, limit: FIRST}),
    ]);
    const shown = await live(app, look, ([items, {items: sessions}]) => [
        items.length > 0 && actions(app, ["Empty the queue", () => empty(app, here, subject), "danger"]),
        queue(items, items.length === FIRST ? `Queue: the first ${count(FIRST)}` : "Queue"),
        receivers(app, sessions, "The subject has no session."),
    ]);
    return [h("p", {}, h("a", {href: at("subjects")}, "All subjects")), h("h1", {}, subject), shown];
}

/** The first messages that wait for the subject. Asking for a queue that does not exist would be an error. */
async function waiting(app, subject, here) {
    const {items: [next]} = await app.api.get("subjects", {cursor: before(subject), limit: 1});
    return next?.subject === subject ? (await app.api.get(here, {limit: FIRST})).items : [];
}

/** The cursor behind which a list begins with this subject: names have up to 63 characters, and none is above "~". */
function before(subject) {
    const last = subject.length - 1;
    return subject.slice(0, last) + String.fromCharCode(subject.charCodeAt(last) - 1) + "~".repeat(64);
}

const empty = (app, here, subject) => confirmed({
    title: `Empty the queue of ${subject}?`,
    text: "All messages that wait for the subject are discarded permanently, without dead letters.",
    yes: "Discard all",
}, async () => {
    await app.api.remove(here);
    await app.done("Queue emptied.");
});
