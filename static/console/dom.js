// Makes elements. Text is always set as text: the console never parses HTML.
const SVG = "http://www.w3.org/2000/svg";

/** `h("a", {href, class, onclick}, "text", child, …)`; null and false are left out. */
export const h = (name, given, ...children) =>
    fill(document.createElement(name), given, children);

/** The same for SVG. */
export const s = (name, given, ...children) =>
    fill(document.createElementNS(SVG, name), given, children);

function fill(element, given, children) {
    for (const [name, value] of Object.entries(given ?? {})) {
        if (name.startsWith("on")) {
            element[name] = value;
        } else if (value !== null && value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.flat(Infinity).filter(isThere));
    return element;
}

const isThere = (child) => child !== null && child !== undefined && child !== false;

/** Sets the text only if it changes, because screen readers read changes aloud. */
export function say(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}

/** An address within the console; every part is encoded, because users choose names. */
export function at(...parts) {
    const query = typeof parts.at(-1) === "object" ? new URLSearchParams(known(parts.pop())) : "";
    const path = parts.map(encodeURIComponent).join("/");
    return `#/${path}${String(query) && `?${query}`}`;
}

/** The object without empty values. */
export const known = (fields) =>
    Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== "" && v !== null && v !== undefined));
