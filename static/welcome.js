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

const show = {
    wire: (kind, message) => append(find("#wire"), message, kind),
    message: (data) => append(find("#messages"), data?.text ?? data, ""),
    state: (text, mood) => tell(find("#state"), text, mood),
};
let client = null;

function settle() {
    find("#toggle").textContent = client ? "Disconnect" : "Connect";
    document.querySelectorAll("#connection input").forEach((each) => (each.disabled = client));
    document.querySelectorAll("#publishing > *").forEach((each) => (each.disabled = !client));
}

async function visit({path, channel}) {
    client = new Client(new URL(path.value, document.baseURI), channel.value, show);
    settle();
    await client.run();
    client = null;
    settle();
    if (find("#state").classList.contains("good")) {
        show.state("Not connected.", "");
    }
}

find("#connection").onsubmit = ({target}) => {
    client ? client.leave() : visit(target.elements);
    return false;
};
find("#publishing").onsubmit = ({target}) => {
    client.publish({text: find("#text").value}).catch((error) => show.state(error.message, "bad"));
    target.reset();
    return false;
};
addEventListener("pagehide", () => client?.leave());

const readiness = await fetch("readyz").catch(() => null);
tell(find("#readiness"), readiness ? await readiness.text() : "gone", readiness?.ok ? "good" : "bad");
for (const each of document.querySelectorAll("[data-scheme]")) {
    each.textContent = each.dataset.scheme + location.origin.slice(4) + each.textContent;
}
