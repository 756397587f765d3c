// Shows any JSON as text, because others may publish any.

/** Returns a string itself, else JSON, cut to a length: `String` throws on {"toString": 1}. */
export function textOf(value, most = 4000) {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return text.slice(0, most);
}
