// Replays: how far they are, and an end to them.
import {at, h, say} from "./dom.js";
import {count, time} from "./format.js";
import {difference} from "./editing.js";
import {actions, badge, card, facts, json, mono, parts, when} from "./parts.js";
import {skipped} from "./letters.js";
import {renewChildren} from "./renew.js";

const MOODS = new Map([["done", "good"], ["stopped", "bad"], ["failed", "bad"], ["cancelled", "warn"]]);
const UNDER_WAY = ["canary", "running"];
const LOOK_MS = 1000;

export const show = (app, [id]) => (id === undefined ? list(app) : one(app, id));

async function list(app) {
    const found = await parts(app, "Replays, the latest first", [
        ["Began", ({id, started}) => h("a", {href: at("replays", id)}, when(started))],
        ["State", ({state}) => badge(state, MOODS.get(state))],
        ["Who", ({who}) => who],
        ["Letters", ({total}) => count(total), "number"],
        ["Sent", ({sent}) => count(sent), "number"],
        ["Acknowledged", ({acked}) => count(acked), "number"],
        ["Died again", ({failed}) => count(failed), "number"],
    ], () => app.api.get("replays"), "Nothing was replayed yet.");
    return [h("h1", {}, "Replays"), found];
}

async function one(app, id) {
    const path = `replays/${encodeURIComponent(id)}`;
    const state = h("span", {class: "badge", role: "status"});
    const bar = h("progress", {max: 1, value: 0, "aria-label": "Progress"});
    const told = h("div");
    const end = actions(app, ["End it", async () => {
        draw(await app.api.remove(path));
        app.tell("What was sent stays sent.");
    }, "danger"]);
    const draw = (job) => {
        say(state, job.state);
        state.className = `badge ${MOODS.get(job.state) ?? ""}`;
        bar.max = Math.max(job.total, 1);
        bar.value = job.sent + job.skipped;
        end.hidden = !UNDER_WAY.includes(job.state);
        renewChildren(told, [h("div", {class: "grid"},
            card("How far", facts([
                ["letters", count(job.total)],
                ["sent", count(job.sent)],
                ["acknowledged", count(job.acked)],
                ["died again", count(job.failed)],
                ["left out", skipped(job.skips) || "none"],
                ["why it stopped", job.reason],
            ])),
            card("What", facts([
                ["who", job.who],
                ["began", time(job.started)],
                ["ended", job.finished && time(job.finished)],
                ["channels", mono(Object.keys(job.channels).join(", ") || "–")],
                ["receivers", mono(Object.keys(job.receivers).join(", ") || "–")],
            ])),
            card("How", json({filter: filled(job.filter), options: filled({...job.options, edit: null})})))]);
        return job;
    };
    let job = draw(await app.api.get(path));
    const changed = job.options.edit && await edited(app, job);
    app.every(LOOK_MS, async () => {
        if (UNDER_WAY.includes(job.state)) {
            job = draw(await app.api.get(path));
        }
    });
    return [
        h("p", {}, h("a", {href: at("replays")}, "All replays")),
        h("h1", {}, "Replay ", state), bar, end, told, changed,
    ].filter(Boolean);
}

/** What the letter said, and what its new message says. */
async function edited(app, job) {
    const [id] = job.filter.ids;
    const message = `${app.about.node}-${job.id}`;
    const letter = await app.api.get(`dead-letters/${encodeURIComponent(id)}`).catch(() => null);
    return card("Edited", h("p", {},
        letter ? h("a", {href: at("dead", "letter", id)}, "The letter") : "The letter, which is gone,", " went out as ",
        h("a", {href: at("messages", message), class: "mono"}, message)),
    letter ? difference(letter.data, job.options.edit.data) : json(job.options.edit.data));
}

const filled = (fields) => Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value.length !== 0));
