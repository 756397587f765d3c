// The page at /: shows what this server offers, and a client to try it with.
import {Client} from "./bayeux.js";
import {h, say} from "./dom.js";
import {textOf} from "./text.js";

const find = (selector) => document.querySelector(selector);

function append(list, text, kind) {
    list.append(h("li", {class: kind}, textOf(text, 2000)));
    [...list.children].slice(0, -100).forEach((old) => old.remove());
    list.scrollTop = list.scrollHeight;
}

function tell(element, text, mood) {
    element.className = `state ${mood}`;
    say(element, text);
}

const tellState = (text, mood) => tell(find("#state"), text, mood);
const failed = ({message}) => tellState(message, "bad");
let client = null;

function settle() {
    find("#toggle").textContent = client ? "Disconnect" : "Connect";
    document.querySelectorAll("#connection input").forEach((each) => (each.disabled = client));
    document.querySelectorAll("#publishing > *").forEach((each) => (each.disabled = !client));
}

async function visit({path, channel}) {
    client = new Client(new URL(path.value, document.baseURI), channel.value, {
        connected: (advice) => {
            const how = advice["multiple-clients"] ? " by polling, because another tab is connected, too" : "";
            tellState(`Listening on ${channel.value}${how}.`, "good");
        },
        failed: (error) => {
            const isWrongPath = error.isElsewhere && path.value !== path.defaultValue;
            const advice = isWrongPath ? ` Try ${path.defaultValue}.`
                : error.message.includes("handshake_denied") ? " This page cannot log in." : "";
            tellState(error.message + advice, "bad");
            error.isElsewhere && client.leave();
        },
        message: ({data}) => append(find("#messages"), data?.text ?? data, ""),
        wire: (kind, message) => append(find("#wire"), message, kind),
    });
    settle();
    await client.run();
    client = null;
    settle();
    if (find("#state").classList.contains("good")) {
        tellState("Not connected.", "");
    }
}

find("#connection").onsubmit = ({target}) => {
    client ? client.leave() : visit(target.elements);
    return false;
};
find("#publishing").onsubmit = ({target}) => {
    client.publish(find("[name=channel]").value, {text: find("#text").value}).catch(failed);
    target.reset();
    return false;
};
addEventListener("pagehide", () => client?.leave());

const readiness = await fetch("readyz").catch(() => null);
tell(find("#readiness"), readiness ? await readiness.text() : "gone", readiness?.ok ? "good" : "bad");
for (const each of document.querySelectorAll("[data-scheme]")) {
    each.textContent = each.dataset.scheme + location.origin.slice(4) + each.textContent;
}
