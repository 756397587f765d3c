// Dead letters: by what went wrong, one by one, and what can be done with them.
import {bars} from "./charts.js";
import {at, h} from "./dom.js";
import {count, many} from "./format.js";
import {letter} from "./letter.js";
import {letters} from "./letters.js";
import {badge, mono, when} from "./parts.js";
import {remark} from "./remarks.js";
import {renewChildren} from "./renew.js";

export function show(app, [what, id], chosen) {
    if (what === "letters") {
        return letters(app, chosen);
    }
    return what === "letter" ? letter(app, id) : groups(app);
}

async function groups(app) {
    const look = async () => drawn(await app.api.get("dead-letters/groups", {limit: 50}));
    const page = h("div", {class: "contents"}, await look());
    app.keepFresh(async () => renewChildren(page, await look()));
    return page;
}

function drawn({items, total}) {
    const hidden = total - items.reduce((sum, each) => sum + each.count, 0);
    return [
        h("h1", {}, "Dead letters ", badge(count(total), total ? "warn" : "good")),
        h("p", {}, h("a", {href: at("dead", "letters")}, "All of them, one by one"),
            h("span", {class: "faint"}, " – below, what failed alike is together.")),
        items.length ? h("ul", {class: "groups"}, items.map(group))
            : h("p", {class: "card panel faint"}, "There are none: whatever was accepted was delivered, or waits."),
        hidden > 0 && h("p", {class: "faint"}, `${count(hidden)} more are in smaller groups.`),
    ].filter(Boolean);
}

function group(each) {
    const sum = each.hours.reduce((a, b) => a + b, 0);
    return h("li", {class: "card group", "data-key": each.fingerprint},
        h("div", {class: "what"},
            h("h2", {}, h("a", {href: at("dead", "letters", {fingerprint: each.fingerprint})}, mono(each.channel))),
            h("p", {}, mono(each.code)),
            h("p", {class: "faint"}, each.reason),
            each.remark && remark(each.remark)),
        h("div", {class: "over-time"},
            bars(each.hours, `${count(sum)} in the last 24 hours`),
            h("span", {class: "faint small"}, `${count(sum)} in 24 hours,`, h("br"), "the last ", when(each.last))),
        h("div", {class: "how-many"},
            h("strong", {}, count(each.count)),
            h("span", {class: "faint small"}, ` of ${many(each.receivers, "receiver")}`)));
}
