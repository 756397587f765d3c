// Addresses: of the administration, and of pages within the console.

/** Makes a path from names with any characters. */
export const path = (...parts) => parts.map(encodeURIComponent).join("/");

/** Returns the object without empty values. */
export const known = (fields) =>
    Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== "" && v !== null && v !== undefined));

/** Returns the address of a page; the last part may be a filter. */
export function at(...parts) {
    const query = typeof parts.at(-1) === "object" ? new URLSearchParams(known(parts.pop())) : "";
    return `#/${path(...parts)}${String(query) && `?${query}`}`;
}

/** Splits the address of a page into the page, its object, and the filter. */
export function apart(hash) {
    const [place, query] = hash.slice(2).split("?");
    const [name, ...rest] = place.split("/").map(plain);
    return {name, rest, chosen: Object.fromEntries(new URLSearchParams(query))};
}

function plain(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}
