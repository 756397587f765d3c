// The controls that cause faults: what each does to the connection, and what to expect.
const find = (id) => document.getElementById(id);
const press = (button, isPressed) => button.setAttribute("aria-pressed", String(isPressed));
const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

const RELIABLE =
    "The server queues every message for this page until the page acknowledges it. Go offline, " +
    "have somebody send a message, and go online again: nothing is missing.";
const PLAIN =
    "Reliable messaging is off: messages sent while you are disconnected are lost. Leave, and " +
    "join with reliable messaging to see the difference.";
const SILENT =
    "This page acknowledges nothing, so the server keeps redelivering the same messages. The " +
    "page recognises them and shows each one once, marked as redelivered.";
const HELD =
    "Your messages wait in your queue on the server until you resume. The others see how many " +
    "waits.";
const OFFLINE =
    "Messages that you send wait in this browser, even across a reload. Messages to you wait on " +
    "the server.";
const KILLED =
    "The connection was cut and restored. Messages in flight were redelivered, and are shown " +
    "once.";
const AGAIN = "The next message is refused temporarily and redelivered: nothing is lost.";
const DEAD =
    "The next message is refused permanently. It becomes a dead letter, which operators can " +
    "replay from the console; the messages behind it are delivered.";
const DEAD_NOW =
    "The message was refused and is a dead letter now. The wire shows the verdict; the messages " +
    "behind it were delivered.";
const AGAIN_NOW = "Refused temporarily. The server redelivers it in a second.";
const HELD_NOW =
    "Refused, and all your messages are held back. Press “Hold back” to release them.";

const isHoldback = (code) => code.endsWith(".holdback");
const comesBack = (code) => code.startsWith("communication.") || isHoldback(code);

export class Controls {
    #connection;
    #usual;

    constructor(connection) {
        this.#connection = connection;
        this.#usual = connection.delivery === undefined ? PLAIN : RELIABLE;
        for (const part of document.querySelectorAll(".reliable")) {
            part.hidden = connection.delivery === undefined;
        }
        connection.delivery?.addEventListener("change", () => this.#drawHold());
        find("refuse").addEventListener("click", () => this.#refuseNext());
        find("hold").addEventListener("click", () => this.#hold());
        find("kill").addEventListener("click", () => this.#kill());
        find("acknowledge").addEventListener("change", ({target}) => this.#acknowledge(target.checked));
        find("offline").addEventListener("click", ({currentTarget}) => this.#goOffline(currentTarget));
        this.#explain(this.#usual);
    }

    /** The message to refuse has arrived and was refused. */
    refused(code) {
        press(find("refuse"), false);
        this.#explain(isHoldback(code) ? HELD_NOW : comesBack(code) ? AGAIN_NOW : DEAD_NOW);
    }

    #refuseNext() {
        const code = this.#connection.refuseNext ? undefined : find("code").value;
        this.#connection.refuseNext = code;
        press(find("refuse"), code !== undefined);
        this.#explain(code === undefined ? this.#usual : comesBack(code) ? AGAIN : DEAD);
    }

    #hold() {
        const isHeld = !this.#connection.delivery.isHeldBack;
        this.#connection.hold(isHeld);
        this.#explain(isHeld ? HELD : this.#usual);
    }

    #drawHold() {
        press(find("hold"), this.#connection.delivery.isHeldBack);
    }

    #acknowledge(areGiven) {
        this.#connection.acknowledge(areGiven);
        this.#explain(areGiven ? this.#usual : SILENT);
    }

    #goOffline(button) {
        const isOffline = !isPressed(button);
        press(button, isOffline);
        this.#connection.goOffline(isOffline);
        this.#explain(isOffline && this.#usual === RELIABLE ? OFFLINE : this.#usual);
    }

    #kill() {
        this.#connection.kill();
        this.#explain(this.#usual === RELIABLE ? KILLED : PLAIN);
    }

    #explain(text) {
        find("explanation").textContent = text;
    }
}
