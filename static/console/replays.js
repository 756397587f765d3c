// Replays: their progress, and how to end them.
import {badge, h} from "../dom.js";
import {path} from "./address.js";
import {count, many, time} from "./format.js";
import {difference} from "./letter.js";
import {actions, card, facts, json, inOrderOf, link, live, messageLink, mono, order, parts, when} from "./parts.js";
import {skipped} from "./letters.js";

const MOODS = new Map([["done", "good"], ["stopped", "bad"], ["failed", "bad"], ["cancelled", "warn"]]);
const LOOK_MS = 1000;

export const show = (app, [id], chosen) => (id === undefined ? list(app, order(["replays"], chosen)) : one(app, id));

async function list(app, order) {
    const ask = async () => {
        const found = await app.api.get("replays");
        return {...found, items: inOrderOf(found.items, order)};
    };
    const found = await parts(app, "Replays, latest first", [
        ["Began", ({id, started}) => link(when(started), "replays", id), "", "started"],
        ["State", ({state}) => badge(state, MOODS.get(state)), "", "state"],
        ["Who", ({who}) => who, "", "who"],
        ["Letters", ({total}) => count(total), "number", "total"],
        ["Sent", ({sent}) => count(sent), "number", "sent"],
        ["Acknowledged", ({acked}) => count(acked), "number", "acked"],
        ["Died again", ({died_again}) => count(died_again), "number", "died_again"],
    ], ask, "No replays yet: begin one from a list of dead letters.", order);
    return [h("h1", {}, "Replays"), found];
}

async function one(app, id) {
    const here = path("replays", id);
    let known;
    // A replay that is over does not change.
    const look = async () => (known = known?.over ? known : await app.api.get(here));
    const shown = await live(app, look, (job) => drawn(app, job, here), LOOK_MS);
    return [
        h("p", {}, link("All replays", "replays")), shown,
        known.options.edit && await edited(app, known),
    ];
}

const drawn = (app, job, here) => [
    h("h1", {}, "Replay ", h("span", {class: `badge ${MOODS.get(job.state) ?? ""}`, role: "status"}, job.state)),
    job.state === "canary" && h("p", {class: "faint"},
        `Waits until receivers have acknowledged the first ${many(Math.min(job.options.canary, job.total), "letter")}.`),
    h("progress", {max: Math.max(job.total, 1), value: job.sent + job.skipped, "aria-label": "Progress"}),
    !job.over && actions(app, ["Cancel replay", async () => {
        await app.api.remove(here);
        await app.done("The replay was cancelled. Messages already sent stay sent.");
    }, "danger"]),
    h("div", {class: "grid"},
        card("Progress", facts([
            ["letters", count(job.total)],
            ["sent", count(job.sent)],
            ["acknowledged", count(job.acked)],
            ["died again", count(job.died_again)],
            ["skipped", skipped(app, job.skips)],
            ["reason", job.reason],
        ])),
        card("What", facts([
            ["who", job.who],
            ["began", time(job.started)],
            ["ended", job.finished && time(job.finished)],
            ["channels", mono(Object.keys(job.channels).join(", ") || "–")],
            ["receivers", mono(Object.keys(job.receivers).join(", ") || "–")],
        ])),
        card("How", json({filter: filled(job.filter), options: filled({...job.options, edit: null})}))),
];

/** Shows the data of the letter, and of its new message. */
async function edited(app, job) {
    const [id] = job.filter.ids;
    const message = `${app.about.node}-${job.id}`;
    const letter = await app.api.get(path("dead-letters", id)).catch(() => null);
    return card("Edited", h("p", {},
        letter ? link("The letter", "dead", "letter", id) : "The letter, which no longer exists,", " went out as ",
        messageLink(message)),
    letter ? difference(letter.data, job.options.edit.data) : json(job.options.edit.data));
}

const filled = (fields) => Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value.length !== 0));
