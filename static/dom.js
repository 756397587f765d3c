// Makes elements. Text is always set as text: no page parses HTML.
const SVG = "http://www.w3.org/2000/svg";

/** Makes an element: `h("a", {href, class, onclick}, "text", child, …)`, without null and false. */
export const h = (name, given = {}, ...children) =>
    fill(document.createElement(name), given, children);

/** Makes an element of SVG. */
export const s = (name, given, ...children) =>
    fill(document.createElementNS(SVG, name), given, children);

export const badge = (text, mood = "") => h("span", {class: `badge ${mood}`}, text);

function fill(element, given, children) {
    for (const [name, value] of Object.entries(given)) {
        if (name.startsWith("on")) {
            element[name] = value;
        } else if (isThere(value)) {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.flat(Infinity).filter(isThere));
    return element;
}

const isThere = (value) => value !== null && value !== undefined && value !== false;

/** Sets the text of an element only if it changes, because screen readers read changes aloud. */
export function say(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}
