// Small SVG charts: lines of live figures, and bars.
import {h, s, say} from "../dom.js";

const WIDTH = 320;
const HEIGHT = 72;
const POINTS = 120;

/** One or two lines for the last two minutes, with their present values. */
export class LiveChart {
    #lines = new Map();

    /** `series` are `{name, kind}`; `show` formats a number. */
    constructor(title, series, show, note = "") {
        this.show = show;
        const legend = series.map(({name, kind}) => {
            const line = s("polyline", {class: `line ${kind}`, points: ""});
            const area = s("polygon", {class: `area ${kind}`, points: ""});
            const value = h("strong", {class: "figure"}, "–");
            this.#lines.set(name, {line, area, value, points: []});
            const label = h("span", {class: `key ${kind}`}, name);
            return h("div", {class: "reading"}, value, label);
        });
        const drawn = [...this.#lines.values()].flatMap(({area, line}) => [area, line]);
        const grid = s("path", {class: "grid", d: `M0 1H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`});
        const box = {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true"};
        this.element = h("section", {class: "card chart"},
            h("h2", {}, title),
            h("div", {class: "readings"}, legend),
            h("div", {class: "plot"}, s("svg", box, grid, drawn), h("span", {class: "top faint"}, "")),
            note && h("p", {class: "faint small"}, note),
        );
        this.top = this.element.querySelector(".top");
    }

    /** Adds a point to each line; null means no value. */
    add(values) {
        for (const [name, value] of Object.entries(values)) {
            const line = this.#lines.get(name);
            line.points = [...line.points, value].slice(-POINTS);
            say(line.value, value === null ? "–" : this.show(value));
        }
        this.#draw();
    }

    #draw() {
        const lines = [...this.#lines.values()];
        const most = Math.max(...lines.flatMap(({points}) => points.map((each) => each ?? 0)));
        const scale = nice(most);
        say(this.top, most ? this.show(scale) : "");
        for (const {line, area, points} of lines) {
            const first = POINTS - points.length;
            const places = points.map((value, n) => {
                const x = ((first + n) / (POINTS - 1)) * WIDTH;
                return `${x.toFixed(1)},${(HEIGHT - 2 - ((value ?? 0) / scale) * (HEIGHT - 4)).toFixed(1)}`;
            });
            line.setAttribute("points", places.join(" "));
            const begin = ((first / (POINTS - 1)) * WIDTH).toFixed(1);
            area.setAttribute("points", [`${begin},${HEIGHT}`, ...places, `${WIDTH},${HEIGHT}`].join(" "));
        }
    }
}

/** The next round number: 1, 2 or 5 times a power of ten. */
function nice(most) {
    const power = 10 ** Math.floor(Math.log10(most || 1));
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= most) ?? 1;
}

/** Bars for the counts of equal intervals, the latest at the right. */
export function bars(values, label) {
    const most = Math.max(...values, 1);
    const box = {viewBox: `0 0 ${values.length * 5} 30`, class: "bars", preserveAspectRatio: "none", role: "img", "aria-label": label};
    return s("svg", box, values.map((value, n) => {
        const height = value ? Math.max(2, (value / most) * 28) : 1;
        return s("rect", {x: n * 5, y: 30 - height, width: 4, height, rx: 0.8, class: value ? "" : "none"});
    }));
}
