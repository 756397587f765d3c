// The chat: joins what people do on the page to the connection, and what it hears to the page.
import {Connection, PRIVATE, roomChannel} from "./connection.js";
import {Transcript} from "./transcript.js";
import * as view from "./view.js";
import {Wire} from "./wire.js";

const ME = "holdfast.chat.me";
const TYPING_MS = 3000;
const library = await import("../cometd/cometd.js").catch(() => null);
const find = (id) => document.getElementById(id);

class Chat {
    #me;
    #room;
    #transcript;
    #connection;
    #members = new Map();
    #typing = new Map();
    #unread = new Map();
    #lastTyped = 0;

    constructor(me) {
        this.#me = me;
        this.#room = me.rooms[0];
        this.#transcript = new Transcript(sessionStorage, me.name);
        const url = new URL("../cometd", location.href).href;
        const wire = new Wire(find("wire"));
        this.#connection = new Connection(library, me, {show: this, wire, url});
        this.#connection.outbox.addEventListener("change", () => this.#drawUnsent());
        this.#connection.outbox.addEventListener("refused", ({detail}) =>
            view.showTrouble(`The server refused a message: ${detail.reply.error}`),
        );
        this.#connection.delivery?.addEventListener("change", () => this.#drawHold());
        this.#draw();
        view.showRoom(true);
        this.#connection.join();
        find("text").focus();
    }

    // What the connection tells

    state(text, kind) {
        view.showState(text, kind);
    }

    line(room, {id, from, text, again}) {
        this.#put(room, {id: String(id), from: String(from), text: String(text), again});
    }

    refused(room, line) {
        this.#put(room, line);
        this.#drawRefuse();
    }

    again(id, count) {
        const seen = this.#transcript.find(id);
        if (seen !== undefined) {
            this.#put(seen.room, {...seen.line, again: count});
        }
    }

    whisper({id, from, to, text, error}) {
        if (error) {
            view.showTrouble(`Nobody here is called ${to}.`);
        } else {
            this.#put(this.#room, {id, from, to, text, again: 0});
        }
    }

    /** The session is in one more room: it was before. */
    opened() {
        remember(this.#me);
        this.#drawRooms();
    }

    members(room, members) {
        this.#members.set(room, members);
        if (room === this.#room) {
            this.#drawMembers();
        }
    }

    typing(room, name) {
        clearTimeout(this.#typing.get(name)?.timer);
        const timer = setTimeout(() => {
            this.#typing.delete(name);
            this.#drawTyping();
        }, TYPING_MS);
        this.#typing.set(name, {room, timer});
        this.#drawTyping();
    }

    taken() {
        view.showState("Not connected", "bad");
        const text = `${this.#me.name} has opened the chat elsewhere; this page hears no more.`;
        view.showTrouble(text, "Take it back", () => {
            view.showTrouble();
            this.#connection.again();
        });
    }

    failed(error) {
        view.showTrouble(`The server does not let you in: ${error}`);
    }

    // What people do

    say(text, to) {
        view.showTrouble();
        if (to) {
            this.#connection.whisper(to, text);
        } else {
            this.#connection.say(this.#room, text);
        }
    }

    type() {
        if (Date.now() - this.#lastTyped > TYPING_MS / 2) {
            this.#lastTyped = Date.now();
            this.#connection.typing(this.#room);
        }
    }

    pick(room) {
        if (!this.#me.rooms.includes(room)) {
            this.#me.rooms.push(room);
            this.#connection.openRoom(room);
            remember(this.#me);
        }
        this.#room = room;
        this.#unread.delete(room);
        this.#draw();
        find("text").focus();
    }

    refuseNext(code) {
        this.#connection.refuseNext = this.#connection.refuseNext ? undefined : code;
        this.#drawRefuse();
    }

    hold() {
        this.#connection.hold(!this.#connection.delivery.isHeldBack);
    }

    acknowledge(areGiven) {
        this.#connection.acknowledge(areGiven);
    }

    goOffline(isOffline) {
        this.#connection.goOffline(isOffline);
    }

    kill() {
        this.#connection.kill();
    }

    leave() {
        this.#connection.leave();
        this.#transcript.clear();
    }

    // What is seen of it

    #put(room, line) {
        const own = line.from === this.#me.name;
        const isNew = this.#transcript.put(room, {at: Date.now(), ...line, own});
        const {line: whole} = this.#transcript.find(line.id);
        if (room === this.#room) {
            view.drawLine(whole);
        } else if (isNew) {
            this.#unread.set(room, (this.#unread.get(room) ?? 0) + 1);
            this.#drawRooms();
        }
        this.#typing.delete(line.from);
        this.#drawTyping();
    }

    #draw() {
        find("talk-title").textContent = this.#room;
        view.drawLines(this.#transcript.lines(this.#room));
        this.#drawRooms();
        this.#drawMembers();
        this.#drawTyping();
        this.#drawUnsent();
        for (const part of document.querySelectorAll(".reliable")) {
            part.hidden = !this.#me.reliable;
        }
    }

    #drawRooms() {
        view.drawRooms(this.#me.rooms, this.#room, this.#unread, (room) => this.pick(room));
    }

    #drawMembers() {
        const members = this.#members.get(this.#room) ?? [];
        view.drawMembers(members);
        view.drawReceivers(members.map(({name}) => name).filter((name) => name !== this.#me.name));
    }

    #drawTyping() {
        const here = [...this.#typing].filter(([, {room}]) => room === this.#room);
        view.drawTyping(here.map(([name]) => name));
    }

    #drawUnsent() {
        const here = [PRIVATE, roomChannel(this.#room)];
        const waiting = this.#connection.outbox.entries.filter(({channel}) => here.includes(channel));
        view.drawUnsent(waiting.map(({data}) => data.text));
    }

    #drawRefuse() {
        find("refuse").setAttribute("aria-pressed", String(Boolean(this.#connection.refuseNext)));
    }

    #drawHold() {
        find("hold").setAttribute("aria-pressed", String(this.#connection.delivery.isHeldBack));
    }
}

let chat;

function remember(me) {
    sessionStorage.setItem(ME, JSON.stringify(me));
}

function begin(me) {
    remember(me);
    view.showTrouble();
    chat = new Chat(me);
}

function end() {
    chat.leave();
    sessionStorage.removeItem(ME);
    // The next person begins with a page on which nothing was left.
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
    find("refuse").addEventListener("click", () => chat.refuseNext(find("code").value));
    find("hold").addEventListener("click", () => chat.hold());
    find("kill").addEventListener("click", () => chat.kill());
    find("leave").addEventListener("click", end);
    find("acknowledge").addEventListener("change", ({target}) => chat.acknowledge(target.checked));
    find("offline").addEventListener("click", ({currentTarget}) => {
        const isOffline = currentTarget.getAttribute("aria-pressed") !== "true";
        currentTarget.setAttribute("aria-pressed", String(isOffline));
        chat.goOffline(isOffline);
    });
    view.watchViews();
    find("join").querySelector("button").disabled = false;
}

if (library === null) {
    view.showTrouble("cometd.js is missing on this server: `make setup-pages` gets it, with Node and npm.");
    find("join").hidden = true;
} else {
    listen();
    const me = sessionStorage.getItem(ME);
    if (me !== null) {
        begin(JSON.parse(me));
    }
}
