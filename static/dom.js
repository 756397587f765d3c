// Makes elements. Text is always set as text: no page parses HTML.
const SVG = "http://www.w3.org/2000/svg";

/** Makes an element: `h("a", {href, class, onclick}, "text", child, …)`, without null and false. */
export const h = (name, given = {}, ...children) =>
    fill(document.createElement(name), given, children);

/** Makes an element of SVG. */
export const s = (name, given, ...children) =>
    fill(document.createElementNS(SVG, name), given, children);

export const badge = (text, mood = "") => h("span", {class: `badge ${mood}`}, text);

// Characters that nobody sees: those that reorder the text around them, and those without width. Two of them join or
// part the letters of some scripts, and join emojis; there they stay.
const UNSEEN = new RegExp("[\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff]"
    + "|(?<![\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\p{M}\\p{Script=Arabic}])[\\u200c\\u200d]", "gu");

/** Returns the text with unseen characters escaped, so that what people read is what was sent. */
export const legible = (text) => text.replace(UNSEEN,
    (each) => `\\u${each.codePointAt(0).toString(16).padStart(4, "0")}`);

function fill(element, given, children) {
    // What is edited is sent again, so it stays as it is.
    const isEdited = element.localName === "textarea";
    for (const [name, value] of Object.entries(given)) {
        if (name.startsWith("on")) {
            element[name] = value;
        } else if (isThere(value)) {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.flat(Infinity).filter(isThere).map((each) =>
        each instanceof Node || isEdited ? each : legible(String(each))));
    return element;
}

const isThere = (value) => value !== null && value !== undefined && value !== false;

/** Sets the text of an element only if it changes, because screen readers read changes aloud. */
export function say(element, text) {
    const shown = legible(text);
    if (element.textContent !== shown) {
        element.textContent = shown;
    }
}
