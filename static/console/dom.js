// Elements from names and texts. Texts stay texts: nothing here, or anywhere, reads HTML.
const SVG = "http://www.w3.org/2000/svg";

/** `h("a", {href, class, onclick}, "text", child, …)`; what is null or false is left out. */
export const h = (name, given, ...children) =>
    fill(document.createElement(name), given, children);

/** The same for what is drawn. */
export const s = (name, given, ...children) =>
    fill(document.createElementNS(SVG, name), given, children);

function fill(element, given, children) {
    for (const [name, value] of Object.entries(given ?? {})) {
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else if (value !== null && value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.flat(Infinity).filter(isThere));
    return element;
}

const isThere = (child) => child !== null && child !== undefined && child !== false;

/** Only what is new is written, and so read aloud. */
export function say(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}

/** Addresses within the console: every part is a name that somebody else may have chosen. */
export function at(...parts) {
    const query = typeof parts.at(-1) === "object" ? new URLSearchParams(known(parts.pop())) : "";
    const path = parts.map(encodeURIComponent).join("/");
    return `#/${path}${String(query) && `?${query}`}`;
}

/** Without what is empty. */
export const known = (fields) =>
    Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== "" && v !== null && v !== undefined));
