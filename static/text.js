// What others publish may be any JSON; a page shows it as text.

/** A text as it is, anything else as JSON, at most so long: `String` throws on {"toString": 1}. */
export function textOf(value, most = 4000) {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return text.slice(0, most);
}
