// The audit: the changes that operators made or tried, with the results.
import {badge, h} from "../dom.js";
import {time} from "./format.js";
import {json, mono, order, parts} from "./parts.js";

export async function show(app, rest, {sort}) {
    const found = await parts(app, "Changes, latest first", [
        ["When", (entry) => time(entry.time), "", "time"],
        ["Who", ({who}) => who, "", "who"],
        ["What", ({action}) => mono(action), "", "action"],
        ["To", ({target}) => mono(target || "–"), "", "target"],
        ["Outcome", ({outcome}) => badge(outcome, outcome === "ok" ? "good" : "bad"), "", "outcome"],
        ["Details", ({detail}) => (Object.keys(detail).length
            ? h("details", {}, h("summary", {}, "show"), json(detail)) : "")],
    ], (cursor, limit) => app.api.get("audit", {sort, cursor, limit}), "No changes yet: what operators do, such as a replay or a hold, is listed here.", order(["audit"], {sort}));
    return [h("h1", {}, "Audit"), found];
}
