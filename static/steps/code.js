// The code beside each step: one choice of language for all, with this server's addresses, to be copied.
import {h, say} from "../dom.js";
import {keep, recall, storageOf} from "../js/storage.js";

const LANGUAGE = "holdfast.language";
const COPIED_MS = 2000;
const browser = storageOf("localStorage");
const blocks = () => document.querySelectorAll("fieldset.code");

/** Puts what is known of this server and visitor into the code: replaces each key by its value. */
export function fill(known) {
    for (const code of document.querySelectorAll("fieldset.code code")) {
        code.textContent = Object.entries(known).reduce((text, [key, value]) => text.replaceAll(key, value), code.textContent);
    }
}

/** Has all blocks show the chosen language, and a button that copies it. */
export function prepare() {
    choose(recall(browser, LANGUAGE));
    for (const block of blocks()) {
        block.onchange = ({target}) => {
            choose(target.value);
            keep(browser, LANGUAGE, target.value);
        };
        // Pages without TLS have no clipboard, except on this machine.
        if (navigator.clipboard) {
            block.querySelector(".tabs").append(copying(block));
        }
    }
}

function choose(language) {
    for (const input of document.querySelectorAll("fieldset.code input")) {
        input.checked = language ? input.value === language : input.checked;
    }
}

function copying(block) {
    const button = h("button", {type: "button", class: "copy", "aria-live": "polite"}, "Copy");
    button.onclick = async () => {
        const {value} = block.querySelector("input:checked");
        const done = await navigator.clipboard.writeText(block.querySelector(`[data-language=${value}]`).textContent)
            .then(() => "Copied", () => "Select and copy it");
        say(button, done);
        setTimeout(() => say(button, "Copy"), COPIED_MS);
    };
    return button;
}
