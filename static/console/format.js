// Formats numbers and times for people.
const whole = new Intl.NumberFormat(undefined, {maximumFractionDigits: 0});
const exact = new Intl.NumberFormat(undefined, {maximumFractionDigits: 1});
const short = new Intl.NumberFormat(undefined, {notation: "compact", maximumFractionDigits: 1});
const relative = new Intl.RelativeTimeFormat(undefined, {numeric: "always"});
const moment = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "medium"});
const minutes = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "short"});
const days = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeZone: "UTC"});
const clock = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});

const SIZES = [[1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"], [1, "B"]];
const UNITS = [[86_400_000, "day"], [3_600_000, "hour"], [60_000, "minute"], [1000, "second"]];

export const count = (n) => (n === null || n === undefined ? "–" : whole.format(n));
export const sum = (counts) => counts.reduce((a, b) => a + b, 0);
export const brief = (n) => (Math.abs(n) < 10_000 ? whole.format(n) : short.format(n));
export const rate = (n) => (n < 100 ? exact.format(n) : brief(n));
export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;
/** Turns a name of the API, such as `in_flight`, into words. */
export const spaced = (name) => name.replaceAll("_", " ");
export const day = (ms) => days.format(ms);
export const minute = (ms) => minutes.format(ms);
export const time = (ms) => (ms ? moment.format(ms) : "–");

export function ago(ms, now = Date.now()) {
    if (!ms) {
        return "–";
    }
    const passed = ms - now;
    const [size, unit] = UNITS.find(([size]) => Math.abs(passed) >= size) ?? UNITS.at(-1);
    return relative.format(Math.round(passed / size), unit);
}

/** Formats microseconds in a suitable unit. */
export function span(us) {
    if (us === null || us === undefined) {
        return "–";
    }
    if (us < 1000) {
        return `${whole.format(us)} µs`;
    }
    return us < 1_000_000 ? `${(us < 10_000 ? exact : whole).format(us / 1000)} ms` : lasting(us / 1000);
}

/** Formats milliseconds with the two largest units. */
export function lasting(ms) {
    if (ms < 1000) {
        return `${whole.format(ms)} ms`;
    }
    const seconds = Math.floor(ms / 1000);
    if (seconds < 60) {
        return `${exact.format(ms / 1000)} s`;
    }
    const parts = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const from = parts.findIndex(([size]) => seconds >= size);
    return parts.slice(from, from + 2).map(([size, unit], place) => {
        const rest = place ? seconds % parts[from][0] : seconds;
        return `${Math.floor(rest / size)} ${unit}`;
    }).join(" ");
}

export function bytes(n) {
    const [size, unit] = SIZES.find(([size]) => n >= size) ?? SIZES.at(-1);
    return `${exact.format(n / size)} ${unit}`;
}

/** Returns the time of day with microseconds: the steps of a message follow each other quickly. */
export const precise = (us) => `${clock.format(us / 1000)}.${String(us % 1_000_000).padStart(6, "0")}`;
