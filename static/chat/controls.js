// The controls that cause faults: their effects on the connection, and what to expect.
const find = (id) => document.getElementById(id);
const press = (button, isPressed) => button.setAttribute("aria-pressed", String(isPressed));

/** A button with two names: the second one while it is on. */
function turn(button, isOn, [off, on]) {
    button.classList.toggle("on", isOn);
    button.textContent = isOn ? on : off;
}

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
    "Messages to you wait on the server until you press “Resume”. The others see that you are " +
    "held back.";
const OFFLINE =
    "Messages that you send wait in this browser, even across a reload. Messages to you wait on " +
    "the server.";
const KILLED =
    "The connection is cut; the page is reconnecting. Messages in flight come again, and are " +
    "shown once.";
const RESTORED =
    "The connection was cut and is restored. Messages that were in flight came again, and are " +
    "shown once.";
const AGAIN = "The next message is refused temporarily and redelivered: nothing is lost.";
const DEAD =
    "The next message is refused permanently. It becomes a dead letter, which operators can " +
    "replay from the console; the messages behind it are delivered.";
const DEAD_NOW =
    "The message was refused and is a dead letter now. The wire shows the verdict; the messages " +
    "behind it were delivered.";
const AGAIN_NOW = "Refused temporarily. The server redelivers it in a second.";
const HELD_NOW =
    "Refused, and all messages to you are held back. Press “Resume” to get them.";
const HOLD_NAMES = ["Hold back", "Resume"];
const OFFLINE_NAMES = ["Go offline", "Go online"];

const isHoldback = (code) => code.endsWith(".holdback");
const comesBack = (code) => code.startsWith("communication.") || isHoldback(code);

/** Lets the user cause faults of this connection; returns a function to call after a refusal. */
export function control(connection) {
    const {delivery} = connection;
    const usual = delivery === undefined ? PLAIN : RELIABLE;
    const explain = (text) => (find("explanation").textContent = text);
    for (const part of document.querySelectorAll(".reliable")) {
        part.hidden = delivery === undefined;
    }
    find("refuse").onclick = () => {
        const code = connection.refuseNext ? undefined : find("code").value;
        connection.refuseNext = code;
        press(find("refuse"), code !== undefined);
        explain(code === undefined ? usual : comesBack(code) ? AGAIN : DEAD);
    };
    delivery?.addEventListener("change", () => turn(find("hold"), delivery.isHeldBack, HOLD_NAMES));
    find("hold").onclick = () => {
        const isHeld = !delivery.isHeldBack;
        connection.hold(isHeld);
        explain(isHeld ? HELD : usual);
    };
    find("acknowledge").onchange = ({target}) => {
        connection.acknowledge(target.checked);
        explain(target.checked ? usual : SILENT);
    };
    find("offline").onclick = ({currentTarget: button}) => {
        const isOffline = !connection.isOffline;
        turn(button, isOffline, OFFLINE_NAMES);
        // Both need the server.
        find("hold").disabled = find("kill").disabled = isOffline;
        connection.goOffline(isOffline);
        explain(isOffline && delivery ? OFFLINE : usual);
    };
    find("kill").onclick = () => {
        explain(delivery ? KILLED : PLAIN);
        connection.kill(() => find("explanation").textContent === KILLED && explain(RESTORED));
    };
    explain(usual);
    return (code) => {
        press(find("refuse"), false);
        explain(isHoldback(code) ? HELD_NOW : comesBack(code) ? AGAIN_NOW : DEAD_NOW);
    };
}
