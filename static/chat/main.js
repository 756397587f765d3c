// The chat page: joining, and continuing after a reload.
import {keep, recall, storageOf} from "../js/storage.js";
import {Chat} from "./chat.js";
import * as view from "./view.js";

const ME = "holdfast.chat.me";
const library = await import("../cometd/cometd.js").catch(() => null);
const storage = storageOf("sessionStorage");
const find = (id) => document.getElementById(id);

let chat;

function begin(me) {
    const remember = () => keep(storage, ME, me);
    remember();
    view.showTrouble();
    chat = new Chat(library, me, {storage, onChange: remember});
    view.focusText();
}

function end() {
    chat.leave();
    storage?.removeItem(ME);
    // The next person starts with an empty page.
    location.reload();
}

function listen() {
    find("join").addEventListener("submit", (event) => {
        event.preventDefault();
        const {name, room, transport, reliable} = event.target.elements;
        begin({
            name: name.value,
            rooms: [room.value],
            transport: transport.value,
            reliable: reliable.checked,
        });
    });
    find("say").addEventListener("submit", (event) => {
        event.preventDefault();
        chat.say(find("text").value, find("to").value);
        find("text").value = "";
    });
    find("open-room").addEventListener("submit", (event) => {
        event.preventDefault();
        chat.pick(find("new-room").value);
        find("new-room").value = "";
    });
    find("text").addEventListener("input", () => chat.type());
    find("leave").addEventListener("click", end);
    view.watchViews();
    find("join").querySelector("button").disabled = false;
}

if (library === null) {
    view.showTrouble("cometd.js is missing on this server. Install Node and npm, then run `make setup-pages`.");
    find("door").hidden = true;
} else {
    listen();
    const me = recall(storage, ME);
    if (me?.rooms?.length > 0) {
        begin(me);
    }
}
