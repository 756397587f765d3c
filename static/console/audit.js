// Who changed what, and what became of it.
import {h, known} from "./dom.js";
import {time} from "./format.js";
import {badge, json, mono, parts} from "./parts.js";

export async function show(app) {
    const found = await parts(app, "Changes, the latest first", [
        ["When", (entry) => time(entry.time)],
        ["Who", ({who}) => who],
        ["What", ({action}) => mono(action)],
        ["To", ({target}) => mono(target || "–")],
        ["Outcome", ({outcome}) => badge(outcome, outcome === "ok" ? "good" : "bad")],
        ["Details", ({detail}) => (Object.keys(detail).length
            ? h("details", {}, h("summary", {}, "show"), json(detail)) : "")],
    ], (cursor, limit) => app.api.get("audit", known({cursor, limit})), "Nobody has changed anything yet.");
    return [h("h1", {}, "Audit"), found];
}
