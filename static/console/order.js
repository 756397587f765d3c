// The order of a message's steps. The journal has two sources, which read the clock at different
// moments of the same turn; so within a copy, effects are sorted after their causes. And each of several
// workers has a clock of its own, which may have been set since.
import {STEPS} from "./steps.js";

// The longest time between two clock readings of one turn.
const TURN_US = 1_000_000;

/**
 * Sorts steps by time; a step before its cause gets the time of the cause. If the cause is at another worker, all
 * steps of this one are moved by as much.
 */
export function inOrder(steps) {
    const copies = new Map();
    const placed = steps.map((step, place) => ({step, place, at: step.at_us}));
    align(placed);
    for (const each of placed) {
        const {receiver} = each.step;
        copies.has(receiver) ? copies.get(receiver).push(each) : copies.set(receiver, [each]);
    }
    copies.forEach(settle);
    placed.sort((a, b) => a.at - b.at || rank(a.step) - rank(b.step) || a.place - b.place);
    return placed.map(({step, at}) => ({...step, at_us: at}));
}

const rank = ({kind}) => STEPS.get(kind)?.rank ?? STEPS.size;

/** Moves the clocks of workers on that are behind: nothing happens before the publish, and no copy enters too soon. */
function align(placed) {
    const byNode = new Map();
    // All workers give a publish the time of the one that has accepted it.
    for (const each of placed.filter(({step}) => step.kind !== "published")) {
        byNode.set(each.step.node, [...byNode.get(each.step.node) ?? [], each]);
    }
    const [published, moved, entered] = ["published", "moved", "entered"].map((kind) =>
        placed.filter(({step}) => step.kind === kind).sort((a, b) => a.at - b.at));
    if (published.length) {
        byNode.forEach((its) => moveOn(its, published[0].at - Math.min(...its.map(({at}) => at))));
    }
    moved.slice(0, entered.length).forEach((cause, place) => {
        const effect = entered[place];
        if (cause.step.node !== effect.step.node) {
            // Of steps at one time, one that ends something would come last.
            moveOn(byNode.get(effect.step.node), cause.at + 1 - effect.at);
        }
    });
}

function moveOn(steps, byUs) {
    if (byUs > 0) {
        steps.forEach((each) => (each.at += byUs));
    }
}

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
