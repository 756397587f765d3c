// The audit: the changes that operators made or tried, with the results.
import {badge, h} from "../dom.js";
import {time} from "./format.js";
import {json, mono, parts} from "./parts.js";

export async function show(app) {
    const found = await parts(app, "Changes, latest first", [
        ["When", (entry) => time(entry.time)],
        ["Who", ({who}) => who],
        ["What", ({action}) => mono(action)],
        ["To", ({target}) => mono(target || "–")],
        ["Outcome", ({outcome}) => badge(outcome, outcome === "ok" ? "good" : "bad")],
        ["Details", ({detail}) => (Object.keys(detail).length
            ? h("details", {}, h("summary", {}, "show"), json(detail)) : "")],
    ], (cursor, limit) => app.api.get("audit", {cursor, limit}), "No changes yet.");
    return [h("h1", {}, "Audit"), found];
}
