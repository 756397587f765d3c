// Small SVG charts: lines of live figures and of the past, and bars.
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
    const scale = scaleOf(series);
    return chart(title, series, show, scale, series.map((each) => line(each, scale ?? 1)));
}

/**
 * Stairs for equal steps of the past; null is a step in which no server ran, which stays empty. `marks` are
 * `{place, kind}` by the number of their step, `ends` the texts below both ends.
 */
export function timeline(title, series, show, marks, ends) {
    const scale = scaleOf(series);
    const width = WIDTH / series[0].points.length;
    const lines = marks.map(({place, kind}) =>
        s("path", {class: `mark ${kind}`, d: `M${((place + 0.5) * width).toFixed(1)} 0V${HEIGHT}`}));
    const drawn = [lines, series.map((each) => stairs(each, scale ?? 1, width))];
    return chart(title, series, show, scale, drawn, h("div", {class: "ends faint"}, ends.map((text) => h("span", {}, text))));
}

const scaleOf = (series) => nice(Math.max(...series.flatMap(({points}) => points.map((each) => each ?? 0)), 0));

function chart(title, series, show, scale, drawn, below) {
    const box = {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true"};
    const grid = s("path", {class: "grid", d: `M0 1H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`});
    return h("section", {class: "card chart"},
        h("h2", {}, title),
        h("div", {class: "readings"}, series.map(({name, kind, points}) => h("div", {class: "reading"},
            h("strong", {class: "figure"}, isValue(points.at(-1)) ? show(points.at(-1)) : "–"),
            h("span", {class: `key ${kind}`}, name)))),
        h("div", {class: "plot"},
            s("svg", box, grid, drawn),
            h("span", {class: "top faint"}, scale === null ? "" : show(scale))),
        below);
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

function stairs({kind, points}, scale, width) {
    const y = (value) => (HEIGHT - 2 - (value / scale) * (HEIGHT - 4)).toFixed(1);
    const x = (n) => (n * width).toFixed(1);
    let path = "";
    let area = "";
    points.forEach((value, n) => {
        if (isValue(value)) {
            const isFirst = !isValue(points[n - 1]);
            path += `${isFirst ? `M${x(n)} ${y(value)}` : `V${y(value)}`}H${x(n + 1)}`;
            area += `M${x(n)} ${HEIGHT}V${y(value)}H${x(n + 1)}V${HEIGHT}Z`;
        }
    });
    return [s("path", {class: `area ${kind}`, d: area}), s("path", {class: `line ${kind}`, d: path})];
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
