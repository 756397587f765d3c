// What the pages of the console are made of.
import {h, say} from "./dom.js";
import {ago, time} from "./format.js";
import {renewChildren} from "./renew.js";

const READERS = "This needs the operator's token.";

export const badge = (text, mood = "") => h("span", {class: `badge ${mood}`}, text);
export const when = (ms) => h("time", {title: time(ms)}, ago(ms));
export const mono = (text) => h("span", {class: "mono"}, text);
export const json = (value) => h("pre", {class: "json", tabindex: 0}, JSON.stringify(value, null, 2));

/** Names and what they mean; null values are left out. */
export const facts = (rows) =>
    h("dl", {class: "facts"}, rows.filter(([, value]) => value !== null).map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, value))));

export const card = (title, ...children) =>
    h("section", {class: "card panel"}, title && h("h2", {}, title), children);

/** A table that becomes a list of cards where there is no room. Columns are `[name, cell, class]`. */
export function table(caption, columns) {
    const body = h("tbody");
    const head = columns.map(([name, , kind]) => h("th", {scope: "col", class: kind}, name));
    const element = h("table", {},
        h("caption", {class: "hidden"}, caption), h("thead", {}, h("tr", {}, head)), body);
    const row = (item) => h("tr", {"data-key": item.id ?? item.key ?? item.name}, columns.map(([name, cell, kind]) =>
        h("td", {class: kind, "data-name": name}, cell(item))));
    return {element, show: (items) => renewChildren(body, items.map(row))};
}

// Items that are asked for at one go; lists of more than the most are left as they are.
const PART = 50;
const MOST = 500;

/** A list that comes in parts, and stays fresh: `ask(cursor, limit)` gives `{items, cursor}`. */
export async function parts(app, caption, columns, ask, nothing) {
    const {element, show} = table(caption, columns);
    const more = h("button", {type: "button", hidden: true}, "Show more");
    const none = h("p", {class: "faint empty", hidden: true}, nothing);
    const old = h("p", {class: "faint", role: "status", hidden: true});
    let items = [];
    let cursor = null;
    let asked = 0;
    let last = Promise.resolve();
    const inTurn = (run) => (last = last.then(run, run));
    const put = (found, following) => {
        items = found;
        cursor = following ?? null;
        show(items);
        more.hidden = cursor === null;
        none.hidden = items.length > 0 || cursor !== null;
        old.hidden = items.length <= MOST;
        say(old, `A list as long as this is not renewed: it is of ${time(Date.now())}.`);
        element.hidden = !items.length;
    };
    const further = async () => {
        const part = await ask(cursor, PART);
        asked += 1;
        put([...items, ...part.items], part.cursor);
    };
    // A part may have less than was asked for: what was found in so many parts takes so many again.
    const again = async () => {
        if (items.length > MOST) {
            return;
        }
        const found = [];
        let following = null;
        let round = 0;
        do {
            const part = await ask(following, Math.max(PART, items.length - found.length));
            found.push(...part.items);
            following = part.cursor ?? null;
            round += 1;
        } while (following !== null && found.length < items.length && round < asked);
        put(found, following);
    };
    more.addEventListener("click", guarded(app, () => inTurn(further)));
    await further();
    app.keepFresh(() => inTurn(again));
    return h("div", {class: "list"}, old, h("div", {class: "card sheet"}, element, none), more);
}

/** Buttons that change something, or are for everybody; who may not use one is told why. */
export function actions(app, ...rows) {
    const buttons = rows.filter(Boolean).map(([text, run, kind = "", isForAll = false]) =>
        h("button", {type: "button", class: kind, onclick: guarded(app, run), disabled: !(app.isOperator || isForAll)}, text));
    const why = !app.isOperator && h("p", {class: "faint small"}, READERS);
    return h("div", {class: "actions"}, buttons, why);
}

/** What fails is told. */
export const guarded = (app, run) => async (about) => {
    try {
        await run(about);
    } catch (error) {
        app.tell(error.message, "bad");
    }
};

/**
 * Asks in a dialog; gives what was filled in, or null. Fields are `{name, label, …attributes}`; one with
 * `rows` has several lines, and `check` says what is wrong with its value.
 */
export function ask({title, text, fields = [], yes, no = "Cancel", kind = "primary"}) {
    return new Promise((resolve) => {
        const inputs = fields.map(({label, ...given}) => h("label", {class: "field"}, label, entry(given)));
        const leave = no && h("button", {type: "button", onclick: () => dialog.close()}, no);
        const form = h("form", {onsubmit: (event) => {
            event.preventDefault();
            given = Object.fromEntries(new FormData(form));
            dialog.close();
        }}, h("h2", {id: "asked"}, title), text && h("div", {}, text), inputs,
        h("div", {class: "actions"}, h("button", {class: kind}, yes), leave));
        const isWide = fields.some(({rows}) => rows > 5) || text instanceof Node;
        const dialog = h("dialog", {class: isWide ? "wide" : null, "aria-labelledby": "asked", onclose: () => {
            dialog.remove();
            resolve(given);
        }}, form);
        let given = null;
        document.body.append(dialog);
        dialog.showModal();
    });
}

function entry({name, value = "", rows, check, ...given}) {
    if (!rows) {
        return h("input", {name, value, autocomplete: "off", ...given});
    }
    const area = h("textarea", {name, rows, spellcheck: "false", ...given}, value);
    if (check) {
        area.addEventListener("input", () => area.setCustomValidity(check(area.value)));
    }
    return area;
}

/** A form that chooses what a list has: it goes to the same page with what was filled in. */
export function chooser(fields, chosen, go) {
    const controls = fields.map(({name, label, options, ...given}) => {
        const control = options
            ? h("select", {name}, options.map(([value, shown]) =>
                h("option", {value, selected: value === (chosen[name] ?? "")}, shown)))
            : h("input", {name, value: chosen[name] ?? "", autocomplete: "off", spellcheck: "false", ...given});
        return h("label", {class: "field"}, label, control);
    });
    return h("form", {class: "chooser", role: "search", onsubmit: (event) => {
        event.preventDefault();
        go(Object.fromEntries(new FormData(event.target)));
    }}, controls, h("button", {class: "primary"}, "Find"));
}
