// The order of a message's steps. The journal has two sources, which read the clock at different
// moments of the same turn; so within a copy, effects are sorted after their causes.
import {STEPS} from "./steps.js";

// The longest time between two clock readings of one turn.
const TURN_US = 1_000_000;

/** Sorts steps by time; a step before its cause gets the time of the cause. */
export function inOrder(steps) {
    const copies = new Map();
    const placed = steps.map((step, place) => ({step, place, at: step.at_us}));
    for (const each of placed) {
        const {receiver} = each.step;
        copies.has(receiver) ? copies.get(receiver).push(each) : copies.set(receiver, [each]);
    }
    copies.forEach(settle);
    placed.sort((a, b) => a.at - b.at || rank(a.step) - rank(b.step) || a.place - b.place);
    return placed.map(({step, at}) => ({...step, at_us: at}));
}

const rank = ({kind}) => STEPS.get(kind)?.rank ?? STEPS.size;

/** Gives each step of a copy the time of its cause, if all its possible causes came a little later. */
function settle(copy) {
    let life = 0;
    const byTime = copy.toSorted((a, b) => a.at - b.at);
    for (const each of byTime) {
        // Each replay, and each return by a move, begins another life.
        life += ["replayed", "entered"].includes(each.step.kind) ? 1 : 0;
        each.life = life;
    }
    const first = new Map();
    for (const stage of [0, 1, 2]) {
        for (const each of byTime.filter(({step}) => STEPS.get(step.kind)?.stage === stage)) {
            const {attempt} = each.step;
            const cause = first.get(key(each, stage - 1, attempt)) ?? first.get(key(each, 0, attempt));
            if (stage && cause > each.at && cause <= each.at + TURN_US) {
                each.at = cause;
            }
            for (const known of new Set([attempt, null])) {
                const name = key(each, stage, known);
                first.set(name, Math.min(each.at, first.get(name) ?? Infinity));
            }
        }
    }
}

const key = ({life}, stage, attempt) => `${life} ${stage} ${attempt}`;
