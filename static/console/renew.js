// Updates elements on the page without disturbing the reader.

const LISTENERS = ["onclick", "onchange", "onsubmit"];

/** Makes `shown` equal to `fresh`; changes only the differences, so focus and open details stay. */
export function renew(shown, fresh) {
    if (shown.nodeName !== fresh.nodeName) {
        shown.replaceWith(fresh);
    } else if (shown.nodeType !== Node.ELEMENT_NODE) {
        if (shown.data !== fresh.data) {
            shown.data = fresh.data;
        }
    } else {
        renewAttributes(shown, fresh);
        renewChildren(shown, [...fresh.childNodes]);
    }
}

/** Renews all children of an element, matched by `data-key` or else by position. */
export function renewChildren(parent, fresh) {
    const focused = document.activeElement;
    const keys = new Set(fresh.map(keyOf));
    const known = new Map();
    for (const child of [...parent.childNodes]) {
        const key = keyOf(child);
        if (key !== undefined && (!keys.has(key) || known.has(key))) {
            child.remove();
        } else {
            known.set(key, child);
        }
    }
    let place = parent.firstChild;
    for (const child of fresh) {
        const key = keyOf(child);
        const same = key === undefined ? unkeyed(place) : known.get(key);
        known.delete(key);
        if (!same) {
            parent.insertBefore(child, place);
            continue;
        }
        if (same !== place) {
            parent.insertBefore(same, place);
        }
        place = same.nextSibling;
        renew(same, child);
    }
    while (place) {
        const next = place.nextSibling;
        place.remove();
        place = next;
    }
    // A moved element loses the focus.
    if (focused !== document.activeElement && parent.contains(focused)) {
        focused.focus({preventScroll: true});
    }
}

const keyOf = (node) => node.dataset?.key;
const unkeyed = (node) => (node && keyOf(node) === undefined ? node : null);

function renewAttributes(shown, fresh) {
    for (const name of LISTENERS) {
        shown[name] = fresh[name];
    }
    for (const {name, value} of fresh.attributes) {
        if (shown.getAttribute(name) !== value) {
            shown.setAttribute(name, value);
        }
    }
    for (const {name} of [...shown.attributes]) {
        // Details that the reader opened stay open.
        if (!fresh.hasAttribute(name) && !(name === "open" && shown.nodeName === "DETAILS")) {
            shown.removeAttribute(name);
        }
    }
}
