// Small SVG charts: lines of live figures, and bars.
import {h, s} from "../dom.js";
import {count, sum} from "./format.js";

const WIDTH = 320;
const HEIGHT = 72;
const POINTS = 120;

/**
 * One or two lines for the last two minutes, with their present values. `series` are
 * `{name, kind, points}`, where null is no value; `show` formats a number.
 */
export function lines(title, series, show) {
    const scale = nice(Math.max(...series.flatMap(({points}) => points.map((each) => each ?? 0)), 0));
    const box = {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true"};
    const grid = s("path", {class: "grid", d: `M0 1H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`});
    return h("section", {class: "card chart"},
        h("h2", {}, title),
        h("div", {class: "readings"}, series.map(({name, kind, points}) => h("div", {class: "reading"},
            h("strong", {class: "figure"}, isValue(points.at(-1)) ? show(points.at(-1)) : "–"),
            h("span", {class: `key ${kind}`}, name)))),
        h("div", {class: "plot"},
            s("svg", box, grid, series.map((each) => line(each, scale ?? 1))),
            h("span", {class: "top faint"}, scale === null ? "" : show(scale))));
}

const isValue = (point) => point !== undefined && point !== null;

function line({kind, points}, scale) {
    const x = (n) => (((POINTS - points.length + n) / (POINTS - 1)) * WIDTH).toFixed(1);
    const places = points.map((value, n) =>
        `${x(n)},${(HEIGHT - 2 - ((value ?? 0) / scale) * (HEIGHT - 4)).toFixed(1)}`);
    const area = [`${x(0)},${HEIGHT}`, ...places, `${WIDTH},${HEIGHT}`];
    return [
        s("polygon", {class: `area ${kind}`, points: area.join(" ")}),
        s("polyline", {class: `line ${kind}`, points: places.join(" ")}),
    ];
}

/** The next round number, 1, 2 or 5 times a power of ten; null if there is nothing to show. */
function nice(most) {
    const power = 10 ** Math.floor(Math.log10(most || 1));
    return most ? [1, 2, 5, 10].map((step) => step * power).find((step) => step >= most) : null;
}

/** Bars for the counts of equal intervals, the latest at the right, in `span` altogether. */
export function bars(values, span) {
    const label = `${count(sum(values))} in the last ${span}`;
    const most = Math.max(...values, 1);
    const box = {viewBox: `0 0 ${values.length * 5} 30`, class: "bars", preserveAspectRatio: "none", role: "img", "aria-label": label};
    return s("svg", box, values.map((value, n) => {
        const height = value ? Math.max(2, (value / most) * 28) : 1;
        return s("rect", {x: n * 5, y: 30 - height, width: 4, height, rx: 0.8, class: value ? "" : "none"});
    }));
}
