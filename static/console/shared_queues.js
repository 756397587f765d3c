// Queues of subjects and work queues, which sessions share: their messages, their sessions, and how to discard messages.
import {h} from "../dom.js";
import {path} from "./address.js";
import {bytes, count} from "./format.js";
import {actions, confirmed, link, live, order, parts, when} from "./parts.js";
import {queue, receivers} from "./sessions.js";

// The number of messages, and of sessions, that are shown.
const FIRST = 100;

// One kind of queues: `list` requests those that have messages, `first` the waiting messages of one, `sessions` its
// sessions, and `clear` discards its messages.
const SUBJECTS = {
    page: "subjects",
    title: "Subjects",
    heading: "Subject",
    key: "subject",
    name: ({subject}) => subject,
    columns: [["", ({subject}) => link("its sessions", "sessions", {prefix: `${subject}/`})]],
    nothing: "No messages wait for subjects: a publish with destinations and forceQueuing lets them wait.",
    about: "Messages to a subject wait while none of its sessions takes them.",
    nobody: "The subject has no session: its messages wait until one begins.",
    discarded: "All messages that wait for the subject are discarded permanently, without dead letters.",
    list: (api, query) => api.get("subjects", query),
    first: (api, subject) => api.get(path("subjects", subject, "queue"), {limit: FIRST}),
    sessions: (api, subject) => api.get("sessions", {prefix: `${subject}/`, limit: FIRST}),
    clear: (api, subject) => api.remove(path("subjects", subject, "queue")),
};

const WORK = {
    page: "work",
    title: "Work queues",
    heading: "Channel",
    key: "channel",
    name: ({channel}) => channel,
    columns: [["Receivers", (each) => count(each.receivers), "number", "receivers"]],
    nothing: "No messages wait in work queues: channels are work queues by the setting work_queue.",
    about: "Each message goes to one receiver. Messages wait while no receiver has room for them.",
    nobody: "No session has subscribed to this channel: its messages wait until one does.",
    discarded: "All messages that wait in the work queue are discarded permanently, without dead letters. " +
        "Receivers keep what they have.",
    list: (api, query) => api.get("work-queues", query),
    first: (api, channel) => api.get("work-queue", {channel, limit: FIRST}),
    sessions: (api, channel) => api.get("work-queue/receivers", {channel, limit: FIRST}),
    clear: (api, channel) => api.remove("work-queue", {channel}),
};

const pageOf = (kind) => (app, [name], chosen) =>
    (name === undefined ? list(app, kind, chosen) : one(app, kind, name, chosen));

export const subjects = pageOf(SUBJECTS);
export const work = pageOf(WORK);

async function list(app, kind, {sort}) {
    const ask = async (cursor, limit) => {
        const found = await kind.list(app.api, {sort, cursor, limit});
        return {...found, items: found.items.map((each) => ({...each, key: kind.name(each)}))};
    };
    const found = await parts(app, kind.title, [
        [kind.heading, ({key}) => link(key, kind.page, key), "", kind.key],
        ["Waiting", ({waiting}) => count(waiting), "number", "waiting"],
        ["Size", (each) => bytes(each.bytes), "number", "bytes"],
        ["Oldest", ({oldest}) => when(oldest), "", "oldest"],
        ...kind.columns,
    ], ask, kind.nothing, order([kind.page], {sort}));
    return [h("h1", {}, kind.title), found, h("p", {class: "faint small"}, kind.about)];
}

async function one(app, kind, name, chosen) {
    const orderOf = (list) => order([kind.page, name], chosen, list);
    const look = () => Promise.all([kind.first(app.api, name), kind.sessions(app.api, name)]);
    const shown = await live(app, look, ([{items}, {items: sessions}]) => [
        items.length > 0 && actions(app, ["Empty the queue", () => empty(app, kind, name), "danger"]),
        queue(items, items.length === FIRST ? `Queue: the first ${count(FIRST)}` : "Queue", orderOf("queue")),
        receivers(app, sessions, kind.nobody, orderOf("sessions")),
    ]);
    return [h("p", {}, link(`All ${kind.title.toLowerCase()}`, kind.page)), h("h1", {}, name), shown];
}

const empty = (app, kind, name) => confirmed({
    title: `Empty the queue of ${name}?`,
    text: kind.discarded,
    yes: "Discard all",
}, async () => {
    await kind.clear(app.api, name);
    await app.done("Queue emptied.");
});
